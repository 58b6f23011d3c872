#include "daemon/site.h"

#include "base/parse.h"
#include "daemon/numbers.h"
#include "daemon/pools.h"

#define TENANTS_MAX 10000

static struct str keep(struct config *c, struct str s)
{
    return (struct str){ arena_strndup(&c->arena, s.p, s.n), s.n };
}

/* A list of users, or an object that gives each a role. */
static int read_members(struct auth *auth, struct str tenant, const struct json *o, struct err *e)
{
    const struct json *all = json_find(o, "members");
    struct people *p = auth_people(auth);
    struct place at = { .tenant = tenant, .role = ROLE_MEMBER, .of_settings = true };
    struct str role;
    if (all && !json_is_array(all) && !json_is_object(all))
        return err_set(e, ERR_INVALID, "members: a list of users, or a role for each, is needed");
    for (const struct json *v = json_is_array(all) ? json_first(all) : NULL; v;
         v = json_next(all, v)) {
        if (json_as_str(v, PERSON_NAME_MAX, &at.user, e) < 0)
            return err_wrap(e, "members");
        people_set_place(p, &at);
    }
    for (struct json_member m = { 0 }; json_is_object(all) && json_next_member(all, &m);) {
        at.user = m.key;
        if (json_as_str(m.value, 32, &role, e) < 0)
            return err_wrap(e, "members: %.*s", STR_ARG(m.key));
        if (!role_parse(role, ROLE_IN_TENANT, &at.role)) {
            err_set(e, ERR_INVALID, "members: '%.*s' is not a role in a tenant", STR_ARG(role));
            return err_hint(e, "%s", role_words(ROLE_IN_TENANT));
        }
        people_set_place(p, &at);
    }
    return 0;
}

static int read_tenant(struct config *c, struct auth *auth, struct str name, const struct json *o,
                       struct control_tenant_def *out, struct err *e)
{
    static const char *const beside[] = { "members", NULL };
    struct tenant_spec usual = tenant_default();
    *out = (struct control_tenant_def){ .name = keep(c, name), .spec = usual };
    people_set_tenant(auth_people(auth), name, STR(""), NULL, 0); /* its tree: see api_learn */
    if (json_is_null(o))                                          /* "name:" alone */
        return 0;
    if (tenant_read(&(struct tenant_text){ o, &usual, beside }, &c->arena, &out->spec, NULL, e) < 0)
        return -1;
    return read_members(auth, name, o, e);
}

/* Parents first; a parent that is not there or a circle is refused. */
static int sort_tenants(struct site *s, struct err *e)
{
    size_t done = 0;
    while (done < s->tenants) {
        size_t before = done;
        for (size_t i = done; i < s->tenants; i++) {
            bool ready = s->tenant[i].spec.parent.n == 0;
            for (size_t k = 0; k < done; k++)
                ready |= str_eq(s->tenant[k].name, s->tenant[i].spec.parent);
            if (!ready)
                continue;
            struct control_tenant_def t = s->tenant[i];
            s->tenant[i] = s->tenant[done];
            s->tenant[done++] = t;
        }
        if (done == before)
            return err_set(e, ERR_INVALID,
                           "tenants: '%.*s' has a parent '%.*s' that is not there, "
                           "or below it",
                           STR_ARG(s->tenant[done].name), STR_ARG(s->tenant[done].spec.parent));
    }
    return 0;
}

static int read_tenants(struct config *c, struct auth *auth, struct site *s, struct err *e)
{
    const struct json *o = c->file ? json_find(c->file, "tenants") : NULL;
    size_t n = o ? json_members(o) : 0;
    if (o && !json_is_object(o))
        return err_set(e, ERR_INVALID, "tenants: an object is needed, one key a tenant");
    if (n > TENANTS_MAX)
        return err_set(e, ERR_INVALID, "tenants: there are %zu; at most %d", n, TENANTS_MAX);
    s->tenant = arena_array(&c->arena, struct control_tenant_def, n + 1);
    for (struct json_member m = { 0 }; o && json_next_member(o, &m);)
        if (read_tenant(c, auth, m.key, m.value, &s->tenant[s->tenants++], e) < 0)
            return err_wrap(e, "tenants: %.*s", STR_ARG(m.key));
    if (s->default_tenant.n == 0) /* whoever is in no tenant is in none */
        return sort_tenants(s, e);
    for (size_t i = 0; i < s->tenants; i++)
        if (str_eq(s->tenant[i].name, s->default_tenant))
            return sort_tenants(s, e);
    if (s->default_tenant.n) /* empty: whoever is in no tenant is in none */
        s->tenant[s->tenants++] =
            (struct control_tenant_def){ .name = s->default_tenant, .spec = tenant_default() };
    return sort_tenants(s, e);
}

/* A profile has the fields of a job's `resources`, so it is read as one. */
static int read_profile(struct config *c, struct str name, const struct json *v,
                        struct api_profile *out, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(64 << 10);
    struct json_out w = { .b = &text };
    struct str help = STR("");
    struct spec spec;
    if (!json_is_object(v) || json_get_str(v, "help", 400, &help, e) < 0)
        return err_set(e, ERR_INVALID, "an object with resources is needed");
    json_begin(&w, NULL, '{');
    json_put_raw(&w, "command", STR("[\"-\"]"));
    json_begin(&w, "resources", '{');
    for (struct json_member m = { 0 }; json_next_member(v, &m);)
        if (!str_is(m.key, "help"))
            json_put(&w, m.key.p, m.value);
    json_end(&w, '}');
    json_end(&w, '}');
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&text), e);
    if (!d || spec_read(json_root(d), &c->arena, &spec, NULL, e) < 0)
        return -1;
    *out = (struct api_profile){ .name = keep(c, name),
                                 .help = keep(c, help),
                                 .request = spec.request,
                                 .gpu_type = spec.gpu_type };
    return 0;
}

static int read_profiles(struct config *c, struct site *s, struct err *e)
{
    const struct json *o = c->file ? json_find(c->file, "profiles") : NULL;
    if (o && !json_is_object(o))
        return err_set(e, ERR_INVALID, "profiles: an object is needed, one key a profile");
    s->profile = arena_array(&c->arena, struct api_profile, (o ? json_members(o) : 0) + 1);
    for (struct json_member m = { 0 }; o && json_next_member(o, &m);)
        if (read_profile(c, m.key, m.value, &s->profile[s->profiles++], e) < 0)
            return err_wrap(e, "profiles: %.*s", STR_ARG(m.key));
    return 0;
}

int site_read_policy(const struct config *c, struct policy *out, struct err *e)
{
    if (numbers_read(c->file ? json_find(c->file, "policy") : NULL, out, e) < 0)
        return err_wrap(e, "policy");
    return 0;
}

static int read_admins(struct config *c, struct auth *auth, struct err *e)
{
    const struct json *o = c->file ? json_find(c->file, "admins") : NULL;
    struct str user;
    if (o && !json_is_array(o))
        return err_set(e, ERR_INVALID, "admins: a list of users is needed");
    for (const struct json *v = o ? json_first(o) : NULL; v; v = json_next(o, v)) {
        if (json_as_str(v, NAME_MAX_BYTES, &user, e) < 0)
            return err_wrap(e, "admins");
        people_make(auth_people(auth), user)->file_role = ROLE_ADMIN;
    }
    return 0;
}

static int read_pools(struct config *c, int64_t now_ms, struct site *s, struct err *e)
{
    return pools_read(c->file ? json_find(c->file, "pools") : NULL, now_ms, &c->arena, &s->pool,
                      &s->pools, e);
}

int site_read(struct config *c, struct auth *auth, int64_t now_ms, struct site *out, struct err *e)
{
    struct site s = { .default_tenant = STR("default") };
    if (c->file &&
        json_get_str(c->file, "default_tenant", NAME_MAX_BYTES, &s.default_tenant, e) < 0)
        return err_wrap(e, "%s", c->file_path);
    s.default_tenant = keep(c, s.default_tenant);
    if (site_read_policy(c, &s.policy, e) < 0 || read_tenants(c, auth, &s, e) < 0 ||
        read_profiles(c, &s, e) < 0 || read_admins(c, auth, e) < 0 ||
        read_pools(c, now_ms, &s, e) < 0)
        return err_wrap(e, "%s", c->file_path ? c->file_path : "settings");
    people_set_default_tenant(auth_people(auth), s.default_tenant);
    *out = s;
    return 0;
}
