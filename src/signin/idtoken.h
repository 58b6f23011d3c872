/* idtoken - is this ID token the provider's word about this sign-in?  Text in, claims out.
 *
 * Pure: the token, the provider's keys (a JWKS), what is expected and the time are arguments.
 * Signed with RS256, PS256 or ES256 by a key that is in the JWKS and may sign; never "none", never
 * an HMAC, whatever the token's header says.  Issuer exact, audience ours, within its time (a
 * minute of skew), nonce ours when one is expected.
 */
#ifndef NS_SIGNIN_IDTOKEN_H
#define NS_SIGNIN_IDTOKEN_H

#include "signin/refusal.h"

#define IDTOKEN_MAX (32u << 10)
#define IDTOKEN_SKEW_S 60

struct idtoken_want {
    const char *issuer, *client_id;
    const char *nonce; /* NULL: none was sent */
    int64_t now_s;
};

/* On success the caller frees *out_claims. */
int idtoken_check(struct str token, struct str keys, const struct idtoken_want *want,
                  struct json_doc **out_claims, struct refusal *r) MUST_USE;

#endif
