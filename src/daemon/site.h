/* site - the sections of the settings file: tenants and their members, profiles, admins, policy, pools. */
#ifndef NS_DAEMON_SITE_H
#define NS_DAEMON_SITE_H

#include "api/api.h"
#include "core/policy.h"
#include "daemon/config.h"

struct site {
    struct policy policy;
    struct control_tenant_def *tenant; /* parents before children */
    size_t tenants;
    struct api_profile *profile;
    size_t profiles;
    struct control_pool_def *pool;
    size_t pools;
    struct str default_tenant;
};

/* Strings live in the config's arena; members and admins go to `auth`. */
int site_read(struct config *c, struct auth *auth, int64_t now_ms, struct site *out, struct err *e)
    MUST_USE;

/* The one section that can be looked at alone. */
int site_read_policy(const struct config *c, struct policy *out, struct err *e) MUST_USE;

#endif
