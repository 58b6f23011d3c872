/* tenant_make - what a tenant is on Kubernetes: a namespace and what stands in it, as requests; pure.
 *
 * Each object is one request for the API server.  PATCH is a server-side apply (content type
 * application/apply-patch+yaml, which takes JSON); sent again it changes nothing.  DELETE of what is
 * not there (404) has succeeded.  The first is the namespace, which the others need.
 *
 * Two tenants never have one namespace, and none has the daemon's own.  Somebody else may have made a
 * namespace of that name before us: look first, and take it only if tenant_has_namespace says so.
 */
#ifndef NS_ENGINE_KUBE_TENANT_MAKE_H
#define NS_ENGINE_KUBE_TENANT_MAKE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "engine/engine.h"

#define KUBE_NAME 64       /* bytes of a name (DNS-1123 label) with its NUL */
#define KUBE_PREFIX_MAX 20 /* bytes of what begins the names of namespaces */
#define TENANT_OBJECTS 10  /* at most so many requests */
#define TENANT_JOB_ACCOUNT "nightshift-job"

/* Of the whole site.  The chart has a ClusterRole nightshift-tenant-NAME for each member's role. */
struct tenant_site {
    struct str prefix; /* begins every tenant's namespace: "nightshift-" */
    struct str own;    /* the namespace that the daemon is in */
    struct str gpu;    /* "nvidia.com/gpu" */
    struct str
        user_prefix; /* what the API server puts before names of people ("oidc:"); may be empty */
};
int tenant_site_check(const struct tenant_site *site, struct err *e) MUST_USE;

struct tenant_object {
    const char *method; /* "PATCH" or "DELETE" */
    const char *path;   /* with its query */
    struct str body;    /* empty for DELETE */
};

/* Any text as a DNS-1123 label that begins with the prefix, which is one by itself but for a "-" at its
 * end.  Letters, digits and single hyphens stay; other bytes are "--" and two hex digits; what would be
 * too long is cut and ends with a hash. */
void kube_name(struct str prefix, struct str text, char out[static KUBE_NAME]);

void tenant_namespace(const struct tenant_site *site, struct str tenant,
                      char out[static KUBE_NAME]);
/* Is this Namespace, as the API server gave it, the tenant's? */
bool tenant_has_namespace(const struct json *ns, struct str tenant);

/* All strings live in `a`. */
int tenant_make(const struct tenant_site *site, const struct engine_tenant *t, struct arena *a,
                struct tenant_object out[static TENANT_OBJECTS], size_t *out_n, struct err *e)
    MUST_USE;

struct tenant_claim {
    struct str tenant, user; /* user empty: it is nobody's own */
    const char *name;        /* NULL: home-USER */
    uint64_t bytes;
    struct str storage_class; /* empty: the cluster's default */
    struct str access;        /* "ReadWriteOnce" */
};
/* A PersistentVolumeClaim.  Larger than before it grows, where the class allows that; smaller is refused
 * by the API server. */
void tenant_make_claim(const struct tenant_site *site, const struct tenant_claim *c,
                       struct arena *a, struct tenant_object *out);

#endif
