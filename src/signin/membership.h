/* membership - which groups of a directory somebody is in, also by groups in groups.
 *
 * nested is one of: "no" (groups that name the person), "yes" (and groups that name those, and so
 * on), "memberof" (the entries' own memberOf, followed), "ad" (Active Directory follows them
 * itself).  Loops end; depth and number are bounded.
 */
#ifndef NS_SIGNIN_MEMBERSHIP_H
#define NS_SIGNIN_MEMBERSHIP_H

#include "signin/directory.h"

struct membership_rule {
    const char *base, *filter, *attr, *nested;
};

struct member {
    const char *user, *dn;
    const char *const *member_of;
};

void membership_defaults(struct membership_rule *rule);

/* Writes "groups": the names, each once. */
int membership_write(struct directory *d, const struct membership_rule *rule,
                     const struct member *who, struct arena *a, struct json_out *out,
                     struct refusal *r);

#endif
