/* auth - who is calling: by the unix socket, a token or a browser's session; never whether they may.
 *
 * On a unix socket the kernel tells the uid, and the uid's name is the user.  Over TCP a key does: a token, or
 * the cookie of a session; 32 random bytes that are shown once, of which only the hash is kept.  What the
 * caller may do follows from people.h and role.h.
 */
#ifndef NS_AUTH_AUTH_H
#define NS_AUTH_AUTH_H

#include "auth/people.h"

#define VIAS(X)                                                                                    \
    X(NONE, "nobody")                                                                              \
    X(SOCKET, "socket") /* the unix socket of this machine */                                      \
    X(TOKEN, "token")                                                                              \
    X(SESSION, "session") /* a browser that signed in */                                           \
    X(CLUSTER, "cluster") /* a pod, by a token of Kubernetes */
enum via {
#define X(id, name) VIA_##id,
    VIAS(X)
#undef X
    VIA_COUNT
};
const char *via_name(enum via v);

#define KEY_HASH_BYTES 32
#define KEY_TEXT_BYTES 72 /* "nst_" and 64 hex digits, with its NUL */
#define KEY_NAME_MAX 64
#define KEY_TENANTS_MAX 64
#define KEYS_MAX 100000 /* of one kind, of all people together */
#define TOKENS_OF_USER 100
#define SESSIONS_OF_USER 50 /* one more ends the oldest */

struct identity {
    char user[254];
    uint32_t uid; /* UINT32_MAX: not known by the socket */
    bool root;    /* root, or whom the server runs as: an administrator whatever is said */
    enum via via;
    char key[KEY_NAME_MAX + 1];   /* the token's name */
    char machine[65];             /* whose agent it is, and nothing else; empty: a person */
    uint8_t hash[KEY_HASH_BYTES]; /* of the token or session */
    unsigned scopes;              /* TOKEN_… bits; without a token all of them */
    bool tenants_only;            /* what its user may on the site does not count */
    const char *const *tenant;    /* it is good for these only; valid until keys change */
    size_t tenants;               /* 0: for all */
};

struct auth;
struct auth *auth_new(void);
struct auth *auth_free(struct auth *a); /* NULL ok; returns NULL */
void auth_free_p(struct auth **a);
struct people *auth_people(struct auth *a);
void auth_set_only_user(struct auth *a, uint32_t uid);    /* without root: nobody else is served */
void auth_set_provider_ms(struct auth *a, int64_t ms);    /* see ways_provider_ms; 0: for ever */
bool auth_is_root(const struct auth *a, struct str user); /* root, or whom the server runs as */

/* ---- who ---- */

/* Who calls on a socket of this machine, by their uid.  Those from which jobs are run are nobody's on the
 * machine: whoever has one is its owner, or nobody. */
struct auth_local {
    uint32_t uid;
    const char *name; /* the machine's for it; NULL: it has none.  Root and ourselves need none */
    bool of_jobs;     /* it is one of those */
    struct str owner; /* of its account of ours; empty: nobody has it */
};
int auth_local(const struct auth *a, const struct auth_local *who, struct identity *out,
               struct err *e) MUST_USE;
int auth_token(const struct auth *a, struct str token, int64_t now_ms, struct identity *out,
               struct err *e) MUST_USE;
int auth_session(const struct auth *a, struct str cookie, int64_t now_ms, struct identity *out,
                 struct err *e) MUST_USE;

/* ---- keys: tokens and sessions ---- */

enum key_kind {
    KEY_TOKEN,
    KEY_SESSION,
    KEY_KIND_COUNT
};

struct auth_key {
    uint8_t hash[KEY_HASH_BYTES];
    char *name, *user; /* a session's name says with what and from where it was opened */
    unsigned scopes;
    bool tenants_only; /* what its user may on the site does not count: of when tokens had roles */
    char **tenant;
    size_t tenants;
    int64_t created_ms, expires_ms; /* 0: never */
    int64_t used_ms;                /* lately; written down now and then */
    /* A session's key is renewed now and then: */
    uint64_t chain;     /* keys of one session have the same one; 0: it has had no other */
    int64_t renewed_ms; /* when this one came; 0: with the session */
    bool replaced;      /* the next one is there; it is good for a moment only */
};
void auth_make_key(const char *prefix, char out[static KEY_TEXT_BYTES]); /* a prefix of 4 */
void auth_hash_key(struct str text, uint8_t out[static KEY_HASH_BYTES]);
#define TOKEN_PREFIX "nst_"
#define SESSION_PREFIX "nss_"

/* Copies it.  ERR_CONFLICT when that user has a token of that name, or there are too many. */
int auth_put_key(struct auth *a, enum key_kind kind, const struct auth_key *k, struct err *e)
    MUST_USE;
const struct auth_key *auth_find_key(const struct auth *a, enum key_kind kind, struct str user,
                                     struct str name);
const struct auth_key *auth_key_at(const struct auth *a, enum key_kind kind,
                                   size_t i); /* NULL past the last */
/* Those that were replaced do not count. */
size_t auth_count_keys(const struct auth *a, enum key_kind kind, struct str user);
const struct auth_key *auth_oldest_key(const struct auth *a, enum key_kind kind, struct str user);
const struct auth_key *auth_key_of(const struct auth *a, enum key_kind kind,
                                   const uint8_t hash[static KEY_HASH_BYTES]);
bool auth_drop_key(struct auth *a, enum key_kind kind, const uint8_t hash[static KEY_HASH_BYTES]);
/* A new key for a session, with its end; the old one is good until old_until_ms.  NULL: there is none to renew. */
const struct auth_key *auth_renew_session(struct auth *a, const uint8_t old[static KEY_HASH_BYTES],
                                          const uint8_t fresh[static KEY_HASH_BYTES],
                                          int64_t now_ms, int64_t old_until_ms);
bool auth_is_same_session(const struct auth_key *a, const struct auth_key *b);
void auth_used_key(struct auth *a, enum key_kind kind, const uint8_t hash[static KEY_HASH_BYTES],
                   int64_t now_ms);

/* What the store keeps of a key, under its hash in hex, and back. */
void auth_key_name(const uint8_t hash[static KEY_HASH_BYTES], char out[static 65]);
void auth_key_write(const struct auth_key *k, struct buf *out);
int auth_read_key(struct auth *a, enum key_kind kind, struct str name, struct str json,
                  struct err *e) MUST_USE;

#endif
