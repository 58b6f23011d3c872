/* provider - an OpenID provider, spoken to as its client: discovery, tokens, who it is about.
 *
 * Opened anew for each sign-in.  The issuer must call itself exactly as it was called; each
 * endpoint must be https or on this machine.  What a provider says of an error is told by its code
 * (a word), never by its text.
 */
#ifndef NS_SIGNIN_PROVIDER_H
#define NS_SIGNIN_PROVIDER_H

#include "signin/claims.h"
#include "signin/fetch.h"
#include "signin/verb.h"

struct provider_client {
    const char *issuer, *client_id, *client_secret, *ca_file, *proxy, *scopes;
    struct claims_rule claims;
};

/* The fields that every verb with a provider takes; `where` is the struct's member. */
#define PROVIDER_FIELDS(type, where)                                                               \
    { "issuer", FIELD_TEXT, offsetof(type, where.issuer), 1024, true },                            \
        { "ca_file", FIELD_TEXT, offsetof(type, where.ca_file), 4096, false },                     \
    {                                                                                              \
        "proxy", FIELD_TEXT, offsetof(type, where.proxy), 1024, false                              \
    }
#define CLIENT_FIELDS(type, where)                                                                 \
    PROVIDER_FIELDS(type, where),                                                                  \
        { "client_id", FIELD_TEXT, offsetof(type, where.client_id), 512, true },                   \
        { "client_secret", FIELD_SECRET, offsetof(type, where.client_secret), 1024, false },       \
        { "scopes", FIELD_TEXT, offsetof(type, where.scopes), 1024, false },                       \
        { "user_claim", FIELD_TEXT, offsetof(type, where.claims.user_claim), 128, false },         \
    {                                                                                              \
        "groups_claim", FIELD_TEXT, offsetof(type, where.claims.groups_claim), 128, false          \
    }

enum grant {
    GRANT_CODE,
    GRANT_REFRESH,
    GRANT_DEVICE
};

#define ENDPOINTS(X)                                                                               \
    X(AUTHORIZATION, "authorization_endpoint", true)                                               \
    X(TOKEN, "token_endpoint", true)                                                               \
    X(JWKS, "jwks_uri", true)                                                                      \
    X(USERINFO, "userinfo_endpoint", false)                                                        \
    X(DEVICE, "device_authorization_endpoint", false)                                              \
    X(END_SESSION, "end_session_endpoint", false)
enum endpoint {
#define X(id, name, needed) ENDPOINT_##id,
    ENDPOINTS(X)
#undef X
    ENDPOINT_COUNT
};

struct provider;

struct provider *provider_open(const struct provider_client *c, struct refusal *r);
void provider_close_p(struct provider **p);
void provider_write(const struct provider *p, struct json_out *out); /* its endpoints */

/* Adds the client's name and secret to the form and sends it; the answer is an object. */
struct json_doc *provider_post(struct provider *p, enum endpoint to, enum grant why,
                               struct buf *form, struct refusal *r);

struct provider_expect {
    const char *nonce;   /* NULL: none was sent */
    const char *subject; /* NULL: anybody */
    bool token_needed;   /* an ID token has to be there; else userinfo will do */
};

/* Who the tokens are about: writes the person, and refresh_token if there is one. */
int provider_person(struct provider *p, const struct json *tokens,
                    const struct provider_expect *want, struct json_out *out, struct refusal *r);

#endif
