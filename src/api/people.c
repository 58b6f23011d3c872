/* Who am I, tokens, and a browser's session. */
#include <stdio.h>

#include "api/audit.h"
#include "base/parse.h"
#include "sys/weak.h"

#define EXPIRES_MAX_MS (INT64_C(10) * 366 * 86400 * 1000)

int api_whoami(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    (void)e;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "user", str_of(c->who.user));
    if (c->who.uid == UINT32_MAX)
        json_put_null(&w, "uid");
    else
        json_put_u64(&w, "uid", c->who.uid);
    json_put_str(&w, "role", str_of(role_name(c->who.role)));
    json_begin(&w, "tenants", '[');
    for (size_t i = 0; i < c->scope.n; i++)
        json_put_str(&w, NULL, c->scope.tenant[i]);
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* Tokens of this user are the caller's to see, to make and to delete. */
static bool is_theirs(const struct call *c, struct str user)
{
    return c->who.role == ROLE_ADMIN || str_is(user, c->who.user) || weak_here("token_owner");
}

int api_token_list(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    const struct auth_token *t;
    (void)e;
    json_begin(&w, NULL, '{');
    json_begin(&w, "tokens", '[');
    for (size_t i = 0; (t = auth_token_at(c->api->config.auth, i)); i++) {
        if (!is_theirs(c, str_of(t->user)))
            continue;
        json_begin(&w, NULL, '{');
        json_put_str(&w, "name", str_of(t->name));
        json_put_str(&w, "user", str_of(t->user));
        json_put_str(&w, "role", str_of(role_name(t->role)));
        json_put_i64(&w, "created_ms", t->created_ms);
        if (t->expires_ms)
            json_put_i64(&w, "expires_ms", t->expires_ms);
        else
            json_put_null(&w, "expires_ms");
        json_end(&w, '}');
    }
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

struct token_later {
    struct http_request *rq;
    char text[TOKEN_TEXT_BYTES];
    const char *name, *user;
};

static void on_token_done(void *ctx)
{
    struct token_later *l = ctx;
    AUTO(buf_free) struct buf b = BUF(4096);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    json_put_str(&w, "token", str_of(l->text));
    json_put_str(&w, "name", str_of(l->name));
    json_put_str(&w, "user", str_of(l->user));
    json_end(&w, '}');
    http_reply(l->rq, 201, "application/json", buf_str(&b));
}

static int check_name(struct call *c, const char *field, struct str s, struct err *e)
{
    c->field = field;
    for (size_t i = 0; i < s.n; i++) {
        char x = s.p[i];
        bool ok = (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || (x >= '0' && x <= '9') ||
                  x == '-' || x == '_' || x == '.' || x == '@';
        if (!ok || (i == 0 && x == '.'))
            s.n = 0;
    }
    if (s.n == 0) {
        err_set(e, ERR_INVALID, "field '%s' is empty or has other signs than names may have",
                field);
        return err_hint(e, "letters, digits and - _ @ . (not first)");
    }
    c->field = NULL;
    return 0;
}

static int read_text(struct call *c, const struct json *o, const char *field, size_t max,
                     struct str *out, struct err *e)
{
    c->field = field;
    if (json_get_str(o, field, max, out, e) < 0)
        return -1;
    c->field = NULL;
    return 0;
}

/* A member makes tokens for himself; an administrator for anybody, and of any role up to his own. */
static int read_token(struct call *c, const struct json *o, struct auth_token *t, struct err *e)
{
    struct str name = STR("token"), user = str_of(c->who.user), expires = STR(""),
               role = str_of(role_name(ROLE_MEMBER));
    struct arena *a = http_arena(c->rq);
    int64_t for_ms = 0;
    if (read_text(c, o, "name", 64, &name, e) < 0 || read_text(c, o, "user", 200, &user, e) < 0 ||
        read_text(c, o, "expires", 32, &expires, e) < 0 ||
        read_text(c, o, "role", 32, &role, e) < 0 || check_name(c, "name", name, e) < 0 ||
        check_name(c, "user", user, e) < 0)
        return -1;
    c->field = "role";
    if (!role_parse(role, &t->role) || t->role < ROLE_MEMBER) {
        err_set(e, ERR_INVALID, "field 'role': '%.*s' is not known here", STR_ARG(role));
        return err_hint(e, "member or admin");
    }
    if (t->role > c->who.role && !weak_here("token_role")) {
        err_set(e, ERR_DENIED, "field 'role': it is above your own");
        return err_hint(e, "leave it out for a token that may do what members may");
    }
    c->field = "user";
    if (!is_theirs(c, user)) {
        err_set(e, ERR_DENIED, "field 'user': only administrators make tokens for others");
        return err_hint(e, "leave it out for a token of your own");
    }
    c->field = "expires";
    if (json_find(o, "expires") && parse_duration_ms(expires, &for_ms, e) < 0)
        return err_wrap(e, "field 'expires'");
    if (json_find(o, "expires") && (for_ms <= 0 || for_ms > EXPIRES_MAX_MS)) {
        err_set(e, ERR_INVALID, "field 'expires' must be above 0 and at most ten years");
        return err_hint(e, "e.g. 30d; leave it out for a token without an end");
    }
    c->field = NULL;
    t->name = arena_strndup(a, name.p, name.n);
    t->user = arena_strndup(a, user.p, user.n);
    t->created_ms = clock_now_ms(&c->api->config.clock);
    t->expires_ms = for_ms ? t->created_ms + for_ms : 0;
    return 0;
}

/* Never its text. */
static struct audit_change token_change(struct call *c, enum audit_verb what,
                                        const struct auth_token *t)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct json_out w = { .b = &b };
    struct arena *a = http_arena(c->rq);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "role", str_of(role_name(t->role)));
    if (t->expires_ms)
        json_put_i64(&w, "expires_ms", t->expires_ms);
    else
        json_put_null(&w, "expires_ms");
    json_end(&w, '}');
    struct str text = { arena_strndup(a, b.p, b.n), b.n };
    return (struct audit_change){ .what = what,
                                  .subject = str_of(arena_printf(a, "%s/%s", t->user, t->name)),
                                  .before = what == AUDIT_TOKEN_DELETE ? text : STR(""),
                                  .after = what == AUDIT_TOKEN_CREATE ? text : STR("") };
}

int api_token_create(struct call *c, struct err *e)
{
    static const char *const keys[] = { "name", "user", "expires", "role" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct token_later *l = arena_new(http_arena(c->rq), struct token_later);
    struct store *s = c->api->config.store;
    struct auth_token t = { 0 };
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0 || read_token(c, json_root(d), &t, e) < 0)
        return -1;
    auth_make_token(l->text);
    auth_hash_token(str_of(l->text), t.hash);
    if (auth_put_token(c->api->config.auth, &t, e) < 0)
        return -1;
    struct store_token row = { .name = str_of(t.name),
                               .user = str_of(t.user),
                               .role = t.role,
                               .created_ms = t.created_ms,
                               .expires_ms = t.expires_ms };
    memcpy(row.hash, t.hash, sizeof row.hash);
    l->rq = c->rq;
    l->name = t.name;
    l->user = t.user;
    struct store_batch *b = store_batch_new(s);
    store_put_token(b, &row);
    struct audit_change ch = token_change(c, AUDIT_TOKEN_CREATE, &t);
    api_audit_to(c, b, &ch);
    store_commit(s, b, on_token_done, l);
    return 0;
}

static void on_deleted(void *ctx)
{
    http_reply(ctx, 204, NULL, STR(""));
}

int api_token_delete(struct call *c, struct err *e)
{
    struct store *s = c->api->config.store;
    const struct auth_token *t;
    size_t i = 0;
    while ((t = auth_token_at(c->api->config.auth, i)) &&
           !(str_is(c->param[0], t->name) && is_theirs(c, str_of(t->user))))
        i++;
    if (!t) {
        err_set(e, ERR_NOT_FOUND, "you have no token '%.*s'", STR_ARG(c->param[0]));
        return err_hint(e, "see those you have: nightshift tokens");
    }
    struct store_batch *b = store_batch_new(s);
    store_delete_token(b, t->hash);
    struct audit_change ch = token_change(c, AUDIT_TOKEN_DELETE, t);
    api_audit_to(c, b, &ch);
    auth_drop_token(c->api->config.auth, t->hash);
    store_commit(s, b, on_deleted, c->rq);
    return 0;
}

int api_session_open(struct call *c, struct err *e)
{
    static const char *const keys[] = { "token" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct str token;
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0)
        return -1;
    c->field = "token";
    if (json_need_str(json_root(d), "token", 256, &token, e) < 0 ||
        auth_token(c->api->config.auth, token, clock_now_ms(&c->api->config.clock), &c->who, e) < 0)
        return -1;
    http_add_header(c->rq, "Set-Cookie",
                    arena_printf(http_arena(c->rq),
                                 "nightshift=%.*s; HttpOnly; SameSite=Strict; Path=/%s",
                                 STR_ARG(token), c->api->config.secure_cookies ? "; Secure" : ""));
    http_reply(c->rq, 204, NULL, STR(""));
    return 0;
}

int api_session_close(struct call *c, struct err *e)
{
    (void)e;
    http_add_header(c->rq, "Set-Cookie",
                    "nightshift=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    http_reply(c->rq, 204, NULL, STR(""));
    return 0;
}
