/* Passwords of accounts here, and the first administrator: whoever has the one-time code becomes it. */
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#include "api/audit.h"
#include "api/directory.h"
#include "api/door.h"
#include "sys/file.h"

#define PASSWORD_LEAST 10 /* bytes */
#define PASSWORD_MOST 1024
#define CODE_LETTERS 16 /* of 32: 80 bits */
#define SETUP_FILE "setup-code"

/* ---- a new password ---- */

struct renewing {
    char user[PERSON_NAME_MAX + 1], password[PASSWORD_MOST + 1];
    struct attempt attempt;
    bool first; /* the one-time code was right: the user becomes an administrator */
};

static int read_password(struct call *c, const struct json *o, struct renewing *r, struct err *e)
{
    struct str password;
    c->field = "password";
    if (json_need_str(o, "password", PASSWORD_MOST, &password, e) < 0)
        return -1;
    if (password.n < PASSWORD_LEAST) {
        err_set(e, ERR_INVALID, "field 'password' is too short: at least %d letters",
                PASSWORD_LEAST);
        return err_hint(e, "some words in a row are easy to remember");
    }
    if (str_is(password, r->user)) {
        err_set(e, ERR_INVALID, "field 'password' is the user's name");
        return err_hint(e, "take something that others do not guess");
    }
    memcpy(r->password, password.p, password.n);
    c->field = NULL;
    return 0;
}

static void on_done(void *ctx)
{
    http_reply(ctx, 204, NULL, STR(""));
}

/* Other browsers have to sign in anew. */
static void drop_other_sessions(struct call *c, char *user)
{
    const struct auth_key *k = auth_key_of(c->api->config.auth, KEY_SESSION, c->who.hash);
    struct auth_key mine = { .user = user };
    if (k && strcmp(k->user, user) == 0) {
        memcpy(mine.hash, k->hash, sizeof mine.hash);
        mine.chain = k->chain;
    }
    sessions_drop(c->api, &mine, true);
    streams_end_of(c->api, str_of(user));
}

static int on_hashed(struct call *c, void *ctx, const struct json *answer, const struct err *why,
                     struct err *e)
{
    struct renewing *r = ctx;
    struct door *d = c->api->door;
    struct str hash;
    sodium_memzero(r->password, sizeof r->password);
    if (why) {
        *e = *why;
        return -1;
    }
    if (json_need_str(answer, "hash", 1024, &hash, e) < 0)
        return -1;
    if (r->first && !d->can_setup) {
        err_set(e, ERR_CONFLICT, "somebody else was first");
        return err_hint(e, "sign in, or ask who that was");
    }
    struct person *x = people_make(auth_people(c->api->config.auth), str_of(r->user));
    person_set(&x->hash, hash);
    x->kind = PERSON_LOCAL;
    x->created_ms = x->created_ms ? x->created_ms : clock_now_ms(&c->api->config.clock);
    if (r->first)
        x->role = ROLE_ADMIN;
    keep_person(c->api, x);
    if (!c->who.user[0]) /* nobody is signed in yet */
        snprintf(c->who.user, sizeof c->who.user, "%s", r->user);
    api_audit(c, &(struct audit_change){ .what = r->first ? AUDIT_SETUP : AUDIT_USER_PASSWORD,
                                         .subject = str_of(r->user) });
    drop_other_sessions(c, r->user);
    if (r->first)
        setup_done(d);
    control_commit(c->api->config.control, (struct control_done){ on_done, c->rq });
    return 0;
}

static int ask_hash(struct call *c, struct renewing *r, struct err *e)
{
    AUTO(buf_free) struct buf q = BUF(16 << 10);
    struct json_out w = { .b = &q };
    json_begin(&w, NULL, '{');
    json_put_str(&w, "do", STR("hash"));
    json_put_str(&w, "password", str_of(r->password));
    json_end(&w, '}');
    return door_ask(c, WAY_LOCAL, &q, on_hashed, r, e);
}

static int on_old_checked(struct call *c, void *ctx, const struct json *answer,
                          const struct err *why, struct err *e)
{
    struct renewing *r = ctx;
    (void)answer;
    if (!why || why->code != ERR_DENIED)
        throttle_undo(c->api->door->throttle, &r->attempt);
    if (!why)
        return ask_hash(c, r, e);
    sodium_memzero(r->password, sizeof r->password);
    *e = *why;
    if (why->code == ERR_DENIED) {
        c->field = "old";
        err_set(e, ERR_DENIED, "field 'old': that is not the password");
        err_hint(e, "an administrator can set a new one: nightshift users password NAME");
    }
    return -1;
}

/* One's own needs the old one, so that a browser left open is not enough. */
static int check_old(struct call *c, const struct json *o, const struct person *x,
                     struct renewing *r, struct err *e)
{
    struct str old;
    AUTO(buf_free) struct buf q = BUF(16 << 10);
    struct json_out w = { .b = &q };
    c->field = "old";
    if (json_need_str(o, "old", PASSWORD_MOST, &old, e) < 0)
        return -1;
    c->field = NULL;
    r->attempt = door_attempt(c, str_of(r->user));
    if (door_begin_try(c, &r->attempt, e) < 0)
        return -1;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "do", STR("password"));
    json_put_str(&w, "hash", str_of(x->hash));
    json_put_str(&w, "password", old);
    json_end(&w, '}');
    if (door_ask(c, WAY_LOCAL, &q, on_old_checked, r, e) == 0)
        return 0;
    throttle_undo(c->api->door->throttle, &r->attempt);
    return -1;
}

int api_user_password(struct call *c, struct err *e)
{
    static const char *const keys[] = { "password", "old" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct renewing *r = arena_new(http_arena(c->rq), struct renewing);
    const struct person *x = people_find(auth_people(c->api->config.auth), c->param[0]);
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0)
        return -1;
    c->field = "user";
    if (person_check_name(c->param[0], e) < 0)
        return -1;
    memcpy(r->user, c->param[0].p, c->param[0].n);
    if ((!x && site_role(c) != ROLE_ADMIN) || !ways_has(c->api->door->ways, WAY_LOCAL) ||
        (x && x->kind != PERSON_LOCAL && x->kind != PERSON_MACHINE) ||
        (x && !x->hash[0] && site_role(c) != ROLE_ADMIN)) {
        err_set(e, ERR_CONFLICT, "'%s' has no password here%s%s", r->user,
                x ? ": signs in by " : "", x ? person_kind_name(x->kind) : "");
        return err_hint(e, "change it where it is kept");
    }
    c->field = NULL;
    if (read_password(c, json_root(d), r, e) < 0)
        return -1;
    bool own = str_is(c->param[0], c->who.user);
    return own && x && x->hash[0] && !c->who.root ? check_old(c, json_root(d), x, r, e)
                                                  : ask_hash(c, r, e);
}

/* ---- the first administrator ---- */

static bool somebody_can(const struct people *p)
{
    const struct person *x;
    for (size_t i = 0; (x = people_at(p, i)); i++)
        if (x->name && people_site_role(p, str_of(x->name)) == ROLE_ADMIN &&
            (x->hash[0] || x->kind == PERSON_LDAP || x->kind == PERSON_PAM ||
             x->kind == PERSON_OIDC))
            return true;
    return false;
}

/* "ABCD-EFGH-JKLM-NPQR" */
static void make_code(char out[static CODE_LETTERS * 2])
{
    static const char letters[] = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    size_t n = 0;
    for (size_t i = 0; i < CODE_LETTERS; i++) {
        if (i && i % 4 == 0)
            out[n++] = '-';
        out[n++] = letters[randombytes_uniform(32)];
    }
    out[n] = '\0';
}

void setup_open(struct door *d)
{
    struct err why;
    const char *state = d->api->config.state;
    char path[4096], code[CODE_LETTERS * 2 + 2];
    if (!state || !ways_has(d->ways, WAY_LOCAL) || somebody_can(auth_people(d->api->config.auth)))
        return;
    make_code(code);
    auth_hash_key(str_of(code), d->setup_hash);
    size_t n = strlen(code);
    code[n] = '\n';
    code[n + 1] = '\0';
    snprintf(path, sizeof path, "%s/" SETUP_FILE, state);
    if (file_write_private(path, str_of(code), &why) < 0) { /* a full disk keeps nobody from work */
        log_event(d->api->config.log, LOG_WARN_, "setup.closed", "why=%s", why.msg);
        return;
    }
    d->can_setup = true;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "The first administrator signs in at /signin with the one-time code %s",
                code);
    log_event(d->api->config.log, LOG_INFO_, "setup.open", "file=%s", path);
    sodium_memzero(code, sizeof code);
}

void setup_done(struct door *d)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/" SETUP_FILE, d->api->config.state);
    unlink(path);
    d->can_setup = false;
    sodium_memzero(d->setup_hash, sizeof d->setup_hash);
}

int api_setup(struct call *c, struct err *e)
{
    static const char *const keys[] = { "code", "user", "password" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct renewing *r = arena_new(http_arena(c->rq), struct renewing);
    struct door *door = c->api->door;
    struct attempt a = door_attempt(c, STR(""));
    struct str code, user;
    uint8_t hash[KEY_HASH_BYTES];
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0 || door_may_try(c, &a, e) < 0)
        return -1;
    c->field = "code";
    if (json_need_str(json_root(d), "code", 64, &code, e) < 0)
        return -1;
    code = str_trim(code);
    auth_hash_key(code, hash);
    if (!door->can_setup || sodium_memcmp(hash, door->setup_hash, sizeof hash) != 0) {
        throttle_failed(door->throttle, &a, clock_now_ms(&c->api->config.clock));
        err_set(e, ERR_DENIED,
                door->can_setup ? "field 'code': that is not the code"
                                : "there is an administrator already");
        return door->can_setup
                 ? err_hint(e, "it is in the file " SETUP_FILE " of the state folder, for root")
                 : err_hint(e, "sign in; a forgotten password is set anew on the machine: "
                               "nightshift users password NAME");
    }
    c->field = "user";
    if (json_need_str(json_root(d), "user", PERSON_NAME_MAX, &user, e) < 0 ||
        person_check_name(user, e) < 0)
        return -1;
    const struct person *x = people_find(auth_people(c->api->config.auth), user);
    if (x && x->kind != PERSON_LOCAL && x->kind != PERSON_MACHINE) {
        err_set(e, ERR_CONFLICT, "field 'user': '%s' signs in another way", x->name);
        return err_hint(e, "choose another name");
    }
    memcpy(r->user, user.p, user.n);
    r->first = true;
    return read_password(c, json_root(d), r, e) < 0 ? -1 : ask_hash(c, r, e);
}
