/* roster - tenants and people as one document: what is applied, and what the present state is exported as.
 *
 * A tenant is wholly as the document says: a field that it has not is the default.  Of a user the role and
 * `disabled` are so; the rest stays as it is where it is not given, since signing in fills it too.  Who is in a
 * tenant and which machines are whose is only added to, unless the rest is to be removed.  What was read is in
 * range; whether it fits what there is, is for whoever knows that (apply.c).
 */
#ifndef NS_API_ROSTER_H
#define NS_API_ROSTER_H

#include "auth/people.h"
#include "spec/tenant.h"

#define ROSTER_TENANTS_MAX 10000
#define ROSTER_USERS_MAX 100000
#define ROSTER_MEMBERS_MAX 10000 /* of a tenant */
#define ROSTER_MACHINES_MAX 1000 /* of a user */

struct roster_member {
    struct str user;
    enum role role;
};

struct roster_tenant {
    struct str name;
    struct tenant_spec spec;
    bool says_spec;    /* more than its members */
    bool says_members; /* else they are left alone */
    struct roster_member *member;
    size_t members;
};

struct roster_user {
    struct str name;
    enum role role;
    bool disabled;
    bool says_kind, says_full_name, says_mail, says_machines;
    enum person_kind kind;
    struct str full_name, mail;
    struct str *machine;
    size_t machines;
};

struct roster {
    struct roster_tenant *tenant;
    size_t tenants;
    struct roster_user *user;
    size_t users;
    bool says_tenants, says_users; /* what it does not speak of is not removed */
    bool prune, dry_run;
};

/* Copies what it keeps into `a`.  An error names its place in *out_field: "tenants.vision.weight". */
int roster_read(const struct json *object, struct arena *a, struct roster *out,
                const char **out_field, struct err *e) MUST_USE;

/* Members of an open object, the same for what there is and for what there shall be. */
void roster_put_tenant(struct json_out *w, const struct roster_tenant *t);
void roster_put_user(struct json_out *w, const struct roster_user *u);

#endif
