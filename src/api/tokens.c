/* Tokens: keys for programs and for other machines.  Shown once; only their hashes are kept. */
#include <stdio.h>

#include "api/audit.h"
#include "api/directory.h"
#include "base/parse.h"
#include "sys/weak.h"

#define EXPIRES_MAX_MS (INT64_C(10) * 366 * 86400 * 1000)
#define SCOPES_GIVEN_MAX 10
#define EXPIRES_DEFAULT_MS (INT64_C(365) * 86400 * 1000)

/* ---- list ---- */

static void put_token(struct json_out *w, const struct auth_key *t)
{
    json_begin(w, NULL, '{');
    json_put_str(w, "name", str_of(t->name));
    json_put_str(w, "user", str_of(t->user));
    json_begin(w, "scopes", '[');
    for (int i = 0; i < TOKEN_SCOPE_COUNT; i++)
        if (t->scopes & (1u << i))
            json_put_str(w, NULL, str_of(token_scope_name((enum token_scope)i)));
    json_end(w, ']');
    json_begin(w, "tenants", '[');
    for (size_t i = 0; i < t->tenants; i++)
        json_put_str(w, NULL, str_of(t->tenant[i]));
    json_end(w, ']');
    json_put_i64(w, "created_ms", t->created_ms);
    put_when(w, "expires_ms", t->expires_ms ? t->expires_ms : INT64_MAX);
    put_when(w, "used_ms", t->used_ms ? t->used_ms : INT64_MAX);
    json_end(w, '}');
}

int api_token_list(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    const struct auth_key *t;
    (void)e;
    json_begin(&w, NULL, '{');
    json_begin(&w, "tokens", '[');
    for (size_t i = 0; (t = auth_key_at(c->api->config.auth, KEY_TOKEN, i)); i++)
        if (may(c, ACCESS_TOKENS_LOOK, &(struct subject){ .user = str_of(t->user) }) ||
            weak_here("token_owner"))
            put_token(&w, t);
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- make ---- */

struct token_later {
    struct http_request *rq;
    char text[KEY_TEXT_BYTES];
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
    if (person_check_name(s, e) < 0) {
        char hint[sizeof e->hint];
        snprintf(hint, sizeof hint, "%s", e->hint);
        err_set(e, ERR_INVALID, "field '%s' is empty or has other signs than names may have",
                field);
        return err_hint(e, "%s", hint);
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

/* A token never has more than what it was made with. */
static int read_scopes(struct call *c, const struct json *o, struct auth_key *t, struct err *e)
{
    const struct json *list = json_find(o, "scopes");
    struct str word;
    enum token_scope s;
    c->field = "scopes";
    t->scopes = list ? 0 : c->who.scopes & (TOKEN_READ | TOKEN_JOBS);
    if (list &&
        (!json_is_array(list) || json_len(list) == 0 || json_len(list) > SCOPES_GIVEN_MAX)) {
        err_set(e, ERR_INVALID, "field 'scopes' must be a list of 1 to %d", SCOPES_GIVEN_MAX);
        return err_hint(e, "e.g. [\"read\", \"jobs\"]; without it those two");
    }
    for (const struct json *v = list ? json_first(list) : NULL; v; v = json_next(list, v)) {
        if (json_as_str(v, 32, &word, e) < 0)
            return err_wrap(e, "field 'scopes'");
        if (!token_scope_parse(word, &s)) {
            err_set(e, ERR_INVALID, "field 'scopes': '%.*s' is not known here", STR_ARG(word));
            return err_hint(e, "read, jobs, manage");
        }
        t->scopes |= 1u << s;
    }
    if ((t->scopes & ~c->who.scopes) && !weak_here("token_scope")) {
        err_set(e, ERR_DENIED,
                "field 'scopes': it would have more than the token '%s', by which "
                "you are known",
                c->who.key);
        return err_hint(e, "sign in, or use a token that has them itself");
    }
    c->field = NULL;
    return 0;
}

static int read_tenants(struct call *c, const struct json *o, struct auth_key *t, struct err *e)
{
    const struct json *list = json_find(o, "tenants");
    struct arena *a = http_arena(c->rq);
    struct str name;
    c->field = "tenants";
    t->tenant = arena_array(a, char *, KEY_TENANTS_MAX);
    if (list && (!json_is_array(list) || json_len(list) > KEY_TENANTS_MAX)) {
        err_set(e, ERR_INVALID, "field 'tenants' must be a list of at most %d", KEY_TENANTS_MAX);
        return err_hint(e, "e.g. [\"vision\"]; without it all of its owner's");
    }
    for (const struct json *v = list ? json_first(list) : NULL; v; v = json_next(list, v)) {
        if (json_as_str(v, NAME_MAX_BYTES, &name, e) < 0)
            return err_wrap(e, "field 'tenants'");
        if (!sees_tenant(c, name) || !people_has_tenant(auth_people(c->api->config.auth), name)) {
            err_set(e, ERR_NOT_FOUND, "field 'tenants': there is no tenant '%.*s'", STR_ARG(name));
            return err_hint(e, "your tenants: nightshift status");
        }
        t->tenant[t->tenants++] = arena_strndup(a, name.p, name.n);
    }
    if (t->tenants == 0) /* as far as its maker's, no further */
        for (size_t i = 0; i < c->who.tenants; i++)
            t->tenant[t->tenants++] = arena_printf(a, "%s", c->who.tenant[i]);
    c->field = NULL;
    return 0;
}

static int read_expiry(struct call *c, const struct json *o, struct auth_key *t, struct err *e)
{
    struct str expires = STR("");
    int64_t for_ms = EXPIRES_DEFAULT_MS;
    if (read_text(c, o, "expires", 32, &expires, e) < 0)
        return -1;
    c->field = "expires";
    bool given = json_find(o, "expires") != NULL, never = str_is(expires, "never");
    if (given && !never && parse_duration_ms(expires, &for_ms, e) < 0)
        return err_wrap(e, "field 'expires'");
    if (for_ms <= 0 || for_ms > EXPIRES_MAX_MS) {
        err_set(e, ERR_INVALID, "field 'expires' must be above 0 and at most ten years");
        return err_hint(e, "e.g. 30d, or never; without it a token is good for a year");
    }
    t->expires_ms = never ? 0 : t->created_ms + for_ms;
    c->field = NULL;
    return 0;
}

static int read_token(struct call *c, const struct json *o, struct auth_key *t, struct err *e)
{
    struct str name = STR("token"), user = str_of(c->who.user);
    struct arena *a = http_arena(c->rq);
    t->created_ms = clock_now_ms(&c->api->config.clock);
    if (read_text(c, o, "name", KEY_NAME_MAX, &name, e) < 0 ||
        read_text(c, o, "user", PERSON_NAME_MAX, &user, e) < 0 ||
        check_name(c, "name", name, e) < 0 || check_name(c, "user", user, e) < 0 ||
        read_scopes(c, o, t, e) < 0 || read_tenants(c, o, t, e) < 0 || read_expiry(c, o, t, e) < 0)
        return -1;
    c->field = "user";
    if (!may(c, ACCESS_TOKENS, &(struct subject){ .user = user }) && !weak_here("token_owner")) {
        err_set(e, ERR_DENIED, "field 'user': only administrators make tokens for others");
        return err_hint(e, "leave it out for a token of your own");
    }
    c->field = NULL;
    t->name = arena_strndup(a, name.p, name.n);
    t->user = arena_strndup(a, user.p, user.n);
    return 0;
}

/* Never its text. */
static void audit_token(struct call *c, enum audit_verb what, const struct auth_key *t)
{
    AUTO(buf_free) struct buf b = BUF(AUDIT_JSON_MAX);
    struct json_out w = { .b = &b };
    put_token(&w, t);
    struct str text = audit_kept(c, &b), none = STR("");
    bool made = what == AUDIT_TOKEN_CREATE;
    api_audit(c, &(struct audit_change){
                     .what = what,
                     .subject = str_of(arena_printf(http_arena(c->rq), "%s/%s", t->user, t->name)),
                     .before = made ? none : text,
                     .after = made ? text : none });
}

int api_token_create(struct call *c, struct err *e)
{
    static const char *const keys[] = { "name", "user", "expires", "scopes", "tenants" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct token_later *l = arena_new(http_arena(c->rq), struct token_later);
    char none[] = "";
    struct auth_key t = { .name = none, .user = none };
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0 || read_token(c, json_root(d), &t, e) < 0)
        return -1;
    if (auth_count_keys(c->api->config.auth, KEY_TOKEN, str_of(t.user)) >= TOKENS_OF_USER) {
        err_set(e, ERR_CONFLICT, "'%s' has %d tokens already", t.user, TOKENS_OF_USER);
        return err_hint(e, "delete those that nobody uses: nightshift tokens");
    }
    auth_make_key(TOKEN_PREFIX, l->text);
    auth_hash_key(str_of(l->text), t.hash);
    if (auth_put_key(c->api->config.auth, KEY_TOKEN, &t, e) < 0)
        return -1;
    l->rq = c->rq;
    l->name = t.name;
    l->user = t.user;
    keep_key(c->api, KEY_TOKEN, &t);
    audit_token(c, AUDIT_TOKEN_CREATE, &t);
    control_commit(c->api->config.control, (struct control_done){ on_token_done, l });
    return 0;
}

/* ---- delete ---- */

static void on_deleted(void *ctx)
{
    http_reply(ctx, 204, NULL, STR(""));
}

/* A token, and the sessions that were opened with it. */
static void drop_token(struct call *c, const struct auth_key *t)
{
    struct api *a = c->api;
    uint8_t hash[KEY_HASH_BYTES];
    struct str user = str_of(arena_printf(http_arena(c->rq), "%s", t->user));
    const char *lead = arena_printf(http_arena(c->rq), OPENED_BY_TOKEN "%s, ", t->name);
    const struct auth_key *k;
    memcpy(hash, t->hash, sizeof hash);
    audit_token(c, AUDIT_TOKEN_DELETE, t);
    drop_key(a, KEY_TOKEN, hash);
    for (size_t i = 0; (k = auth_key_at(a->config.auth, KEY_SESSION, i));) {
        memcpy(hash, k->hash, sizeof hash);
        if (str_is(user, k->user) && strncmp(k->name, lead, strlen(lead)) == 0)
            drop_key(a, KEY_SESSION, hash); /* another is in its place now */
        else
            i++;
    }
}

int api_token_delete(struct call *c, struct err *e)
{
    struct str user = query_text(c, "user");
    user = user.n ? user : str_of(c->who.user);
    bool theirs = may(c, ACCESS_TOKENS, &(struct subject){ .user = user });
    const struct auth_key *t = theirs || weak_here("token_owner")
                                 ? auth_find_key(c->api->config.auth, KEY_TOKEN, user, c->param[0])
                                 : NULL;
    if (!t) {
        err_set(e, ERR_NOT_FOUND, "'%.*s' has no token '%.*s' that you could delete",
                (int)MIN(user.n, (size_t)60), user.p, (int)MIN(c->param[0].n, (size_t)60),
                c->param[0].p);
        return err_hint(e, "see those you have: nightshift tokens");
    }
    drop_token(c, t);
    streams_end_of(c->api, user); /* whoever had stolen it has some open */
    control_commit(c->api->config.control, (struct control_done){ on_deleted, c->rq });
    return 0;
}

int api_token_give_up(struct call *c, struct err *e)
{
    const struct auth_key *t =
        c->who.via == VIA_TOKEN ? auth_key_of(c->api->config.auth, KEY_TOKEN, c->who.hash) : NULL;
    if (!t) {
        err_set(e, ERR_CONFLICT, "you are not known by a token");
        return err_hint(e, "a browser signs out with DELETE /v1/session");
    }
    drop_token(c, t);
    control_commit(c->api->config.control, (struct control_done){ on_deleted, c->rq });
    return 0;
}
