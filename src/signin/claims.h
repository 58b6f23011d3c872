/* claims - a person out of what a provider says: the ID token first, then its userinfo answer.
 *
 * A claim is looked for by its name and then as a path (realm_access.roles).  Both sources have
 * been checked before; here are only bounds and what is missing.
 */
#ifndef NS_SIGNIN_CLAIMS_H
#define NS_SIGNIN_CLAIMS_H

#include "signin/refusal.h"

struct claims_rule {
    const char *user_claim, *groups_claim; /* NULL: preferred_username, groups */
};

/* Is something of the person not in the ID token?  Then the provider is to be asked for more. */
bool claims_missing(const struct json *token, const struct claims_rule *rule);

/* Writes subject, user, name, mail, groups.  `more` may be NULL; its "sub" is the token's. */
int claims_write(const struct json *token, const struct json *more, const struct claims_rule *rule,
                 struct json_out *out, struct refusal *r);

#endif
