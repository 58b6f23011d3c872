/* auth - who is calling, and which tenants are theirs; never whether something fits.
 *
 * On a unix socket the kernel tells the uid, and the uid's name is the user.  Over TCP a token does:
 * 32 random bytes that are shown once; what is kept is their hash.  Role 0 is nobody, so whatever
 * forgets to say who may do it is closed.
 */
#ifndef NS_AUTH_AUTH_H
#define NS_AUTH_AUTH_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define ROLES(X)                                                                                   \
    X(NOBODY, "nobody")                                                                            \
    X(PUBLIC, "public") /* needs no identity */                                                    \
    X(MEMBER, "member") /* of some tenant */                                                       \
    X(ADMIN, "admin")
enum role {
#define X(id, name) ROLE_##id,
    ROLES(X)
#undef X
    ROLE_COUNT
};
const char *role_name(enum role r);
bool role_parse(struct str name, enum role *out);

struct identity {
    char user[254];
    uint32_t uid; /* UINT32_MAX: known by a token only */
    enum role role;
};

struct auth;

#define TOKEN_HASH_BYTES 32
#define TOKEN_TEXT_BYTES 72 /* "nst_" and 64 hex digits, with its NUL */

struct auth *auth_new(void);
struct auth *auth_free(struct auth *a); /* NULL ok; returns NULL */
void auth_free_p(struct auth **a);

/* From the site's file. */
void auth_add_admin(struct auth *a, struct str user);
void auth_add_member(struct auth *a, struct str tenant, struct str user);
void auth_set_default_tenant(struct auth *a, struct str tenant); /* of whoever is in no other */
void auth_set_only_user(struct auth *a, uint32_t uid); /* without root: nobody else is served */

/* ---- who ---- */

int auth_local(const struct auth *a, uint32_t uid, struct identity *out, struct err *e) MUST_USE;
int auth_token(const struct auth *a, struct str token, int64_t now_ms, struct identity *out,
               struct err *e) MUST_USE;

/* The tenants of a user, in the order of the site's file; in `a`. */
const struct str *auth_tenants(const struct auth *a, struct str user, struct arena *arena,
                               size_t *out_n);
bool auth_is_member(const struct auth *a, struct str user, struct str tenant);

/* ---- tokens ---- */

struct auth_token {
    uint8_t hash[TOKEN_HASH_BYTES];
    char *name, *user;
    enum role role;
    int64_t created_ms, expires_ms; /* 0: never */
};
void auth_make_token(char out[static TOKEN_TEXT_BYTES]);
void auth_hash_token(struct str token, uint8_t out[static TOKEN_HASH_BYTES]);
/* Copies it.  ERR_CONFLICT when that user has one of that name. */
int auth_put_token(struct auth *a, const struct auth_token *t, struct err *e) MUST_USE;
const struct auth_token *auth_find_token(const struct auth *a, struct str user, struct str name);
const struct auth_token *auth_token_at(const struct auth *a, size_t i); /* NULL past the last */
bool auth_drop_token(struct auth *a, const uint8_t hash[static TOKEN_HASH_BYTES]);

#endif
