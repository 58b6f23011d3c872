/* A document of tenants and people is applied: all of it or nothing.
 *
 * First the plan (apply_plan.c); then every check, with the functions that the single calls use, on copies; then the
 * changes, within one turn: one commit has them all. */
#include "api/apply.h"
#include "api/audit.h"
#include "api/directory.h"
#include "api/lent.h"

static struct people *people_of(const struct applying *p)
{
    return auth_people(p->c->api->config.auth);
}

/* ---- checks ---- */

static int check_places(struct applying *p, struct err *e)
{
    size_t n = p->places;
    for (size_t i = 0; i < p->n; i++)
        if (p->change[i].tenant)
            n += p->change[i].tenant->members;
    if (n <= PLACES_MAX)
        return 0;
    p->c->field = "tenants";
    err_set(e, ERR_CONFLICT, "tenants: there would be more than %d members in all", PLACES_MAX);
    return err_hint(e, "let groups of the identity provider say who is in a tenant");
}

static int check_plan(struct applying *p, struct err *e)
{
    struct control_tenant_change *put = arena_array(p->a, struct control_tenant_change, p->n + 1);
    struct str *gone = arena_array(p->a, struct str, p->n + 1), about;
    struct control_tenants_change all = { .put = put, .gone = gone };
    for (size_t i = 0; i < p->n; i++) {
        const struct change *ch = &p->change[i];
        if (!ch->of_tenant)
            continue;
        if (ch->what == WHAT_REMOVE)
            gone[all.gones++] = ch->name;
        else if (ch->spec_differs || ch->what == WHAT_CREATE)
            put[all.puts++] = (struct control_tenant_change){ ch->name, str_of(p->c->who.user),
                                                              &ch->tenant->spec };
        if (ch->tenant && check_profiles(p->c, &ch->tenant->spec, e) < 0) {
            p->c->field = arena_printf(p->a, "tenants.%s.profiles", ch->name.p);
            return err_wrap(e, "tenants: %s", ch->name.p);
        }
    }
    if (check_places(p, e) < 0)
        return -1;
    if ((all.puts || all.gones) &&
        control_tenants_check(p->c->api->config.control, &all, &about, e) < 0) {
        p->c->field = arena_printf(p->a, "tenants.%.*s%s%s", STR_ARG(about), e->field[0] ? "." : "",
                                   e->field);
        return err_wrap(e, "tenants: %.*s", STR_ARG(about));
    }
    return 0;
}

/* ---- doing it ---- */

static enum role role_of(const struct roster_tenant *t, struct str user)
{
    for (size_t i = 0; t && i < t->members; i++)
        if (str_eq(t->member[i].user, user))
            return t->member[i].role;
    return ROLE_NONE;
}

static void set_place(struct applying *p, struct str tenant, struct str user, enum role role)
{
    struct place at = { .tenant = tenant, .user = user, .role = role };
    change_place(p->c->api, &at);
}

static int do_tenant(struct applying *p, const struct change *ch, struct err *e)
{
    struct api *a = p->c->api;
    struct control_tenant_change put = { ch->name, str_of(p->c->who.user),
                                         ch->tenant ? &ch->tenant->spec : NULL };
    struct control_done none = { 0 };
    if (ch->what == WHAT_REMOVE) {
        if (control_tenant_delete(a->config.control, ch->name, put.by, none, e) < 0)
            return -1;
        remove_places(a, ch->name);
        return 0;
    }
    if (ch->what == WHAT_CREATE || ch->spec_differs) {
        if (control_tenant_put(a->config.control, &put, none, e) < 0)
            return -1;
        learn_tenant(a, ch->name);
    }
    for (size_t i = 0; i < ch->tenant->members; i++) {
        const struct roster_member *m = &ch->tenant->member[i];
        if (role_of(ch->tenant_was, m->user) != m->role)
            set_place(p, ch->name, m->user, m->role);
    }
    for (size_t i = 0; ch->tenant_was && i < ch->tenant_was->members; i++)
        if (role_of(ch->tenant, ch->tenant_was->member[i].user) == ROLE_NONE)
            set_place(p, ch->name, ch->tenant_was->member[i].user, ROLE_NONE);
    return 0;
}

static void set_owner(struct applying *p, const struct roster_user *from,
                      const struct roster_user *to, bool owns)
{
    for (size_t i = 0; from && i < from->machines; i++) {
        bool kept = false;
        for (size_t k = 0; to && k < to->machines; k++)
            kept |= str_eq(from->machine[i], to->machine[k]);
        if (kept)
            continue;
        keep_owner(p->c->api, from->machine[i], from->name, owns);
        people_set_owner(people_of(p), from->machine[i], from->name, owns);
    }
}

static void do_user(struct applying *p, const struct change *ch)
{
    struct api *a = p->c->api;
    if (ch->what == WHAT_REMOVE) {
        remove_user(a, ch->name);
        return;
    }
    struct person *x = people_make(people_of(p), ch->name);
    if (!x->kept)
        x->created_ms = clock_now_ms(&a->config.clock);
    bool other_role = x->role != ch->user->role;
    x->role = ch->user->role;
    x->kind = ch->user->kind;
    x->disabled = ch->user->disabled;
    person_set(&x->full_name, ch->user->full_name);
    person_set(&x->mail, ch->user->mail);
    keep_person(a, x);
    if (x->disabled)
        drop_keys_of(a, KEY_SESSION, ch->name);
    if (x->disabled || other_role)
        streams_end_of(a, ch->name);
    set_owner(p, ch->user_was, ch->user, false);
    set_owner(p, ch->user, ch->user_was, true);
}

static struct str object_text(struct applying *p, const struct json_doc *d)
{
    AUTO(buf_free) struct buf b = BUF(AUDIT_JSON_MAX);
    json_put(&(struct json_out){ .b = &b }, NULL, json_root(d));
    return audit_kept(p->c, &b);
}

/* A row each, as the single calls would have written them; members and machines are in them. */
static void audit(struct applying *p, const struct change *ch)
{
    bool gone = ch->what == WHAT_REMOVE;
    api_audit(p->c, &(struct audit_change){
                        .what = ch->of_tenant ? (gone ? AUDIT_TENANT_DELETE : AUDIT_TENANT_SET)
                                              : (gone ? AUDIT_USER_DELETE : AUDIT_USER_SET),
                        .subject = ch->name,
                        .tenant = ch->of_tenant ? ch->name : STR(""),
                        .before = ch->what == WHAT_CREATE ? STR("") : object_text(p, ch->was),
                        .after = gone ? STR("") : object_text(p, ch->is),
                        .reason = STR("apply") });
}

/* ---- answers ---- */

static void put_changes(struct applying *p, struct json_out *w)
{
    static const char *const words[] = {
        [WHAT_CREATE] = "create", [WHAT_CHANGE] = "change", [WHAT_REMOVE] = "remove"
    };
    json_begin(w, NULL, '{');
    json_put_bool(w, "dry_run", p->want.dry_run);
    json_begin(w, "changes", '[');
    for (size_t i = 0; i < p->n; i++) {
        const struct change *ch = &p->change[i];
        json_begin(w, NULL, '{');
        json_put_str(w, "kind", ch->of_tenant ? STR("tenant") : STR("user"));
        json_put_str(w, "name", ch->name);
        json_put_str(w, "what", str_of(words[ch->what]));
        json_begin(w, "fields", '[');
        put_differences(w, p, ch);
        json_end(w, ']');
        json_end(w, '}');
    }
    json_end(w, ']');
    json_end(w, '}');
}

static void on_applied(void *ctx)
{
    struct named_later *l = ctx;
    http_reply(l->call.rq, 200, "application/json", l->body);
}

int api_apply(struct call *c, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = NULL;
    AUTO(applying_free) struct applying p = { .c = c, .a = http_arena(c->rq) };
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    if (read_body(c, NULL, 0, &d, e) < 0 ||
        roster_read(json_root(d), p.a, &p.want, &c->field, e) < 0)
        return -1;
    applying_look(&p);
    if (applying_plan(&p, e) < 0 || check_plan(&p, e) < 0)
        return -1;
    put_changes(&p, &w);
    if (buf_check(&b, e) < 0)
        return -1;
    if (p.want.dry_run || p.n == 0) {
        reply_json(c, 200, &b);
        return 0;
    }
    for (size_t i = 0; i < p.n; i++) {
        if (!p.change[i].of_tenant)
            do_user(&p, &p.change[i]);
        else if (do_tenant(&p, &p.change[i], e) < 0)
            return err_wrap(e, "what was checked is refused");
        audit(&p, &p.change[i]);
    }
    struct named_later *l = arena_new(p.a, struct named_later);
    *l = (struct named_later){ .call = *c, .body = { arena_strndup(p.a, b.p, b.n), b.n } };
    control_commit(c->api->config.control, (struct control_done){ on_applied, l });
    return 0;
}

/* ---- the present state ---- */

static void export_tenants(struct applying *p, struct json_out *w)
{
    struct control_tenant t;
    json_begin(w, "tenants", '{');
    for (size_t i = 0; control_tenant_at(p->c->api->config.control, i, &t); i++) {
        struct roster_tenant now = *tenant_now(p, &t);
        if (t.of_settings) /* the file says the rest */
            now.spec = tenant_default();
        if (t.of_settings && !now.members)
            continue;
        json_begin(w, t.name, '{');
        roster_put_tenant(w, &now);
        json_end(w, '}');
    }
    json_end(w, '}');
}

static void export_users(struct applying *p, struct json_out *w)
{
    const struct person *x;
    json_begin(w, "users", '{');
    for (size_t i = 0; (x = people_at(people_of(p), i)); i++) {
        if (!x->name || !is_said(p, x))
            continue;
        json_begin(w, x->name, '{');
        roster_put_user(w, user_now(p, x));
        json_end(w, '}');
    }
    json_end(w, '}');
}

int api_export(struct call *c, struct err *e)
{
    AUTO(applying_free) struct applying p = { .c = c, .a = http_arena(c->rq) };
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    applying_look(&p);
    json_begin(&w, NULL, '{');
    export_tenants(&p, &w);
    export_users(&p, &w);
    json_end(&w, '}');
    if (buf_check(&b, e) < 0)
        return -1;
    reply_json(c, 200, &b);
    return 0;
}
