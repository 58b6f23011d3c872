#include "auth/auth.h"

#include <pwd.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#define PASSWD_BYTES (64u << 10)
#define TOKEN_PREFIX "nst_"

struct member {
    char *tenant, *user;
};

struct auth {
    char **admin;
    size_t admins, admin_cap;
    struct member *member;
    size_t members, member_cap;
    struct auth_token *token;
    size_t tokens, token_cap;
    char *default_tenant;
    bool single;
    uint32_t only_uid;
};

static const char *const names[] = {
#define X(id, name) name,
    ROLES(X)
#undef X
};

const char *role_name(enum role r)
{
    return (size_t)r < ARRAY_LEN(names) ? names[r] : "?";
}

bool role_parse(struct str name, enum role *out)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_is(name, names[i])) {
            *out = (enum role)i;
            return true;
        }
    return false;
}

static char *copy(struct str s)
{
    char *p = xcalloc(s.n + 1, 1);
    memcpy(p, s.p, s.n);
    return p;
}

struct auth *auth_new(void)
{
    if (sodium_init() < 0)
        abort(); /* no randomness: nothing we could give out would be a secret */
    return xcalloc(1, sizeof(struct auth));
}

static void token_clear(struct auth_token *t)
{
    free(t->name);
    free(t->user);
}

struct auth *auth_free(struct auth *a)
{
    if (!a)
        return NULL;
    for (size_t i = 0; i < a->admins; i++)
        free(a->admin[i]);
    for (size_t i = 0; i < a->members; i++) {
        free(a->member[i].tenant);
        free(a->member[i].user);
    }
    for (size_t i = 0; i < a->tokens; i++)
        token_clear(&a->token[i]);
    free(a->admin);
    free(a->member);
    free(a->token);
    free(a->default_tenant);
    free(a);
    return NULL;
}

void auth_free_p(struct auth **a)
{
    *a = auth_free(*a);
}

void auth_add_admin(struct auth *a, struct str user)
{
    vec_grow(a->admin, a->admins, a->admin_cap);
    a->admin[a->admins++] = copy(user);
}

void auth_add_member(struct auth *a, struct str tenant, struct str user)
{
    vec_grow(a->member, a->members, a->member_cap);
    a->member[a->members++] = (struct member){ copy(tenant), copy(user) };
}

void auth_set_default_tenant(struct auth *a, struct str tenant)
{
    free(a->default_tenant);
    a->default_tenant = copy(tenant);
}

void auth_set_only_user(struct auth *a, uint32_t uid)
{
    a->single = true;
    a->only_uid = uid;
}

static bool is_admin(const struct auth *a, const char *user)
{
    for (size_t i = 0; i < a->admins; i++)
        if (strcmp(a->admin[i], user) == 0)
            return true;
    return false;
}

int auth_local(const struct auth *a, uint32_t uid, struct identity *out, struct err *e)
{
    struct identity id = { .uid = uid, .role = ROLE_MEMBER };
    struct passwd pw, *found = NULL;
    AUTO(free_p) char *space = xmalloc(PASSWD_BYTES);
    if (a->single && uid != a->only_uid && uid != 0) {
        err_set(e, ERR_DENIED, "this Nightshift runs without root and serves one user only");
        return err_hint(e, "ask for it to be installed as root; see the installation guide");
    }
    if (getpwuid_r(uid, &pw, space, PASSWD_BYTES, &found) == 0 && found &&
        strlen(found->pw_name) < sizeof id.user)
        snprintf(id.user, sizeof id.user, "%s", found->pw_name);
    else
        snprintf(id.user, sizeof id.user, "uid-%u", uid);
    if (uid == 0 || uid == geteuid() || is_admin(a, id.user))
        id.role = ROLE_ADMIN;
    *out = id;
    return 0;
}

int auth_token(const struct auth *a, struct str token, int64_t now_ms, struct identity *out,
               struct err *e)
{
    uint8_t hash[TOKEN_HASH_BYTES];
    struct identity id = { .uid = UINT32_MAX };
    auth_hash_token(token, hash);
    for (size_t i = 0; i < a->tokens; i++) {
        const struct auth_token *t = &a->token[i];
        if (sodium_memcmp(hash, t->hash, sizeof hash) != 0)
            continue;
        if (t->expires_ms && now_ms >= t->expires_ms) {
            err_set(e, ERR_DENIED, "the token '%s' has expired", t->name);
            return err_hint(e, "make a new one: nightshift tokens create");
        }
        snprintf(id.user, sizeof id.user, "%s", t->user);
        id.role = t->role;
        *out = id;
        return 0;
    }
    err_set(e, ERR_DENIED, "the token is not known");
    return err_hint(e, "make one on the machine itself: nightshift tokens create");
}

bool auth_is_member(const struct auth *a, struct str user, struct str tenant)
{
    bool some = false;
    for (size_t i = 0; i < a->members; i++) {
        bool theirs = str_is(user, a->member[i].user);
        some |= theirs;
        if (theirs && str_is(tenant, a->member[i].tenant))
            return true;
    }
    return !some && a->default_tenant && str_is(tenant, a->default_tenant);
}

const struct str *auth_tenants(const struct auth *a, struct str user, struct arena *arena,
                               size_t *out_n)
{
    struct str *list = arena_array(arena, struct str, a->members + 1);
    size_t n = 0;
    for (size_t i = 0; i < a->members; i++)
        if (str_is(user, a->member[i].user))
            list[n++] = str_of(a->member[i].tenant);
    if (n == 0 && a->default_tenant)
        list[n++] = str_of(a->default_tenant);
    *out_n = n;
    return list;
}

/* ---- tokens ---- */

void auth_make_token(char out[static TOKEN_TEXT_BYTES])
{
    uint8_t secret[32];
    randombytes_buf(secret, sizeof secret);
    memcpy(out, TOKEN_PREFIX, sizeof TOKEN_PREFIX);
    sodium_bin2hex(out + sizeof TOKEN_PREFIX - 1, 65, secret, sizeof secret);
    sodium_memzero(secret, sizeof secret);
}

void auth_hash_token(struct str token, uint8_t out[static TOKEN_HASH_BYTES])
{
    crypto_generichash(out, TOKEN_HASH_BYTES, (const unsigned char *)token.p, token.n, NULL, 0);
}

const struct auth_token *auth_find_token(const struct auth *a, struct str user, struct str name)
{
    for (size_t i = 0; i < a->tokens; i++)
        if (str_is(user, a->token[i].user) && str_is(name, a->token[i].name))
            return &a->token[i];
    return NULL;
}

int auth_put_token(struct auth *a, const struct auth_token *t, struct err *e)
{
    if (auth_find_token(a, str_of(t->user), str_of(t->name))) {
        err_set(e, ERR_CONFLICT, "'%s' has a token '%s' already", t->user, t->name);
        return err_hint(e, "choose another name, or delete that one first");
    }
    vec_grow(a->token, a->tokens, a->token_cap);
    a->token[a->tokens] = *t;
    a->token[a->tokens].name = xstrdup(t->name);
    a->token[a->tokens++].user = xstrdup(t->user);
    return 0;
}

const struct auth_token *auth_token_at(const struct auth *a, size_t i)
{
    return i < a->tokens ? &a->token[i] : NULL;
}

bool auth_drop_token(struct auth *a, const uint8_t hash[static TOKEN_HASH_BYTES])
{
    for (size_t i = 0; i < a->tokens; i++)
        if (memcmp(a->token[i].hash, hash, TOKEN_HASH_BYTES) == 0) {
            token_clear(&a->token[i]);
            a->token[i] = a->token[--a->tokens];
            return true;
        }
    return false;
}
