/* Signing a command line in (as RFC 8628): it shows a code, somebody says yes in a browser, it gets a token.
 *
 * The browser is one that is signed in here, in whatever way; or the code is the identity provider's own, and
 * people say yes there. */
#include <sodium.h>
#include <stdio.h>

#include "api/audit.h"
#include "api/directory.h"
#include "api/door.h"

#define LOGINS_MAX 1000 /* that wait for somebody to say yes */
#define LOGINS_OF_PLACE 10
#define LOGIN_MS (INT64_C(10) * 60 * 1000)
#define TOKEN_MS (INT64_C(90) * 86400 * 1000)
#define INTERVAL_S 2
#define CODE_LETTERS 8 /* of 20 consonants: 34 bits, for ten minutes */

struct login {
    uint8_t device[KEY_HASH_BYTES]; /* what the command line shows when it asks again */
    char code[CODE_LETTERS + 2];    /* what people type: BCDF-GHJK */
    char name[KEY_NAME_MAX + 1];    /* of the machine, as it says */
    char from[64];
    uint64_t place; /* which that is */
    unsigned scopes;
    int64_t until_ms;
    char *provider_code; /* it is the provider's: what to ask there */
    char user[254];      /* who said yes; "" nobody yet */
    bool denied;
    struct login *next;
};

static void login_drop(struct door *d, struct login *l)
{
    for (struct login **at = &d->logins; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    if (l->provider_code)
        sodium_memzero(l->provider_code, strlen(l->provider_code));
    free(l->provider_code);
    free(l);
    d->n_logins--;
}

void login_free(struct door *d)
{
    while (d->logins)
        login_drop(d, d->logins);
}

static void drop_old(struct door *d, int64_t now_ms)
{
    for (struct login *l = d->logins, *next; l; l = next) {
        next = l->next;
        if (l->until_ms <= now_ms)
            login_drop(d, l);
    }
}

static void make_code(char out[static CODE_LETTERS + 2])
{
    static const char letters[] = "BCDFGHJKLMNPQRSTVWXZ";
    size_t n = 0;
    for (size_t i = 0; i < CODE_LETTERS; i++) {
        if (i == CODE_LETTERS / 2)
            out[n++] = '-';
        out[n++] = letters[randombytes_uniform(sizeof letters - 1)];
    }
    out[n] = '\0';
}

/* ---- begin ---- */

static int read_login(struct call *c, const struct json *o, struct login *l, bool *provider,
                      struct err *e)
{
    struct str name = STR("command line");
    bool manage = false;
    c->field = "name";
    if (json_get_str(o, "name", KEY_NAME_MAX - 24, &name, e) < 0)
        return -1;
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] < ' ' || name.p[i] > '~')
            return err_set(e, ERR_INVALID, "field 'name': letters, digits and signs of ASCII only");
    c->field = "manage";
    if (json_get_bool(o, "manage", &manage, e) < 0)
        return -1;
    c->field = "provider";
    if (json_get_bool(o, "provider", provider, e) < 0)
        return -1;
    c->field = NULL;
    snprintf(l->name, sizeof l->name, "%.*s", STR_ARG(name));
    snprintf(l->from, sizeof l->from, "%s", http_peer(c->rq)->address);
    l->place = door_place(c);
    l->scopes = TOKEN_READ | TOKEN_JOBS | (manage ? TOKEN_MANAGE : 0);
    return 0;
}

struct begun {
    const char *device, *code, *url, *url_complete;
    uint64_t interval_s, expires_s;
};

static void reply_begun(struct call *c, const struct begun *b)
{
    AUTO(buf_free) struct buf out = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &out };
    json_begin(&w, NULL, '{');
    json_put_str(&w, "device_code", str_of(b->device));
    json_put_str(&w, "user_code", str_of(b->code));
    json_put_str(&w, "verification_uri", str_of(b->url));
    json_put_str(&w, "verification_uri_complete", str_of(b->url_complete));
    json_put_u64(&w, "interval", b->interval_s);
    json_put_u64(&w, "expires_in", b->expires_s);
    json_end(&w, '}');
    reply_json(c, 200, &out);
}

static const char *text_in(struct call *c, const struct json *o, const char *key)
{
    struct str s = STR("");
    struct err none;
    if (json_get_str(o, key, 8192, &s, &none) < 0)
        s = STR("");
    return arena_strndup(http_arena(c->rq), s.p, s.n);
}

static void add_login(struct door *d, const struct login *like)
{
    struct login *l = xcalloc(1, sizeof *l);
    *l = *like;
    l->next = d->logins;
    d->logins = l;
    d->n_logins++;
}

/* The provider's own codes: people say yes there, and we ask it. */
static int on_provider(struct call *c, void *ctx, const struct json *answer, const struct err *why,
                       struct err *e)
{
    struct login *l = ctx;
    char device[KEY_TEXT_BYTES];
    uint64_t interval = 5, expires = 600;
    if (why) {
        *e = *why;
        e->field[0] = '\0';
        return -1;
    }
    if (json_get_u64(answer, "interval", 3600, &interval, e) < 0 ||
        json_get_u64(answer, "expires_in", 86400, &expires, e) < 0)
        return -1;
    auth_make_key("nsl_", device);
    auth_hash_key(str_of(device), l->device);
    l->provider_code = xstrdup(text_in(c, answer, "device_code"));
    l->until_ms = clock_now_ms(&c->api->config.clock) + (int64_t)expires * 1000;
    add_login(c->api->door, l);
    const char *url = text_in(c, answer, "verification_uri"),
               *whole = text_in(c, answer, "verification_uri_complete");
    reply_begun(c, &(struct begun){ device, text_in(c, answer, "user_code"), url,
                                    whole[0] ? whole : url, interval, expires });
    return 0;
}

static int begin_at_provider(struct call *c, struct login *l, struct err *e)
{
    AUTO(buf_free) struct buf q = BUF(16 << 10);
    struct json_out w = { .b = &q };
    c->field = "provider";
    if (!ways_has(c->api->door->ways, WAY_OIDC)) {
        err_set(e, ERR_CONFLICT, "field 'provider': there is no single sign-on here");
        return err_hint(e, "leave it out: people then say yes in a browser that is signed in here");
    }
    c->field = NULL;
    ways_ask(c->api->door->ways, WAY_OIDC, "oidc_device_start", &w);
    json_end(&w, '}');
    return door_ask(c, WAY_OIDC, &q, on_provider, l, e);
}

static int check_room(struct call *c, struct err *e)
{
    struct door *d = c->api->door;
    uint64_t place = door_place(c);
    size_t mine = 0;
    drop_old(d, clock_now_ms(&c->api->config.clock));
    for (const struct login *l = d->logins; l; l = l->next)
        mine += l->place == place;
    bool root = http_peer(c->rq)->local && http_peer(c->rq)->uid == 0;
    if (d->n_logins < LOGINS_MAX && (mine < LOGINS_OF_PLACE || root))
        return 0;
    c->status = 429;
    http_add_header(c->rq, "Retry-After", "60");
    err_set(e, ERR_UNAVAILABLE, "%zu sign-ins wait for somebody to say yes",
            d->n_logins < LOGINS_MAX ? mine : d->n_logins);
    return err_hint(e, "try again in some minutes");
}

int api_login(struct call *c, struct err *e)
{
    static const char *const keys[] = { "name", "manage", "provider" };
    AUTO(json_free_p) struct json_doc *doc = NULL;
    struct login *l = arena_new(http_arena(c->rq), struct login);
    char device[KEY_TEXT_BYTES];
    bool provider = false;
    if (read_body(c, keys, ARRAY_LEN(keys), &doc, e) < 0 ||
        read_login(c, json_root(doc), l, &provider, e) < 0 || check_room(c, e) < 0)
        return -1;
    if (provider)
        return begin_at_provider(c, l, e);
    make_code(l->code);
    auth_make_key("nsl_", device);
    auth_hash_key(str_of(device), l->device);
    l->until_ms = clock_now_ms(&c->api->config.clock) + LOGIN_MS;
    add_login(c->api->door, l);
    const char *url = door_url(c, "/signin");
    reply_begun(c, &(struct begun){ device, l->code, url,
                                    arena_printf(http_arena(c->rq), "%s?code=%s", url, l->code),
                                    INTERVAL_S, LOGIN_MS / 1000 });
    return 0;
}

/* ---- somebody looks at it, and says yes or no ---- */

static bool is_code(const struct login *l, struct str text)
{
    return l->code[0] && text.n == sizeof l->code - 1 &&
           sodium_memcmp(l->code, text.p, sizeof l->code - 1) == 0;
}

static struct login *find_code(struct call *c, struct err *e)
{
    struct door *d = c->api->door;
    struct attempt a = door_attempt(c, STR(""));
    int64_t now_ms = clock_now_ms(&c->api->config.clock);
    drop_old(d, now_ms);
    if (door_may_try(c, &a, e) < 0)
        return NULL;
    for (struct login *l = d->logins; l; l = l->next)
        if (is_code(l, c->param[0]) && !l->user[0] && !l->denied)
            return l;
    throttle_failed(d->throttle, &a, now_ms);
    err_set(e, ERR_NOT_FOUND, "no command line waits under this code");
    err_hint(e, "codes are good for ten minutes: run nightshift login again");
    return NULL;
}

int api_login_get(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct json_out w = { .b = &b };
    const struct login *l = find_code(c, e);
    if (!l)
        return -1;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "name", str_of(l->name));
    json_put_str(&w, "from", str_of(l->from));
    json_begin(&w, "scopes", '[');
    for (int i = 0; i < TOKEN_SCOPE_COUNT; i++)
        if (l->scopes & (1u << i))
            json_put_str(&w, NULL, str_of(token_scope_name((enum token_scope)i)));
    json_end(&w, ']');
    json_put_i64(&w, "until_ms", l->until_ms);
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

int api_login_approve(struct call *c, struct err *e)
{
    struct login *l = find_code(c, e);
    if (!l)
        return -1;
    if (c->who.via == VIA_TOKEN || c->who.tenants) {
        err_set(e, ERR_DENIED, "a token cannot say yes for its owner");
        return err_hint(e, "sign in in a browser");
    }
    l->scopes &= c->who.scopes;
    snprintf(l->user, sizeof l->user, "%s", c->who.user);
    http_reply(c->rq, 204, NULL, STR(""));
    return 0;
}

int api_login_deny(struct call *c, struct err *e)
{
    struct login *l = find_code(c, e);
    if (!l)
        return -1;
    l->denied = true;
    http_reply(c->rq, 204, NULL, STR(""));
    return 0;
}

/* ---- the command line asks ---- */

struct giving {
    struct call call;
    char text[KEY_TEXT_BYTES];
    const char *user, *name;
    int64_t expires_ms;
};

static void on_given(void *ctx)
{
    struct giving *g = ctx;
    AUTO(buf_free) struct buf b = BUF(4096);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    json_put_str(&w, "state", STR("done"));
    json_put_str(&w, "token", str_of(g->text));
    json_put_str(&w, "name", str_of(g->name));
    json_put_str(&w, "user", str_of(g->user));
    json_put_i64(&w, "expires_ms", g->expires_ms);
    json_end(&w, '}');
    reply_json(&g->call, 200, &b);
    sodium_memzero(g->text, sizeof g->text);
}

static int give_token(struct call *c, struct login *l, struct err *e)
{
    struct arena *a = http_arena(c->rq);
    struct auth *auth = c->api->config.auth;
    struct giving *g = arena_new(a, struct giving);
    struct auth_key k = { .scopes = l->scopes, .created_ms = clock_now_ms(&c->api->config.clock) };
    k.user = arena_printf(a, "%s", l->user);
    for (uint32_t i = 0; !k.name || auth_find_key(auth, KEY_TOKEN, str_of(k.user), str_of(k.name));
         i++)
        k.name = i ? arena_printf(a, "login %s %u", l->name, i + 1)
                   : arena_printf(a, "login %s", l->name);
    k.expires_ms = k.created_ms + TOKEN_MS;
    auth_make_key(TOKEN_PREFIX, g->text);
    auth_hash_key(str_of(g->text), k.hash);
    if (auth_put_key(auth, KEY_TOKEN, &k, e) < 0)
        return -1;
    g->call = *c;
    g->user = k.user;
    g->name = k.name;
    g->expires_ms = k.expires_ms;
    keep_key(c->api, KEY_TOKEN, &k);
    snprintf(c->who.user, sizeof c->who.user, "%s", l->user);
    api_audit(
        c, &(struct audit_change){ .what = AUDIT_LOGIN,
                                   .subject = str_of(arena_printf(a, "%s/%s", k.user, k.name)) });
    login_drop(c->api->door, l);
    control_commit(c->api->config.control, (struct control_done){ on_given, g });
    return 0;
}

static int pending(struct call *c, const char *state)
{
    AUTO(buf_free) struct buf b = BUF(256);
    buf_printf(&b, "{\"state\":\"%s\"}", state);
    http_reply(c->rq, 200, "application/json", buf_str(&b));
    return 0;
}

static struct login *find_device(struct door *d, const uint8_t hash[static KEY_HASH_BYTES])
{
    for (struct login *l = d->logins; l; l = l->next)
        if (sodium_memcmp(l->device, hash, KEY_HASH_BYTES) == 0)
            return l;
    return NULL;
}

static int gone(struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "this sign-in is over");
    return err_hint(e, "run nightshift login again");
}

static int on_polled(struct call *c, void *ctx, const struct json *answer, const struct err *why,
                     struct err *e)
{
    struct login *l = find_device(c->api->door, ctx);
    struct person *x;
    if (!l)
        return gone(e);
    if (why && strcmp(why->field, "pending") == 0)
        return pending(c, "pending");
    if (why && strcmp(why->field, "slow_down") == 0)
        return pending(c, "slow_down");
    if (why) {
        *e = *why;
        e->field[0] = '\0';
        login_drop(c->api->door, l);
        return -1;
    }
    if (door_welcome(c, WAY_OIDC, answer, &x, e) < 0)
        return -1;
    recheck_keep(c->api->door, x, answer);
    snprintf(l->user, sizeof l->user, "%s", x->name);
    return give_token(c, l, e);
}

static int poll_provider(struct call *c, const struct login *l, struct err *e)
{
    AUTO(buf_free) struct buf q = BUF(32 << 10);
    struct json_out w = { .b = &q };
    uint8_t *hash = arena_array(http_arena(c->rq), uint8_t, KEY_HASH_BYTES);
    memcpy(hash, l->device, KEY_HASH_BYTES);
    ways_ask(c->api->door->ways, WAY_OIDC, "oidc_device_poll", &w);
    json_put_str(&w, "device_code", str_of(l->provider_code));
    json_end(&w, '}');
    return door_ask(c, WAY_OIDC, &q, on_polled, hash, e);
}

int api_login_poll(struct call *c, struct err *e)
{
    static const char *const keys[] = { "device_code" };
    AUTO(json_free_p) struct json_doc *doc = NULL;
    uint8_t hash[KEY_HASH_BYTES];
    struct str device;
    if (read_body(c, keys, ARRAY_LEN(keys), &doc, e) < 0)
        return -1;
    c->field = "device_code";
    if (json_need_str(json_root(doc), "device_code", 128, &device, e) < 0)
        return -1;
    c->field = NULL;
    drop_old(c->api->door, clock_now_ms(&c->api->config.clock));
    auth_hash_key(device, hash);
    struct login *l = find_device(c->api->door, hash);
    if (!l)
        return gone(e);
    if (l->denied) {
        login_drop(c->api->door, l);
        err_set(e, ERR_DENIED, "somebody said no");
        return err_hint(e, "run nightshift login again");
    }
    if (l->user[0])
        return give_token(c, l, e);
    return l->provider_code ? poll_provider(c, l, e) : pending(c, "pending");
}
