/* oauth - we vouch for people to the tools around us: an OAuth 2 provider (RFC 6749, RFC 7636) without HTTP.
 *
 * A client is a tool that an administrator has registered, with the addresses to which people may be sent
 * back.  Somebody who is signed in gets a code for it; the client changes the code, once and within a minute,
 * for a token with which it asks who that is.  Codes and tokens are random, kept as hashes, in memory only and
 * in a table of fixed size.  A code that comes twice takes the token with it that it gave.
 */
#ifndef NS_AUTH_OAUTH_H
#define NS_AUTH_OAUTH_H

#include "auth/auth.h"

#define OAUTH_CODE_MS 60000
#define OAUTH_TOKEN_MS 600000
#define OAUTH_CLIENTS_MAX 200
#define OAUTH_REDIRECTS_MAX 16
#define OAUTH_REDIRECT_MAX 500 /* bytes */
#define OAUTH_ID_MAX 64
#define OAUTH_NAME_MAX 200
#define OAUTH_GRANTS_MAX 4096
#define OAUTH_GRANTS_OF_USER 32 /* beyond them the oldest is gone */
#define OAUTH_CHALLENGE_BYTES 43

#define OAUTH_CODE_PREFIX "nsa_"
#define OAUTH_TOKEN_PREFIX "nso_"
#define OAUTH_SECRET_PREFIX "nsc_"

/* id, as it is said, HTTP status where it is not sent by a redirect */
#define OAUTH_ERRORS(X)                                                                            \
    X(NONE, "", 200)                                                                               \
    X(INVALID_REQUEST, "invalid_request", 400)                                                     \
    X(INVALID_CLIENT, "invalid_client", 401)                                                       \
    X(INVALID_GRANT, "invalid_grant", 400)                                                         \
    X(UNSUPPORTED_GRANT_TYPE, "unsupported_grant_type", 400)                                       \
    X(UNSUPPORTED_RESPONSE_TYPE, "unsupported_response_type", 400)                                 \
    X(ACCESS_DENIED, "access_denied", 403)                                                         \
    X(LOGIN_REQUIRED, "login_required", 401)                                                       \
    X(TEMPORARILY_UNAVAILABLE, "temporarily_unavailable", 503)                                     \
    X(INVALID_TOKEN, "invalid_token", 401)
enum oauth_error {
#define X(id, name, status) OAUTH_##id,
    OAUTH_ERRORS(X)
#undef X
    OAUTH_ERROR_COUNT
};
const char *oauth_error_name(enum oauth_error e);
int oauth_error_status(enum oauth_error e);

/* ---- clients ---- */

struct oauth_client {
    char *id, *name;
    char **redirect;
    size_t redirects;
    bool has_secret; /* false: a public one, known by its PKCE alone */
    uint8_t hash[KEY_HASH_BYTES];
    int64_t created_ms;
};

struct oauth;
struct oauth *oauth_new(void);
struct oauth *oauth_free(struct oauth *o); /* NULL ok; returns NULL */
void oauth_free_p(struct oauth **o);

int oauth_check_id(struct str id, struct err *e) MUST_USE;
int oauth_check_redirect(struct str uri, struct err *e) MUST_USE; /* https, or http on loopback */

/* Copies it, in the place of the one of that id.  ERR_CONFLICT: there are too many. */
int oauth_put_client(struct oauth *o, const struct oauth_client *c, struct err *e) MUST_USE;
const struct oauth_client *oauth_find_client(const struct oauth *o, struct str id);
const struct oauth_client *oauth_client_at(const struct oauth *o,
                                           size_t i);   /* NULL past the last */
bool oauth_drop_client(struct oauth *o, struct str id); /* with its codes and tokens */
bool oauth_has_redirect(const struct oauth_client *c, struct str uri); /* exactly this one */

/* What the store keeps of a client, and back. */
void oauth_client_write(const struct oauth_client *c, struct buf *out);
int oauth_read_client(struct oauth *o, struct str id, struct str json, struct err *e) MUST_USE;

/* "Basic aWQ6c2VjcmV0": a client's id and secret, in `a`; false when it is not that. */
bool oauth_read_basic(struct str header, struct arena *a, struct str *out_id,
                      struct str *out_secret);

/* ---- codes and tokens ---- */

struct oauth_ask {
    struct str client, redirect, user;
    struct str challenge; /* S256 */
};
bool oauth_is_challenge(struct str s);
/* *out is the code.  TEMPORARILY_UNAVAILABLE: the table is full. */
enum oauth_error oauth_give_code(struct oauth *o, const struct oauth_ask *a, int64_t now_ms,
                                 char out[static KEY_TEXT_BYTES], struct err *e) MUST_USE;

struct oauth_redeem {
    struct str client, secret; /* secret.p NULL: none was given */
    struct str code, redirect, verifier;
};
/* *out is the token.  Whatever is wrong with a code that is the client's uses it up. */
enum oauth_error oauth_redeem(struct oauth *o, const struct oauth_redeem *r, int64_t now_ms,
                              char out[static KEY_TEXT_BYTES], struct err *e) MUST_USE;

/* Whom a token is about, and when they said so; false: it is none, or over. */
struct oauth_holder {
    char user[254];
    int64_t since_ms;
};
bool oauth_holder_of(const struct oauth *o, struct str token, int64_t now_ms,
                     struct oauth_holder *out);
void oauth_drop_user(struct oauth *o, struct str user); /* their codes and tokens */

#endif
