/* refusal - why somebody is not signed in: a reason for programs, words for people.
 *
 * A table gives each reason its name, what kind of failure it is and what can be done about it.
 * Kinds are three: denied (the person), invalid (the request), unavailable (the other side, or its
 * settings; another try may succeed).  No message ever quotes a secret.
 */
#ifndef NS_SIGNIN_REFUSAL_H
#define NS_SIGNIN_REFUSAL_H

#include "base/json.h"

/* name, kind, hint */
#define REASONS(X)                                                                                 \
    X(BAD_REQUEST, "bad_request", INVALID, "")                                                     \
    X(EMPTY_PASSWORD, "empty_password", DENIED, "type the password")                               \
    X(WRONG_PASSWORD, "wrong_password", DENIED, "check both, also whether Caps Lock is on")        \
    X(BAD_HASH, "bad_hash", INVALID, "set the password anew")                                      \
    X(MEMORY, "memory", UNAVAILABLE, "try again")                                                  \
    X(UNKNOWN_USER, "unknown_user", DENIED, "")                                                    \
    X(AMBIGUOUS_USER, "ambiguous_user", DENIED,                                                    \
      "the administrator can narrow the filter for users in the settings")                         \
    X(PASSWORD_EXPIRED, "password_expired", DENIED, "change it where it is kept, then come back")  \
    X(ACCOUNT_EXPIRED, "account_expired", DENIED, "ask whoever keeps the accounts")                \
    X(ACCOUNT_LOCKED, "account_locked", DENIED, "ask whoever keeps the accounts")                  \
    X(NOT_ALLOWED, "not_allowed", DENIED, "ask whoever keeps the accounts")                        \
    X(MORE_FACTORS, "more_factors", UNAVAILABLE,                                                   \
      "a second factor works with OIDC; a PAM service for it has to ask for a password only")      \
    X(PAM_BROKEN, "pam_broken", UNAVAILABLE,                                                       \
      "the administrator can look at /etc/pam.d and the "                                          \
      "system's log")                                                                              \
    X(INSECURE, "insecure", INVALID, "use https:// or ldaps://, or starttls")                      \
    X(UNREACHABLE, "unreachable", UNAVAILABLE,                                                     \
      "try again; the administrator can check the address and the network")                        \
    X(CERTIFICATE, "certificate", UNAVAILABLE,                                                     \
      "name the file of the authority that signed it (ca_file)")                                   \
    X(SERVICE_BIND, "service_bind", UNAVAILABLE,                                                   \
      "the administrator can check bind_dn and its password in the settings")                      \
    X(DIRECTORY, "directory", UNAVAILABLE, "the administrator can check base and filters")         \
    X(TOO_MANY, "too_many", UNAVAILABLE, "narrow what is searched")                                \
    X(PROVIDER, "provider", UNAVAILABLE, "try again; the administrator can look at the provider")  \
    X(CLIENT, "client", UNAVAILABLE,                                                               \
      "the administrator can check client_id, client_secret and redirect_uri in the settings and " \
      "at the provider")                                                                           \
    X(REPLAYED, "replayed", DENIED, "sign in again from the beginning")                            \
    X(GONE, "gone", DENIED, "sign in again")                                                       \
    X(DECLINED, "declined", DENIED, "begin again and agree at the provider")                       \
    X(PENDING, "pending", UNAVAILABLE, "ask again after the interval")                             \
    X(SLOW_DOWN, "slow_down", UNAVAILABLE, "ask again after the interval and five seconds more")   \
    X(BAD_TOKEN, "bad_token", DENIED, "the administrator can look at the provider")                \
    X(ALGORITHM, "algorithm", DENIED,                                                              \
      "have the provider sign ID tokens with RS256, PS256 or "                                     \
      "ES256")                                                                                     \
    X(UNKNOWN_KEY, "unknown_key", DENIED,                                                          \
      "sign in again; the provider may just have changed "                                         \
      "its keys")                                                                                  \
    X(BAD_SIGNATURE, "bad_signature", DENIED,                                                      \
      "sign in again; if it stays so, tell the "                                                   \
      "administrator")                                                                             \
    X(WRONG_ISSUER, "wrong_issuer", DENIED,                                                        \
      "the issuer in the settings has to be exactly what "                                         \
      "the provider calls itself")                                                                 \
    X(WRONG_AUDIENCE, "wrong_audience", DENIED, "the administrator can check client_id")           \
    X(EXPIRED, "expired", DENIED, "sign in again; check the clocks of both machines")              \
    X(NOT_YET, "not_yet", DENIED, "check the clocks of both machines")                             \
    X(NONCE, "nonce", DENIED, "sign in again from the beginning")                                  \
    X(WRONG_SUBJECT, "wrong_subject", DENIED, "sign in again from the beginning")                  \
    X(NO_CLAIM, "no_claim", DENIED, "the administrator can check user_claim and the scopes")       \
    X(UNVERIFIED_MAIL, "unverified_mail", DENIED, "confirm your mail address at the provider")
enum reason {
#define X(id, name, kind, hint) REASON_##id,
    REASONS(X)
#undef X
    REASON_COUNT
};

/* Zero-initialise.  What base/ reports goes straight into e: it is about the request. */
struct refusal {
    enum reason why;
    struct err e;
};

/* Returns -1; the hint is the reason's, unless another is set after it. */
int refuse(struct refusal *r, enum reason why, const char *fmt, ...) PRINTF_LIKE(3, 4);

const char *reason_name(enum reason why);
const char *reason_kind(enum reason why);                        /* denied, invalid, unavailable */
const char *reason_hint(enum reason why);                        /* may be empty */
void refusal_write(const struct refusal *r, struct json_out *w); /* members of an open object */

#endif
