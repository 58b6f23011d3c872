/* The sessions of browsers: renewed while they are used, listed, ended. */
#include <sodium.h>
#include <stdio.h>

#include "api/audit.h"
#include "api/directory.h"
#include "api/door.h"

#define RENEW_MS (INT64_C(3600) * 1000)
#define OLD_MS (INT64_C(60) * 1000) /* for requests that were on their way */

/* ---- renewing ---- */

/* An answer that goes on: its head may be long gone when the browser keeps its cookies. */
static bool is_stream(const struct route *r)
{
    return r->type && (strcmp(r->type, "text/event-stream") == 0 ||
                       strcmp(r->type, "application/octet-stream") == 0 || r->other_type);
}

void session_renew(struct call *c)
{
    struct auth *auth = c->api->config.auth;
    int64_t now_ms = clock_now_ms(&c->api->config.clock);
    const struct auth_key *k = auth_key_of(auth, KEY_SESSION, c->who.hash);
    char text[KEY_TEXT_BYTES];
    uint8_t fresh[KEY_HASH_BYTES], old[KEY_HASH_BYTES];
    if (c->who.via != VIA_SESSION || !k || k->replaced || is_stream(c->route) ||
        c->route->fn == api_session_close_all ||
        now_ms - MAX(k->created_ms, k->renewed_ms) < RENEW_MS)
        return;
    memcpy(old, c->who.hash, sizeof old);
    auth_make_key(SESSION_PREFIX, text);
    auth_hash_key(str_of(text), fresh);
    k = auth_renew_session(auth, old, fresh, now_ms, now_ms + OLD_MS);
    if (k) {
        door_set_cookie(c, "nightshift", text, k->expires_ms - now_ms);
        keep_key(c->api, KEY_SESSION, k);
        keep_key(c->api, KEY_SESSION, auth_key_of(auth, KEY_SESSION, old));
        control_commit(c->api->config.control, (struct control_done){ 0 });
        memcpy(c->who.hash, fresh, sizeof c->who.hash);
    }
    sodium_memzero(text, sizeof text);
}

/* ---- out ---- */

void sessions_drop(struct api *a, const struct auth_key *of, bool others)
{
    const struct auth_key *k;
    for (size_t i = 0; (k = auth_key_at(a->config.auth, KEY_SESSION, i));) {
        uint8_t hash[KEY_HASH_BYTES];
        memcpy(hash, k->hash, sizeof hash);
        if (strcmp(k->user, of->user) == 0 && auth_is_same_session(k, of) != others)
            drop_key(a, KEY_SESSION, hash); /* another is in its place now */
        else
            i++;
    }
}

void sessions_drop_over(struct api *a)
{
    int64_t now_ms = clock_now_ms(&a->config.clock);
    const struct auth_key *k;
    for (size_t i = 0; (k = auth_key_at(a->config.auth, KEY_SESSION, i));) {
        uint8_t hash[KEY_HASH_BYTES];
        memcpy(hash, k->hash, sizeof hash);
        if (k->expires_ms && k->expires_ms <= now_ms)
            drop_key(a, KEY_SESSION, hash);
        else
            i++;
    }
}

static void on_closed(void *ctx)
{
    struct call *c = ctx;
    door_set_cookie(c, "nightshift", "", 0);
    http_reply(c->rq, 204, NULL, STR(""));
}

static struct call *kept_call(struct call *c)
{
    struct call *kept = arena_new(http_arena(c->rq), struct call);
    *kept = *c;
    return kept;
}

static void signed_out(struct call *c, const char *user)
{
    snprintf(c->who.user, sizeof c->who.user, "%s", user);
    c->who.via = VIA_SESSION;
    api_audit(c, &(struct audit_change){ .what = AUDIT_SIGNOUT, .subject = str_of(c->who.user) });
}

int api_session_close(struct call *c, struct err *e)
{
    const char *cookie = http_cookie(c->rq, "nightshift");
    uint8_t hash[KEY_HASH_BYTES];
    (void)e;
    if (cookie) {
        auth_hash_key(str_of(cookie), hash);
        const struct auth_key *k = auth_key_of(c->api->config.auth, KEY_SESSION, hash);
        if (k) {
            struct auth_key mine = *k;
            mine.user = arena_printf(http_arena(c->rq), "%s", k->user);
            signed_out(c, mine.user);
            sessions_drop(c->api, &mine, false);
        }
    }
    control_commit(c->api->config.control, (struct control_done){ on_closed, kept_call(c) });
    return 0;
}

int api_session_list(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    const struct auth_key *k, *mine = auth_key_of(c->api->config.auth, KEY_SESSION, c->who.hash);
    (void)e;
    json_begin(&w, NULL, '{');
    json_begin(&w, "sessions", '[');
    for (size_t i = 0; (k = auth_key_at(c->api->config.auth, KEY_SESSION, i)); i++) {
        if (k->replaced || !str_is(str_of(k->user), c->who.user))
            continue;
        json_begin(&w, NULL, '{');
        json_put_str(&w, "by", str_of(k->name));
        json_put_bool(&w, "this", mine && auth_is_same_session(k, mine));
        json_put_i64(&w, "created_ms", k->created_ms);
        put_when(&w, "used_ms", k->used_ms ? k->used_ms : INT64_MAX);
        put_when(&w, "expires_ms", k->expires_ms ? k->expires_ms : INT64_MAX);
        json_end(&w, '}');
    }
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

int api_session_close_all(struct call *c, struct err *e)
{
    (void)e;
    api_audit(c, &(struct audit_change){ .what = AUDIT_SIGNOUT,
                                         .subject = str_of(c->who.user),
                                         .reason = STR("everywhere") });
    drop_keys_of(c->api, KEY_SESSION, str_of(c->who.user));
    streams_end_of(c->api, str_of(c->who.user));
    control_commit(c->api->config.control, (struct control_done){ on_closed, kept_call(c) });
    return 0;
}
