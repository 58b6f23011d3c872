/* Tokens and sessions: kept by their hashes, found by them in constant time. */
#include <sodium.h>
#include <stdio.h>

#include "auth/state.h"

#define PREFIX_BYTES 4

void auth_make_key(const char *prefix, char out[static KEY_TEXT_BYTES])
{
    uint8_t secret[32];
    randombytes_buf(secret, sizeof secret);
    memcpy(out, prefix, PREFIX_BYTES);
    sodium_bin2hex(out + PREFIX_BYTES, 65, secret, sizeof secret);
    sodium_memzero(secret, sizeof secret);
}

void auth_hash_key(struct str text, uint8_t out[static KEY_HASH_BYTES])
{
    crypto_generichash(out, KEY_HASH_BYTES, (const unsigned char *)text.p, text.n, NULL, 0);
}

/* The first bytes of a hash are as good as any other number to find it by; all of it is compared then. */
static uint64_t short_of(const uint8_t hash[static KEY_HASH_BYTES])
{
    uint64_t v;
    memcpy(&v, hash, sizeof v);
    return v;
}

static void key_clear(struct auth_key *k)
{
    for (size_t i = 0; i < k->tenants; i++)
        free(k->tenant[i]);
    free(k->tenant);
    free(k->name);
    free(k->user);
}

void keys_clear(struct keys *ks)
{
    for (size_t i = 0; i < ks->n; i++)
        key_clear(&ks->at[i]);
    free(ks->at);
    map_free(&ks->by_hash);
}

const struct auth_key *auth_key_of(const struct auth *a, enum key_kind kind,
                                   const uint8_t hash[static KEY_HASH_BYTES])
{
    const struct keys *ks = &a->keys[kind];
    uint64_t i;
    if (!map_get(&ks->by_hash, short_of(hash), &i))
        return NULL;
    return sodium_memcmp(ks->at[i].hash, hash, KEY_HASH_BYTES) == 0 ? &ks->at[i] : NULL;
}

const struct auth_key *auth_find_key(const struct auth *a, enum key_kind kind, struct str user,
                                     struct str name)
{
    const struct keys *ks = &a->keys[kind];
    for (size_t i = 0; i < ks->n; i++)
        if (str_is(user, ks->at[i].user) && str_is(name, ks->at[i].name))
            return &ks->at[i];
    return NULL;
}

const struct auth_key *auth_key_at(const struct auth *a, enum key_kind kind, size_t i)
{
    return i < a->keys[kind].n ? &a->keys[kind].at[i] : NULL;
}

size_t auth_count_keys(const struct auth *a, enum key_kind kind, struct str user)
{
    const struct keys *ks = &a->keys[kind];
    size_t n = 0;
    for (size_t i = 0; i < ks->n; i++)
        n += !ks->at[i].replaced && str_is(user, ks->at[i].user);
    return n;
}

const struct auth_key *auth_oldest_key(const struct auth *a, enum key_kind kind, struct str user)
{
    const struct keys *ks = &a->keys[kind];
    const struct auth_key *oldest = NULL;
    for (size_t i = 0; i < ks->n; i++)
        if (!ks->at[i].replaced && str_is(user, ks->at[i].user) &&
            (!oldest || ks->at[i].created_ms < oldest->created_ms))
            oldest = &ks->at[i];
    return oldest;
}

int auth_put_key(struct auth *a, enum key_kind kind, const struct auth_key *k, struct err *e)
{
    struct keys *ks = &a->keys[kind];
    uint64_t at;
    if (kind == KEY_TOKEN && auth_find_key(a, kind, str_of(k->user), str_of(k->name))) {
        err_set(e, ERR_CONFLICT, "'%s' has a token '%s' already", k->user, k->name);
        return err_hint(e, "choose another name, or delete that one first");
    }
    if (ks->n >= KEYS_MAX || map_get(&ks->by_hash, short_of(k->hash), &at)) {
        err_set(e, ERR_CONFLICT, "there are %zu already", ks->n);
        return err_hint(e, "delete those that nobody uses: nightshift tokens");
    }
    vec_grow(ks->at, ks->n, ks->cap);
    struct auth_key *mine = &ks->at[ks->n];
    *mine = *k;
    mine->name = xstrdup(k->name);
    mine->user = xstrdup(k->user);
    mine->tenant = xcalloc(k->tenants + 1, sizeof *mine->tenant);
    for (size_t i = 0; i < k->tenants; i++)
        mine->tenant[i] = xstrdup(k->tenant[i]);
    map_set(&ks->by_hash, short_of(k->hash), ks->n++);
    return 0;
}

bool auth_drop_key(struct auth *a, enum key_kind kind, const uint8_t hash[static KEY_HASH_BYTES])
{
    struct keys *ks = &a->keys[kind];
    const struct auth_key *k = auth_key_of(a, kind, hash);
    if (!k)
        return false;
    size_t i = (size_t)(k - ks->at);
    map_remove(&ks->by_hash, short_of(hash));
    key_clear(&ks->at[i]);
    ks->at[i] = ks->at[--ks->n];
    if (i < ks->n)
        map_set(&ks->by_hash, short_of(ks->at[i].hash), i);
    return true;
}

const struct auth_key *auth_renew_session(struct auth *a, const uint8_t old[static KEY_HASH_BYTES],
                                          const uint8_t fresh[static KEY_HASH_BYTES],
                                          int64_t now_ms, int64_t old_until_ms)
{
    const struct keys *ks = &a->keys[KEY_SESSION];
    const struct auth_key *k = auth_key_of(a, KEY_SESSION, old);
    struct err none;
    if (!k || k->replaced)
        return NULL;
    size_t at = (size_t)(k - ks->at);
    if (!ks->at[at].chain)
        ks->at[at].chain = 1 + randombytes_uniform(UINT32_MAX);
    struct auth_key next = ks->at[at];
    memcpy(next.hash, fresh, sizeof next.hash);
    next.renewed_ms = now_ms;
    if (auth_put_key(a, KEY_SESSION, &next, &none) < 0)
        return NULL;
    ks->at[at].replaced = true;
    if (!ks->at[at].expires_ms || ks->at[at].expires_ms > old_until_ms)
        ks->at[at].expires_ms = old_until_ms;
    return auth_key_of(a, KEY_SESSION, fresh);
}

bool auth_is_same_session(const struct auth_key *a, const struct auth_key *b)
{
    return sodium_memcmp(a->hash, b->hash, sizeof a->hash) == 0 ||
           (a->chain && a->chain == b->chain && strcmp(a->user, b->user) == 0);
}

void auth_used_key(struct auth *a, enum key_kind kind, const uint8_t hash[static KEY_HASH_BYTES],
                   int64_t now_ms)
{
    const struct auth_key *k = auth_key_of(a, kind, hash);
    if (k)
        a->keys[kind].at[k - a->keys[kind].at].used_ms = now_ms;
}

/* ---- as the store keeps it ---- */

void auth_key_name(const uint8_t hash[static KEY_HASH_BYTES], char out[static 65])
{
    sodium_bin2hex(out, 65, hash, KEY_HASH_BYTES);
}

void auth_key_write(const struct auth_key *k, struct buf *out)
{
    struct json_out w = { .b = out };
    AUTO(buf_free) struct buf scopes = BUF(100);
    for (int i = 0; i < TOKEN_SCOPE_COUNT; i++)
        if (k->scopes & (1u << i))
            buf_printf(&scopes, "%s%s", scopes.n ? "," : "", token_scope_name((enum token_scope)i));
    json_begin(&w, NULL, '{');
    json_put_str(&w, "name", str_of(k->name));
    json_put_str(&w, "user", str_of(k->user));
    json_put_str(&w, "scopes", buf_str(&scopes));
    if (k->tenants_only)
        json_put_bool(&w, "tenants_only", true);
    json_begin(&w, "tenants", '[');
    for (size_t i = 0; i < k->tenants; i++)
        json_put_str(&w, NULL, str_of(k->tenant[i]));
    json_end(&w, ']');
    json_put_i64(&w, "created_ms", k->created_ms);
    json_put_i64(&w, "expires_ms", k->expires_ms);
    json_put_i64(&w, "used_ms", k->used_ms);
    if (k->chain) {
        json_put_u64(&w, "chain", k->chain);
        json_put_i64(&w, "renewed_ms", k->renewed_ms);
        json_put_bool(&w, "replaced", k->replaced);
    }
    json_end(&w, '}');
}

static int read_scopes(struct str text, unsigned *out, struct err *e)
{
    struct str word;
    enum token_scope s;
    *out = 0;
    while (text.n) {
        str_cut(text, ',', &word, &text);
        if (!token_scope_parse(word, &s))
            return err_set(e, ERR_INVALID, "scope '%.*s' is not known here", STR_ARG(word));
        *out |= 1u << s;
    }
    return 0;
}

static int read_key(const struct json *o, struct arena *a, struct auth_key *k, struct err *e)
{
    struct str name = STR(""), user = STR(""), scopes = STR(""), tenant;
    const struct json *list = json_find(o, "tenants");
    if (json_need_str(o, "name", 300, &name, e) < 0 ||
        json_need_str(o, "user", PERSON_NAME_MAX, &user, e) < 0 ||
        json_need_str(o, "scopes", 100, &scopes, e) < 0 || read_scopes(scopes, &k->scopes, e) < 0 ||
        json_get_bool(o, "tenants_only", &k->tenants_only, e) < 0 ||
        json_get_i64(o, "created_ms", INT64_MIN, INT64_MAX, &k->created_ms, e) < 0 ||
        json_get_i64(o, "expires_ms", INT64_MIN, INT64_MAX, &k->expires_ms, e) < 0 ||
        json_get_i64(o, "used_ms", INT64_MIN, INT64_MAX, &k->used_ms, e) < 0 ||
        json_get_u64(o, "chain", UINT32_MAX, &k->chain, e) < 0 ||
        json_get_i64(o, "renewed_ms", INT64_MIN, INT64_MAX, &k->renewed_ms, e) < 0 ||
        json_get_bool(o, "replaced", &k->replaced, e) < 0)
        return -1;
    k->name = arena_strndup(a, name.p, name.n);
    k->user = arena_strndup(a, user.p, user.n);
    k->tenant = arena_array(a, char *, KEY_TENANTS_MAX);
    for (const struct json *v = list ? json_first(list) : NULL; v && k->tenants < KEY_TENANTS_MAX;
         v = json_next(list, v)) {
        if (json_as_str(v, 300, &tenant, e) < 0)
            return -1;
        k->tenant[k->tenants++] = arena_strndup(a, tenant.p, tenant.n);
    }
    return 0;
}

int auth_read_key(struct auth *a, enum key_kind kind, struct str name, struct str json,
                  struct err *e)
{
    AUTO(arena_free) struct arena arena = { 0 };
    struct auth_key k = { 0 };
    size_t n = 0;
    if (sodium_hex2bin(k.hash, sizeof k.hash, name.p, name.n, NULL, &n, NULL) != 0 ||
        n != sizeof k.hash)
        return err_set(e, ERR_INVALID, "'%.*s' is not the name of a key", STR_ARG(name));
    AUTO(json_free_p) struct json_doc *d = json_read(json, e);
    if (!d || read_key(json_root(d), &arena, &k, e) < 0)
        return -1;
    return auth_put_key(a, kind, &k, e);
}
