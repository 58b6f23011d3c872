/* Single sign-on: to the provider and back, with a code, PKCE, state and nonce (OpenID Connect). */
#include <sodium.h>
#include <stdio.h>

#include "api/door.h"

#define TRIPS_MAX 1000 /* browsers that are at the provider */
#define TRIP_MS (INT64_C(10) * 60 * 1000)
#define FOUND_MS (INT64_C(3600) * 1000) /* the provider's address is asked again after this */
#define TRIP_COOKIE "nightshift_trip"
#define BACK_PATH "/v1/signin/sso/back"

/* A browser that was sent to the provider and has not come back. */
struct trip {
    uint8_t state[KEY_HASH_BYTES];
    char nonce[44], verifier[44];
    char *next_path;
    int64_t until_ms;
    struct trip *next;
};

struct sso {
    struct trip *trips;
    size_t n;
    char *endpoint; /* the provider's, where people sign in; NULL: not asked yet */
    int64_t found_ms;
};

static void trip_free(struct trip *t)
{
    sodium_memzero(t->verifier, sizeof t->verifier);
    free(t->next_path);
    free(t);
}

void sso_free(struct door *d)
{
    while (d->sso && d->sso->trips) {
        struct trip *t = d->sso->trips;
        d->sso->trips = t->next;
        trip_free(t);
    }
    if (d->sso)
        free(d->sso->endpoint);
    free(d->sso);
    d->sso = NULL;
}

static void random_text(char out[static 44])
{
    uint8_t bytes[32];
    randombytes_buf(bytes, sizeof bytes);
    sodium_bin2base64(out, 44, bytes, sizeof bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* Takes the trip of that state away; with NULL those that are over. */
static struct trip *take_trip(struct sso *s, const uint8_t *state, int64_t now_ms)
{
    struct trip *found = NULL;
    for (struct trip **at = &s->trips; *at;) {
        struct trip *t = *at;
        bool over = t->until_ms <= now_ms;
        bool mine = state && sodium_memcmp(t->state, state, sizeof t->state) == 0;
        if (!over && !mine) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        s->n--;
        if (mine && !over)
            found = t;
        else
            trip_free(t);
    }
    return found;
}

/* ---- there ---- */

void door_add_encoded(struct buf *b, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char x = (unsigned char)s.p[i];
        bool plain = (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || (x >= '0' && x <= '9') ||
                     (x && strchr("-._~", x));
        if (plain)
            buf_addc(b, (char)x);
        else
            buf_printf(b, "%%%02X", x);
    }
}

static void add_param(struct buf *b, const char *key, const char *value)
{
    buf_printf(b, "%c%s=", strchr(b->p, '?') ? '&' : '?', key);
    door_add_encoded(b, str_of(value));
}

const char *door_url(struct call *c, const char *path)
{
    const char *out = c->api->config.external_url, *host = http_header(c->rq, "Host");
    if (out)
        return arena_printf(http_arena(c->rq), "%s%s", out, path);
    return arena_printf(http_arena(c->rq), "%s://%s%s", is_secure(c) ? "https" : "http",
                        host ? host : "localhost", path);
}

static void redirect(struct call *c, const char *where)
{
    http_add_header(c->rq, "Location", where);
    http_add_header(c->rq, "Cache-Control", "no-store");
    http_reply(c->rq, 303, NULL, STR(""));
}

/* Back to the page, which says why. */
static int back_to_page(struct call *c, const struct err *why)
{
    AUTO(buf_free) struct buf url = BUF(8192);
    buf_addz(&url, "/signin?why=");
    door_add_encoded(&url, str_of(why->msg));
    buf_addz(&url, "&hint=");
    door_add_encoded(&url, str_of(why->hint));
    log_event(c->api->config.log, LOG_WARN_, "signin.failed", "way=oidc from=%s why=%s",
              http_peer(c->rq)->address, why->msg);
    redirect(c, buf_str(&url).p);
    return 0;
}

static void set_out(struct call *c, struct str next)
{
    struct sso *s = c->api->door->sso;
    const struct ways *ways = c->api->door->ways;
    const char *scopes = ways_setting(ways, WAY_OIDC, "scopes");
    const char *prompt = ways_setting(ways, WAY_OIDC, "prompt");
    struct trip *t = xcalloc(1, sizeof *t);
    AUTO(buf_free) struct buf url = BUF(8192);
    char state[44], challenge[44];
    uint8_t digest[crypto_hash_sha256_BYTES];
    random_text(state);
    random_text(t->nonce);
    random_text(t->verifier);
    auth_hash_key(str_of(state), t->state);
    crypto_hash_sha256(digest, (const unsigned char *)t->verifier, strlen(t->verifier));
    sodium_bin2base64(challenge, sizeof challenge, digest, sizeof digest,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    t->next_path = xcalloc(next.n + 1, 1);
    memcpy(t->next_path, next.p, next.n);
    t->until_ms = clock_now_ms(&c->api->config.clock) + TRIP_MS;
    t->next = s->trips;
    s->trips = t;
    s->n++;
    buf_addz(&url, s->endpoint);
    add_param(&url, "response_type", "code");
    add_param(&url, "client_id", ways_setting(ways, WAY_OIDC, "client_id"));
    add_param(&url, "redirect_uri", door_url(c, BACK_PATH));
    add_param(&url, "scope", scopes ? scopes : "openid profile email");
    add_param(&url, "state", state);
    add_param(&url, "nonce", t->nonce);
    add_param(&url, "code_challenge", challenge);
    add_param(&url, "code_challenge_method", "S256");
    if (prompt)
        add_param(&url, "prompt", prompt);
    door_set_cookie(c, TRIP_COOKIE, state, TRIP_MS);
    redirect(c, buf_str(&url).p);
}

static struct str next_of(struct call *c)
{
    struct str next = query_text(c, "next");
    return door_next_is_ours(next) ? next : STR("/");
}

static int on_found(struct call *c, void *ctx, const struct json *answer, const struct err *why,
                    struct err *e)
{
    struct sso *s = c->api->door->sso;
    struct str url;
    (void)ctx;
    if (why)
        return back_to_page(c, why);
    if (json_need_str(answer, "authorization_endpoint", 2048, &url, e) < 0)
        return back_to_page(c, e);
    person_set(&s->endpoint, url);
    s->found_ms = clock_now_ms(&c->api->config.clock);
    set_out(c, next_of(c));
    return 0;
}

static int need_provider(struct call *c, struct err *e)
{
    struct door *d = c->api->door;
    if (!ways_has(d->ways, WAY_OIDC)) {
        err_set(e, ERR_NOT_FOUND, "there is no single sign-on here");
        return err_hint(e, "the settings file has none: signin.oidc");
    }
    if (!d->sso)
        d->sso = xcalloc(1, sizeof *d->sso);
    return 0;
}

int api_sso(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf q = BUF(16 << 10);
    struct json_out w = { .b = &q };
    int64_t now_ms = clock_now_ms(&c->api->config.clock);
    if (need_provider(c, e) < 0)
        return -1;
    struct sso *s = c->api->door->sso;
    take_trip(s, NULL, now_ms);
    if (s->n >= TRIPS_MAX) {
        err_set(e, ERR_UNAVAILABLE, "%zu people are signing in just now", s->n);
        err_hint(e, "try again in a moment");
        return back_to_page(c, e);
    }
    if (s->endpoint && now_ms - s->found_ms < FOUND_MS) {
        set_out(c, next_of(c));
        return 0;
    }
    ways_ask(c->api->door->ways, WAY_OIDC, "oidc_discover", &w);
    json_end(&w, '}');
    return door_ask(c, WAY_OIDC, &q, on_found, NULL, e);
}

/* ---- and back ---- */

struct returning {
    struct call call;
    const char *next;
};

static void on_in(void *ctx)
{
    struct returning *r = ctx;
    redirect(&r->call, r->next);
}

static int on_person(struct call *c, void *ctx, const struct json *answer, const struct err *why,
                     struct err *e)
{
    struct returning *r = ctx;
    struct person *x;
    char name[] = "single sign-on";
    struct auth_key like = { .name = name, .scopes = TOKEN_EVERYTHING };
    if (why)
        return back_to_page(c, why);
    r->call = *c;
    if (door_welcome(c, WAY_OIDC, answer, &x, e) < 0 ||
        door_let_in(c, x, &like, (struct door_then){ on_in, r }, e) < 0)
        return back_to_page(c, e);
    recheck_keep(c->api->door, x, answer);
    return 0;
}

/* The state must be one that we gave, to this browser, and not have come back yet. */
static struct trip *trip_of(struct call *c, struct err *e)
{
    const char *cookie = http_cookie(c->rq, TRIP_COOKIE);
    struct str state = query_text(c, "state");
    uint8_t hash[KEY_HASH_BYTES];
    struct trip *t = NULL;
    if (cookie && state.n && state.n == strlen(cookie) &&
        sodium_memcmp(state.p, cookie, state.n) == 0) {
        auth_hash_key(state, hash);
        t = take_trip(c->api->door->sso, hash, clock_now_ms(&c->api->config.clock));
    }
    if (!t) {
        err_set(e, ERR_DENIED, "this sign-in was not begun in this browser, or is over");
        err_hint(e, "begin again");
    }
    return t;
}

int api_sso_back(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf q = BUF(64 << 10);
    struct json_out w = { .b = &q };
    struct str code = query_text(c, "code"), error = query_text(c, "error");
    struct returning *r = arena_new(http_arena(c->rq), struct returning);
    if (need_provider(c, e) < 0)
        return -1;
    struct trip *t = trip_of(c, e);
    door_set_cookie(c, TRIP_COOKIE, "", 0);
    if (!t)
        return back_to_page(c, e);
    if (error.n || !code.n) {
        trip_free(t);
        err_set(e, ERR_DENIED, "the provider did not sign you in (%.*s)",
                (int)MIN(error.n, (size_t)60), error.n ? error.p : "no code");
        err_hint(e, "begin again, and agree at the provider");
        return back_to_page(c, e);
    }
    r->next = arena_printf(http_arena(c->rq), "%s", t->next_path);
    ways_ask(c->api->door->ways, WAY_OIDC, "oidc_code", &w);
    json_put_str(&w, "redirect_uri", str_of(door_url(c, BACK_PATH)));
    json_put_str(&w, "code", code);
    json_put_str(&w, "verifier", str_of(t->verifier));
    json_put_str(&w, "nonce", str_of(t->nonce));
    json_end(&w, '}');
    trip_free(t);
    return door_ask(c, WAY_OIDC, &q, on_person, r, e);
}
