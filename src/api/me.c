/* Who am I, and a browser's session. */
#include <stdio.h>

#include "api/state.h"

#define SESSION_MS (INT64_C(12) * 3600 * 1000)

int api_whoami(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    size_t n;
    struct people *p = auth_people(c->api->config.auth);
    const struct place *at = people_places(p, str_of(c->who.user), http_arena(c->rq), &n);
    const struct person *x = people_find(p, str_of(c->who.user));
    (void)e;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "user", str_of(c->who.user));
    json_put_str(&w, "full_name", str_of(x ? x->full_name : ""));
    if (c->who.uid == UINT32_MAX)
        json_put_null(&w, "uid");
    else
        json_put_u64(&w, "uid", c->who.uid);
    json_put_str(&w, "role", str_of(role_name(site_role(c))));
    json_put_str(&w, "via", str_of(via_name(c->who.via)));
    json_begin(&w, "scopes", '[');
    for (int i = 0; i < TOKEN_SCOPE_COUNT; i++)
        if (c->who.scopes & (1u << i))
            json_put_str(&w, NULL, str_of(token_scope_name((enum token_scope)i)));
    json_end(&w, ']');
    json_begin(&w, "tenants", '[');
    for (size_t i = 0; i < n; i++)
        json_put_str(&w, NULL, at[i].tenant);
    json_end(&w, ']');
    json_begin(&w, "roles", '{');
    for (size_t i = 0; i < n; i++)
        json_put_str(&w, arena_strndup(http_arena(c->rq), at[i].tenant.p, at[i].tenant.n),
                     str_of(role_name(at[i].role)));
    json_end(&w, '}');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- sessions ---- */

struct session_later {
    struct call call;
    char text[KEY_TEXT_BYTES];
};

static void set_cookie(struct call *c, const char *text, int64_t for_ms)
{
    http_add_header(c->rq, "Set-Cookie",
                    arena_printf(http_arena(c->rq),
                                 "nightshift=%s; HttpOnly; SameSite=Lax; Path=/; Max-Age=%lld%s",
                                 text, (long long)(for_ms / 1000), is_secure(c) ? "; Secure" : ""));
}

static void on_session_done(void *ctx)
{
    struct session_later *l = ctx;
    set_cookie(&l->call, l->text, SESSION_MS);
    http_reply(l->call.rq, 204, NULL, STR(""));
}

/* A browser that has shown a token gets a session of its owner's, no wider than the token. */
int api_session_open(struct call *c, struct err *e)
{
    static const char *const keys[] = { "token" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct session_later *l = arena_new(http_arena(c->rq), struct session_later);
    int64_t now_ms = clock_now_ms(&c->api->config.clock);
    struct str token;
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0)
        return -1;
    c->field = "token";
    if (json_need_str(json_root(d), "token", 256, &token, e) < 0 ||
        auth_token(c->api->config.auth, token, now_ms, &c->who, e) < 0)
        return -1;
    c->field = NULL;
    struct auth_key k = { .name = arena_printf(http_arena(c->rq), "token %s from %s", c->who.key,
                                               http_peer(c->rq)->address),
                          .user = c->who.user,
                          .scopes = c->who.scopes,
                          .tenant = (char **)(uintptr_t)c->who.tenant,
                          .tenants = c->who.tenants,
                          .created_ms = now_ms,
                          .expires_ms = now_ms + SESSION_MS };
    auth_make_key(SESSION_PREFIX, l->text);
    auth_hash_key(str_of(l->text), k.hash);
    if (auth_put_key(c->api->config.auth, KEY_SESSION, &k, e) < 0)
        return -1;
    l->call = *c;
    keep_key(c->api, KEY_SESSION, &k);
    control_commit(c->api->config.control, (struct control_done){ on_session_done, l });
    return 0;
}

static void on_closed(void *ctx)
{
    struct call *c = ctx;
    set_cookie(c, "", 0);
    http_reply(c->rq, 204, NULL, STR(""));
}

int api_session_close(struct call *c, struct err *e)
{
    const char *cookie = http_cookie(c->rq, "nightshift");
    struct call *kept = arena_new(http_arena(c->rq), struct call);
    uint8_t hash[KEY_HASH_BYTES];
    (void)e;
    *kept = *c;
    if (cookie) {
        auth_hash_key(str_of(cookie), hash);
        drop_key(c->api, KEY_SESSION, hash);
    }
    control_commit(c->api->config.control, (struct control_done){ on_closed, kept });
    return 0;
}
