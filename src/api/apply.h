/* apply - a document of tenants and people against what there is: the changes that it means.
 *
 * Strings live in the request's arena.  A change holds the thing as it was and as it shall be, as values and as the
 * objects that people read; what the order of names says nothing about is equal in any order.
 */
#ifndef NS_API_APPLY_H
#define NS_API_APPLY_H

#include "api/roster.h"
#include "api/state.h"
#include "base/map.h"

enum what {
    WHAT_CREATE,
    WHAT_CHANGE,
    WHAT_REMOVE
};

struct change {
    bool of_tenant;
    enum what what;
    struct str name;
    const struct roster_tenant *tenant, *tenant_was; /* was: NULL when it is new */
    const struct roster_user *user, *user_was;
    bool spec_differs;         /* of a tenant: more than its members */
    struct json_doc *was, *is; /* the same as objects */
};

struct applying {
    struct call *c;
    struct arena *a;
    struct roster want;
    struct names named; /* people that the document speaks of */
    struct place *place;
    size_t places; /* those that were said, sorted by tenant */
    struct change *change;
    size_t n, cap;
};

/* Zeroed but for c and a. */
void applying_free(struct applying *p);
void applying_look(struct applying *p); /* at who is where: once, before the others */
/* All changes, in an order in which they can be made.  Nothing is changed yet. */
int applying_plan(struct applying *p, struct err *e) MUST_USE;

const struct roster_tenant *tenant_now(const struct applying *p, const struct control_tenant *t);
const struct roster_user *user_now(const struct applying *p, const struct person *x);
/* Somebody of whom something was said here; others come and go with their directory. */
bool is_said(const struct applying *p, const struct person *x);
void put_differences(struct json_out *w, const struct applying *p, const struct change *ch);

#endif
