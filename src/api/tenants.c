/* Tenants: what they may have, and who is in them. */
#include "spec/tenant.h"

#include "api/audit.h"
#include "api/directory.h"
#include "api/lent.h"

/* ---- showing ---- */

static void put_members(struct call *c, struct json_out *w, struct str tenant)
{
    struct people *p = auth_people(c->api->config.auth);
    const struct person *x;
    json_begin(w, "members", '[');
    for (size_t i = 0; (x = people_at(p, i)); i++) {
        if (!x->name)
            continue;
        enum role r = people_role_in(p, str_of(x->name), tenant);
        if (r == ROLE_NONE)
            continue;
        struct str user = str_of(x->name);
        const char *from = people_said(p, user, tenant, true) != ROLE_NONE  ? "settings"
                         : people_said(p, user, tenant, false) != ROLE_NONE ? "said"
                                                                            : "above or group";
        json_begin(w, NULL, '{');
        json_put_str(w, "user", str_of(x->name));
        json_put_str(w, "role", str_of(role_name(r)));
        json_put_str(w, "by", str_of(from));
        json_end(w, '}');
    }
    json_end(w, ']');
}

static void put_tenant(struct call *c, struct json_out *w, const struct control_tenant *t,
                       bool whole)
{
    json_begin(w, NULL, '{');
    json_put_str(w, "name", str_of(t->name));
    json_put_bool(w, "of_settings", t->of_settings);
    put_when(w, "created_ms", t->created_ms ? t->created_ms : INT64_MAX);
    json_begin(w, "spec", '{');
    tenant_write(t->spec, w);
    json_end(w, '}');
    if (whole)
        put_members(c, w, str_of(t->name));
    json_end(w, '}');
}

int api_tenant_list(struct call *c, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    struct control_tenant t;
    (void)e;
    json_begin(&w, NULL, '{');
    json_begin(&w, "tenants", '[');
    for (size_t i = 0; control_tenant_at(c->api->config.control, i, &t); i++)
        if (sees_tenant(c, str_of(t.name)))
            put_tenant(c, &w, &t, false);
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

static int reply_tenant(struct call *c, struct str name, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    struct control_tenant t;
    if (!control_tenant_find(c->api->config.control, name, &t))
        return err_set(e, ERR_NOT_FOUND, "the tenant '%.*s' is gone", STR_ARG(name));
    put_tenant(c, &w, &t, true);
    reply_json(c, 200, &b);
    return 0;
}

int api_tenant_get(struct call *c, struct err *e)
{
    return reply_tenant(c, c->param[0], e);
}

static void on_changed(void *ctx)
{
    struct named_later *l = ctx;
    struct err e;
    if (reply_tenant(&l->call, l->name, &e) < 0)
        http_reply_error(l->call.rq, &e, NULL);
}

static void on_gone(void *ctx)
{
    struct named_later *l = ctx;
    http_reply(l->call.rq, 204, NULL, STR(""));
}

/* ---- changing ---- */

static struct str spec_text(struct call *c, const struct tenant_spec *t)
{
    AUTO(buf_free) struct buf b = BUF(AUDIT_JSON_MAX);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    tenant_write(t, &w);
    json_end(&w, '}');
    return audit_kept(c, &b);
}

int check_profiles(struct call *c, const struct tenant_spec *t, struct err *e)
{
    const struct api_config *f = &c->api->config;
    for (size_t i = 0; i < t->profiles; i++) {
        bool known = false;
        for (size_t k = 0; k < f->profiles; k++)
            known |= str_eq(t->profile[i], f->profile[k].name);
        if (known)
            continue;
        c->field = "profiles";
        err_set(e, ERR_INVALID, "field 'profiles': there is no profile '%.*s'",
                STR_ARG(t->profile[i]));
        return err_hint(e, "profiles are in the settings file; see GET /v1/profiles");
    }
    return 0;
}

int api_tenant_put(struct call *c, struct err *e)
{
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct named_later *l = named_later_new(c);
    struct tenant_spec base = tenant_default(), spec;
    struct control_tenant was;
    bool known = control_tenant_find(c->api->config.control, l->name, &was);
    if (known)
        base = *was.spec;
    if (read_body(c, NULL, 0, &d, e) < 0 ||
        tenant_read(&(struct tenant_text){ json_root(d), &base, NULL }, http_arena(c->rq), &spec,
                    &c->field, e) < 0 ||
        check_profiles(c, &spec, e) < 0)
        return -1;
    struct control_tenant_change ch = { l->name, str_of(c->who.user), &spec };
    struct audit_change done = { .what = AUDIT_TENANT_SET,
                                 .subject = l->name,
                                 .tenant = l->name,
                                 .before = known ? spec_text(c, &base) : STR(""),
                                 .after = spec_text(c, &spec) };
    if (control_tenant_put(c->api->config.control, &ch, (struct control_done){ on_changed, l }, e) <
        0)
        return -1;
    api_audit(c, &done);
    learn_tenant(c->api, l->name);
    return 0;
}

void remove_places(struct api *a, struct str tenant)
{
    struct people *p = auth_people(a->config.auth);
    struct place at;
    for (size_t i = 0; people_place_at(p, i, &at); i++)
        if (str_eq(at.tenant, tenant) && !at.of_settings) {
            at.role = ROLE_NONE;
            keep_place(a, &at);
        }
    people_drop_tenant(p, tenant);
}

int api_tenant_delete(struct call *c, struct err *e)
{
    struct named_later *l = named_later_new(c);
    struct control_tenant was;
    struct audit_change gone = { .what = AUDIT_TENANT_DELETE,
                                 .subject = l->name,
                                 .tenant = l->name };
    if (control_tenant_find(c->api->config.control, l->name, &was))
        gone.before = spec_text(c, was.spec);
    if (control_tenant_delete(c->api->config.control, l->name, str_of(c->who.user),
                              (struct control_done){ on_gone, l }, e) < 0)
        return -1;
    api_audit(c, &gone);
    remove_places(c->api, l->name);
    return 0;
}

/* ---- members ---- */

static struct str role_text(struct call *c, enum role r)
{
    return r == ROLE_NONE
             ? STR("")
             : str_of(arena_printf(http_arena(c->rq), "{\"role\":\"%s\"}", role_name(r)));
}

/* Before it is changed. */
static void audit_member(struct call *c, const struct place *at)
{
    struct people *p = auth_people(c->api->config.auth);
    enum role was = people_said(p, at->user, at->tenant, false);
    api_audit(c, &(struct audit_change){ .what = at->role == ROLE_NONE ? AUDIT_MEMBER_DELETE
                                                                       : AUDIT_MEMBER_SET,
                                         .subject = at->user,
                                         .tenant = at->tenant,
                                         .before = role_text(c, was),
                                         .after = role_text(c, at->role) });
}

static int set_member(struct call *c, enum role role, struct err *e)
{
    struct named_later *l = named_later_new(c);
    struct arena *a = http_arena(c->rq);
    struct place at = { .tenant = l->name,
                        .user = { arena_strndup(a, c->param[1].p, c->param[1].n), c->param[1].n },
                        .role = role,
                        .by_lead = !may_on_site(c, ACCESS_LEAD) };
    c->field = "user";
    if (person_check_name(at.user, e) < 0)
        return err_wrap(e, "user");
    c->field = NULL;
    struct place said;
    if (role != ROLE_NONE &&
        people_place_at(auth_people(c->api->config.auth), PLACES_MAX - 1, &said)) {
        err_set(e, ERR_CONFLICT, "there are %d members of tenants already", PLACES_MAX);
        return err_hint(e, "let groups of the identity provider say who is in a tenant");
    }
    audit_member(c, &at);
    struct people *people = auth_people(c->api->config.auth);
    at.by_lead &= !people_given(people, at.user, at.tenant);
    change_place(c->api, &at);
    control_commit(c->api->config.control, (struct control_done){ on_changed, l });
    return 0;
}

int api_member_put(struct call *c, struct err *e)
{
    static const char *const keys[] = { "role" };
    AUTO(json_free_p) struct json_doc *d = NULL;
    struct str word = STR("member");
    enum role role;
    if (read_body(c, keys, ARRAY_LEN(keys), &d, e) < 0)
        return -1;
    c->field = "role";
    if (json_get_str(json_root(d), "role", 32, &word, e) < 0)
        return -1;
    if (!role_parse(word, ROLE_IN_TENANT, &role)) {
        err_set(e, ERR_INVALID, "field 'role': '%.*s' is not a role in a tenant", STR_ARG(word));
        return err_hint(e, "%s", role_words(ROLE_IN_TENANT));
    }
    c->field = NULL;
    return set_member(c, role, e);
}

int api_member_delete(struct call *c, struct err *e)
{
    struct people *p = auth_people(c->api->config.auth);
    if (people_said(p, c->param[1], c->param[0], false) != ROLE_NONE)
        return set_member(c, ROLE_NONE, e);
    if (people_said(p, c->param[1], c->param[0], true) != ROLE_NONE) {
        err_set(e, ERR_CONFLICT, "'%.*s' is a member by the settings file", STR_ARG(c->param[1]));
        return err_hint(e, "take them out there and restart nightshiftd");
    }
    err_set(e, ERR_NOT_FOUND, "'%.*s' has no place in '%.*s' that could be taken",
            (int)MIN(c->param[1].n, (size_t)60), c->param[1].p, STR_ARG(c->param[0]));
    return err_hint(e, "places that follow from groups end with the group; see nightshift tenants "
                       "show");
}
