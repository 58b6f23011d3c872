/* Signing a browser in: by password, or with a token. */
#include <sodium.h>
#include <stdio.h>

#include "api/audit.h"
#include "api/directory.h"
#include "api/door.h"

#define PASSWORD_MOST 1024
/* Each way takes its own time.  A refusal comes no sooner than any of them: it does not say who is known, and how. */
#define WRONG_MS 500

/* ---- what there is ---- */

int api_signin(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    const struct door *d = c->api->door;
    bool password =
        ways_has(d->ways, WAY_LOCAL) || ways_has(d->ways, WAY_LDAP) || ways_has(d->ways, WAY_PAM);
    (void)e;
    json_begin(&w, NULL, '{');
    json_put_bool(&w, "password", password);
    json_begin(&w, "titles", '[');
    for (int k = 0; k < WAY_COUNT; k++)
        if (ways_has(d->ways, (enum way)k) && k != WAY_OIDC)
            json_put_str(&w, NULL, str_of(ways_title(d->ways, (enum way)k)));
    json_end(&w, ']');
    if (ways_has(d->ways, WAY_OIDC))
        json_put_str(&w, "sso", str_of(ways_title(d->ways, WAY_OIDC)));
    else
        json_put_null(&w, "sso");
    json_put_bool(&w, "setup", d->can_setup);
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- by password ---- */

struct trying {
    char user[PERSON_NAME_MAX + 1], password[PASSWORD_MOST + 1];
    struct attempt attempt;
    uint64_t began_ms; /* monotonic */
    enum way way;
    bool real; /* it could succeed; else the time it takes must not tell */
};

static void on_signed_in(void *ctx)
{
    http_reply(ctx, 204, NULL, STR(""));
}

/* A name that nobody has may be a password, typed into the wrong field: it is not written down. */
static int wrong(struct call *c, struct trying *t, struct err *e)
{
    c->tell_ms = t->began_ms + WRONG_MS;
    bool known = people_find(auth_people(c->api->config.auth), str_of(t->user)) != NULL;
    const char *user = known ? t->user : "?";
    log_event(c->api->config.log, LOG_WARN_, "signin.failed", "user=%s from=%s way=%s", user,
              http_peer(c->rq)->address, way_name(t->way));
    api_audit(c, &(struct audit_change){ .what = AUDIT_SIGNIN_FAILED, .subject = str_of(user) });
    control_commit(c->api->config.control, (struct control_done){ 0 });
    err_set(e, ERR_DENIED, "the name or the password is wrong");
    return err_hint(e, "check both, also whether Caps Lock is on");
}

static int ask_way(struct call *c, struct trying *t, struct err *e);

/* Those that do not know the person leave it to the next. */
static bool next_way(struct call *c, struct trying *t)
{
    if (t->way != WAY_LDAP || !ways_has(c->api->door->ways, WAY_PAM))
        return false;
    const struct person *x = people_find(auth_people(c->api->config.auth), str_of(t->user));
    if (x && x->kind == PERSON_LDAP)
        return false;
    t->way = WAY_PAM;
    return true;
}

static int on_checked(struct call *c, void *ctx, const struct json *answer, const struct err *why,
                      struct err *e)
{
    struct trying *t = ctx;
    struct person *x;
    struct str rehash = STR("");
    bool wrong_pair = why && (strcmp(why->field, "wrong_password") == 0 ||
                              strcmp(why->field, "unknown_user") == 0);
    if (wrong_pair && next_way(c, t))
        return ask_way(c, t, e);
    sodium_memzero(t->password, sizeof t->password);
    if (!wrong_pair && (why || t->real))
        throttle_undo(c->api->door->throttle, &t->attempt);
    if (why && !wrong_pair) { /* nobody could say; or right, and the account is locked or expired */
        *e = *why;
        e->field[0] = '\0';
        return -1;
    }
    if (why || !t->real)
        return wrong(c, t, e);
    AUTO(json_free_p) struct json_doc *mine = NULL;
    if (t->way == WAY_LOCAL) {
        AUTO(buf_free) struct buf b = BUF(1024);
        struct json_out w = { .b = &b };
        json_begin(&w, NULL, '{');
        json_put_str(&w, "user", str_of(t->user));
        json_end(&w, '}');
        mine = json_read(buf_str(&b), e);
        if (!mine)
            return -1;
    }
    if (door_welcome(c, t->way, mine ? json_root(mine) : answer, &x, e) < 0)
        return -1;
    struct err none;
    if (mine && json_get_str(answer, "rehash", 1024, &rehash, &none) == 0 && rehash.n) {
        person_set(&x->hash, rehash);
        keep_person(c->api, x);
    }
    throttle_passed(c->api->door->throttle, &t->attempt);
    char name[] = "password";
    struct auth_key like = { .name = name, .scopes = TOKEN_EVERYTHING };
    return door_let_in(c, x, &like, (struct door_then){ on_signed_in, c->rq }, e);
}

static int ask_way(struct call *c, struct trying *t, struct err *e)
{
    const struct door *d = c->api->door;
    const struct person *x = people_find(auth_people(c->api->config.auth), str_of(t->user));
    AUTO(buf_free) struct buf q = BUF(64 << 10);
    struct json_out w = { .b = &q };
    static const char *const verbs[] = {
        [WAY_LOCAL] = "password", [WAY_LDAP] = "ldap", [WAY_PAM] = "pam"
    };
    ways_ask(d->ways, t->way, verbs[t->way], &w);
    if (t->way == WAY_LOCAL) {
        if (t->real && x)
            json_put_str(&w, "hash", str_of(x->hash));
        else
            json_put_null(&w, "hash");
    } else {
        json_put_str(&w, "user", str_of(t->user));
    }
    if (t->way == WAY_PAM)
        json_put_str(&w, "from", str_of(http_peer(c->rq)->address));
    json_put_str(&w, "password", str_of(t->password));
    json_end(&w, '}');
    return door_ask(c, t->way, &q, on_checked, t, e);
}

/* How this person signs in, or would if they were known. */
static void choose_way(struct call *c, struct trying *t)
{
    const struct ways *w = c->api->door->ways;
    const struct person *x = people_find(auth_people(c->api->config.auth), str_of(t->user));
    bool is_new = !x || x->kind == PERSON_MACHINE;
    t->way = WAY_LOCAL;
    if (x && x->kind == PERSON_LOCAL)
        t->real = ways_has(w, WAY_LOCAL) && x->hash[0];
    else if (ways_has(w, WAY_LDAP) && (is_new || x->kind == PERSON_LDAP))
        t->way = WAY_LDAP;
    else if (ways_has(w, WAY_PAM) && (is_new || x->kind == PERSON_PAM))
        t->way = WAY_PAM;
    t->real = t->real || t->way != WAY_LOCAL;
}

static int by_password(struct call *c, const struct json *o, struct err *e)
{
    struct trying *t = arena_new(http_arena(c->rq), struct trying);
    struct str user, password;
    c->field = "user";
    if (json_need_str(o, "user", PERSON_NAME_MAX, &user, e) < 0)
        return -1;
    c->field = "password";
    if (json_need_str(o, "password", PASSWORD_MOST, &password, e) < 0)
        return -1;
    if (password.n == 0) {
        err_set(e, ERR_INVALID, "field 'password' is empty");
        return err_hint(e, "type the password");
    }
    c->field = NULL;
    memcpy(t->user, user.p, user.n);
    memcpy(t->password, password.p, password.n);
    t->attempt = door_attempt(c, user);
    t->began_ms = (uint64_t)clock_mono_ns() / 1000000;
    if (door_begin_try(c, &t->attempt, e) < 0)
        return -1;
    struct err none;
    if (person_check_name(user, &none) == 0)
        choose_way(c, t);
    if (ask_way(c, t, e) == 0)
        return 0;
    throttle_undo(c->api->door->throttle, &t->attempt);
    sodium_memzero(t->password, sizeof t->password);
    return -1;
}

/* ---- with a token ---- */

/* A browser that has shown a token gets a session of its owner's, no wider than the token. */
static int by_token(struct call *c, struct str token, struct err *e)
{
    struct attempt a = door_attempt(c, STR(""));
    int64_t now_ms = clock_now_ms(&c->api->config.clock);
    if (door_may_try(c, &a, e) < 0)
        return -1;
    c->field = "token";
    if (auth_token(c->api->config.auth, token, now_ms, &c->who, e) < 0) {
        throttle_failed(c->api->door->throttle, &a, now_ms);
        return -1;
    }
    c->field = NULL;
    const struct auth_key *t = auth_key_of(c->api->config.auth, KEY_TOKEN, c->who.hash);
    struct auth_key like = { .name =
                                 arena_printf(http_arena(c->rq), OPENED_BY_TOKEN "%s", c->who.key),
                             .expires_ms = t ? t->expires_ms : now_ms,
                             .scopes = c->who.scopes,
                             .tenants_only = c->who.tenants_only,
                             .tenant = (char **)(uintptr_t)c->who.tenant,
                             .tenants = c->who.tenants };
    struct person *x = people_make(auth_people(c->api->config.auth), str_of(c->who.user));
    return door_let_in(c, x, &like, (struct door_then){ on_signed_in, c->rq }, e);
}

int api_session_open(struct call *c, struct err *e)
{
    static const char *const keys[] = { "token", "user", "password" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct str token;
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0)
        return -1;
    const struct json *o = json_root(d);
    if (!json_find(o, "token"))
        return by_password(c, o, e);
    c->field = "token";
    if (json_find(o, "user") || json_find(o, "password")) {
        err_set(e, ERR_INVALID, "fields 'token' and 'user' exclude each other");
        return err_hint(e, "sign in with one of them");
    }
    return json_need_str(o, "token", 256, &token, e) < 0 ? -1 : by_token(c, token, e);
}
