/* People: their roles on the site, how they sign in, which machines are theirs. */
#include "api/audit.h"
#include "api/directory.h"
#include "api/lent.h"
#include "store/directory.h"

/* ---- showing ---- */

static void put_person(struct call *c, struct json_out *w, const struct person *x)
{
    struct people *p = auth_people(c->api->config.auth);
    struct str user = str_of(x->name), node, owner;
    AUTO(arena_free) struct arena a = { 0 };
    size_t n;
    const struct place *at = people_places(p, user, &a, &n);
    json_begin(w, NULL, '{');
    json_put_str(w, "name", user);
    json_put_str(w, "full_name", str_of(x->full_name));
    json_put_str(w, "mail", str_of(x->mail));
    json_put_str(w, "kind", str_of(person_kind_name(x->kind)));
    json_put_str(w, "role", str_of(role_name(people_site_role(p, user))));
    json_put_bool(w, "disabled", x->disabled);
    json_put_bool(w, "has_password", x->hash[0] != '\0');
    json_begin(w, "tenants", '{');
    for (size_t i = 0; i < n; i++)
        json_put_str(w, arena_strndup(&a, at[i].tenant.p, at[i].tenant.n),
                     str_of(role_name(at[i].role)));
    json_end(w, '}');
    json_begin(w, "groups", '[');
    for (size_t i = 0; i < x->groups; i++)
        json_put_str(w, NULL, str_of(x->group[i]));
    json_end(w, ']');
    json_begin(w, "machines", '[');
    for (size_t i = 0; people_owner_at(p, i, &node, &owner); i++)
        if (str_eq(owner, user))
            json_put_str(w, NULL, node);
    json_end(w, ']');
    put_when(w, "created_ms", x->created_ms ? x->created_ms : INT64_MAX);
    put_when(w, "seen_ms", x->seen_ms ? x->seen_ms : INT64_MAX);
    json_end(w, '}');
}

int api_user_list(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    const struct person *x;
    (void)e;
    json_begin(&w, NULL, '{');
    json_begin(&w, "users", '[');
    for (size_t i = 0; (x = people_at(auth_people(c->api->config.auth), i)); i++)
        if (x->name)
            put_person(c, &w, x);
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

static int no_user(struct str name, struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "there is no user '%.*s' here", (int)MIN(name.n, (size_t)60), name.p);
    return err_hint(e, "see those there are: nightshift users");
}

static int reply_user(struct call *c, struct str name, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    const struct person *x = people_find(auth_people(c->api->config.auth), name);
    if (!x)
        return no_user(name, e);
    put_person(c, &w, x);
    reply_json(c, 200, &b);
    return 0;
}

int api_user_get(struct call *c, struct err *e)
{
    return reply_user(c, c->param[0], e);
}

static void on_changed(void *ctx)
{
    struct named_later *l = ctx;
    struct err e;
    if (reply_user(&l->call, l->name, &e) < 0)
        http_reply_error(l->call.rq, &e, NULL);
}

static void on_gone(void *ctx)
{
    struct named_later *l = ctx;
    http_reply(l->call.rq, 204, NULL, STR(""));
}

/* ---- changing ---- */

static struct str person_text(struct call *c, const struct person *x)
{
    AUTO(buf_free) struct buf b = BUF(AUDIT_JSON_MAX);
    struct json_out w = { .b = &b };
    if (x)
        put_person(c, &w, x);
    return audit_kept(c, &b);
}

struct user_change {
    bool has_role, has_disabled, has_kind, has_full_name, has_mail;
    enum role role;
    enum person_kind kind;
    bool disabled;
    struct str full_name, mail;
};

static int read_role(struct call *c, const struct json *o, struct user_change *ch, struct err *e)
{
    struct str word = STR("");
    if (!json_find(o, "role"))
        return 0;
    c->field = "role";
    ch->has_role = true;
    if (json_get_str(o, "role", 32, &word, e) < 0)
        return -1;
    if (str_is(word, "none") || role_parse(word, ROLE_ON_SITE, &ch->role)) {
        c->field = NULL;
        return 0;
    }
    err_set(e, ERR_INVALID, "field 'role': '%.*s' is not a role on the site", STR_ARG(word));
    return err_hint(e, "%s, or none; roles in a tenant: nightshift tenants member",
                    role_words(ROLE_ON_SITE));
}

static int read_kind(struct call *c, const struct json *o, struct user_change *ch, struct err *e)
{
    struct str word = STR("");
    if (!json_find(o, "kind"))
        return 0;
    c->field = "kind";
    ch->has_kind = true;
    if (json_get_str(o, "kind", 32, &word, e) < 0)
        return -1;
    if (!person_kind_parse(word, &ch->kind)) {
        err_set(e, ERR_INVALID, "field 'kind': '%.*s' is not known here", STR_ARG(word));
        return err_hint(e, "local, pam, ldap, oidc, service or machine");
    }
    c->field = NULL;
    return 0;
}

static int read_change(struct call *c, const struct json *o, struct user_change *ch, struct err *e)
{
    ch->has_disabled = json_find(o, "disabled");
    ch->has_full_name = json_find(o, "full_name");
    ch->has_mail = json_find(o, "mail");
    if (read_role(c, o, ch, e) < 0 || read_kind(c, o, ch, e) < 0)
        return -1;
    c->field = "disabled";
    if (json_get_bool(o, "disabled", &ch->disabled, e) < 0)
        return -1;
    c->field = "full_name";
    if (json_get_str(o, "full_name", 200, &ch->full_name, e) < 0)
        return -1;
    c->field = "mail";
    if (json_get_str(o, "mail", 200, &ch->mail, e) < 0)
        return -1;
    c->field = NULL;
    return 0;
}

/* Somebody must be left who can give roles, beside root on the machine itself. */
static int check_self(struct call *c, struct str name, const struct user_change *ch, struct err *e)
{
    bool self = str_is(name, c->who.user);
    if (!self || c->who.root || (!ch->disabled && (!ch->has_role || ch->role == ROLE_ADMIN)))
        return 0;
    err_set(e, ERR_CONFLICT, "you would shut yourself out");
    return err_hint(e, "another administrator can do this");
}

int api_user_put(struct call *c, struct err *e)
{
    static const char *const keys[] = { "role", "kind", "disabled", "full_name", "mail" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct named_later *l = named_later_new(c);
    struct user_change ch = { 0 };
    c->field = "name";
    if (person_check_name(l->name, e) < 0)
        return -1;
    c->field = NULL;
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0 ||
        read_change(c, json_root(d), &ch, e) < 0 || check_self(c, l->name, &ch, e) < 0)
        return -1;
    struct audit_change done = { .what = AUDIT_USER_SET, .subject = l->name };
    done.before = person_text(c, people_find(auth_people(c->api->config.auth), l->name));
    struct person *x = people_make(auth_people(c->api->config.auth), l->name);
    if (!x->kept)
        x->created_ms = clock_now_ms(&c->api->config.clock);
    bool other_role = ch.has_role && x->role != ch.role;
    if (ch.has_role)
        x->role = ch.role;
    if (ch.has_kind)
        x->kind = ch.kind;
    if (ch.has_disabled)
        x->disabled = ch.disabled;
    if (ch.has_full_name)
        person_set(&x->full_name, ch.full_name);
    if (ch.has_mail)
        person_set(&x->mail, ch.mail);
    keep_person(c->api, x);
    done.after = person_text(c, x);
    api_audit(c, &done);
    if (ch.disabled)
        drop_keys_of(c->api, KEY_SESSION, l->name);
    if (ch.disabled || other_role)
        streams_end_of(c->api, l->name);
    control_commit(c->api->config.control, (struct control_done){ on_changed, l });
    return 0;
}

void remove_user(struct api *a, struct str name)
{
    struct people *p = auth_people(a->config.auth);
    struct str node, owner;
    struct place at;
    for (size_t i = 0; people_place_at(p, i, &at); i++)
        if (str_eq(at.user, name) && !at.of_settings) {
            at.role = ROLE_NONE;
            keep_place(a, &at);
        }
    for (size_t i = 0; people_owner_at(p, i, &node, &owner);) {
        if (!str_eq(owner, name)) {
            i++;
            continue;
        }
        keep_owner(a, node, owner, false);
        people_set_owner(p, node, name, false); /* another is in its place now */
    }
    drop_keys_of(a, KEY_SESSION, name);
    drop_keys_of(a, KEY_TOKEN, name);
    streams_end_of(a, name);
    if (a->config.notices)
        notices_forget(a->config.notices, control_batch(a->config.control), name);
    forget_person(a, name);
    people_drop(p, name);
}

int api_user_delete(struct call *c, struct err *e)
{
    struct named_later *l = named_later_new(c);
    struct people *p = auth_people(c->api->config.auth);
    const struct person *x = people_find(p, l->name);
    if (!x)
        return no_user(l->name, e);
    if (x->file_role != ROLE_NONE) {
        err_set(e, ERR_CONFLICT, "'%s' is an administrator by the settings file", x->name);
        return err_hint(e, "take them out there and restart nightshiftd");
    }
    if (check_self(c, l->name, &(struct user_change){ .disabled = true }, e) < 0)
        return -1;
    api_audit(c, &(struct audit_change){
                     .what = AUDIT_USER_DELETE, .subject = l->name, .before = person_text(c, x) });
    remove_user(c->api, l->name);
    control_commit(c->api->config.control, (struct control_done){ on_gone, l });
    return 0;
}

/* ---- machines ---- */

static int set_owner(struct call *c, bool owns, struct err *e)
{
    struct named_later *l = named_later_new(c);
    struct arena *a = http_arena(c->rq);
    struct str user = { arena_strndup(a, c->param[1].p, c->param[1].n), c->param[1].n };
    struct people *p = auth_people(c->api->config.auth);
    c->field = "name";
    if (person_check_name(l->name, e) < 0) { /* what separates the two in the store is in neither */
        err_set(e, ERR_INVALID, "'%.*s' cannot be a machine's name", (int)MIN(l->name.n, FIELD_MAX),
                l->name.p);
        return err_hint(e, "see those there are: nightshift nodes");
    }
    c->field = "user";
    if (person_check_name(user, e) < 0)
        return -1;
    c->field = NULL;
    if (!owns && !people_owns(p, user, l->name)) {
        err_set(e, ERR_NOT_FOUND, "'%.*s' does not own '%.*s'", STR_ARG(user), STR_ARG(l->name));
        return err_hint(e, "see nightshift users show NAME");
    }
    if (owns)
        people_make(p, user);
    keep_owner(c->api, l->name, user, owns);
    people_set_owner(p, l->name, user, owns);
    struct str text =
        str_of(arena_printf(http_arena(c->rq), "{\"owner\":\"%.*s\"}", STR_ARG(user)));
    api_audit(c, &(struct audit_change){ .what = owns ? AUDIT_OWNER_SET : AUDIT_OWNER_DELETE,
                                         .subject = l->name,
                                         .before = owns ? STR("") : text,
                                         .after = owns ? text : STR("") });
    control_commit(c->api->config.control, (struct control_done){ on_gone, l });
    return 0;
}

int api_owner_put(struct call *c, struct err *e)
{
    return set_owner(c, true, e);
}

int api_owner_delete(struct call *c, struct err *e)
{
    return set_owner(c, false, e);
}
