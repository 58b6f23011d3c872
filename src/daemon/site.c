#include "daemon/site.h"

#include "base/parse.h"
#include "daemon/numbers.h"
#include "daemon/pools.h"

#define TENANTS_MAX 10000

static struct str keep(struct config *c, struct str s)
{
    return (struct str){ arena_strndup(&c->arena, s.p, s.n), s.n };
}

static int read_limit(const struct json *o, const char *key, struct amounts *out, struct err *e)
{
    static const char *const names[] = { "gpus", "cpus", "memory", "jobs" };
    const struct json *l = json_find(o, key);
    *out = AMOUNTS_NO_LIMIT;
    if (!l)
        return 0;
    if (json_only(l, names, ARRAY_LEN(names), e) < 0)
        return err_wrap(e, "%s", key);
    double gpus = -1, cpus = -1;
    uint64_t jobs = NO_LIMIT, bytes = 0;
    struct str mem = STR("");
    if (json_get_f64(l, "gpus", 0, 1e6, &gpus, e) < 0 ||
        json_get_f64(l, "cpus", 0, 1e6, &cpus, e) < 0 ||
        json_get_str(l, "memory", 32, &mem, e) < 0 ||
        json_get_u64(l, "jobs", INT64_MAX, &jobs, e) < 0 ||
        (mem.n && parse_size_bytes(mem, &bytes, e) < 0))
        return err_wrap(e, "%s", key);
    if (gpus >= 0)
        out->of[RES_GPU] = (uint64_t)(gpus * 1000 + 0.5);
    if (cpus >= 0)
        out->of[RES_CPU] = (uint64_t)(cpus * 1000 + 0.5);
    if (mem.n)
        out->of[RES_MEM] = bytes >> 20;
    out->of[RES_JOBS] = jobs;
    return 0;
}

static int read_members(struct auth *auth, struct str tenant, const struct json *o, struct err *e)
{
    const struct json *list = json_find(o, "members");
    struct str user;
    if (list && !json_is_array(list))
        return err_set(e, ERR_INVALID, "members: a list of users is needed");
    for (const struct json *v = list ? json_first(list) : NULL; v; v = json_next(list, v)) {
        if (json_as_str(v, NAME_MAX_BYTES, &user, e) < 0)
            return err_wrap(e, "members");
        auth_add_member(auth, tenant, user);
    }
    return 0;
}

static int read_tenant(struct config *c, struct auth *auth, struct str name, const struct json *o,
                       struct event_tenant *out, struct err *e)
{
    static const char *const keys[] = { "weight",  "guarantee", "parent",
                                        "members", "limit",     "user_limit" };
    double weight = 1, guarantee = 0;
    struct str parent = STR("");
    *out = (struct event_tenant){ .name = keep(c, name),
                                  .limit = AMOUNTS_NO_LIMIT,
                                  .user_limit = AMOUNTS_NO_LIMIT,
                                  .weight_milli = 1000 };
    if (json_is_null(o)) /* "name:" alone */
        return 0;
    if (json_only(o, keys, ARRAY_LEN(keys), e) < 0)
        return -1;
    if (json_get_f64(o, "weight", 0.001, 1e6, &weight, e) < 0 ||
        json_get_f64(o, "guarantee", 0, 1e6, &guarantee, e) < 0 ||
        json_get_str(o, "parent", NAME_MAX_BYTES, &parent, e) < 0 ||
        read_limit(o, "limit", &out->limit, e) < 0 ||
        read_limit(o, "user_limit", &out->user_limit, e) < 0 || read_members(auth, name, o, e) < 0)
        return -1;
    out->parent = keep(c, parent);
    out->weight_milli = (uint32_t)(weight * 1000 + 0.5);
    out->guarantee_milli = (uint64_t)(guarantee * 1000 + 0.5);
    return 0;
}

/* Parents first; a parent that is not there or a circle is refused. */
static int sort_tenants(struct site *s, struct err *e)
{
    size_t done = 0;
    while (done < s->tenants) {
        size_t before = done;
        for (size_t i = done; i < s->tenants; i++) {
            bool ready = s->tenant[i].parent.n == 0;
            for (size_t k = 0; k < done; k++)
                ready |= str_eq(s->tenant[k].name, s->tenant[i].parent);
            if (!ready)
                continue;
            struct event_tenant t = s->tenant[i];
            s->tenant[i] = s->tenant[done];
            s->tenant[done++] = t;
        }
        if (done == before)
            return err_set(e, ERR_INVALID,
                           "tenants: '%.*s' has a parent '%.*s' that is not there, "
                           "or below it",
                           STR_ARG(s->tenant[done].name), STR_ARG(s->tenant[done].parent));
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
    s->tenant = arena_array(&c->arena, struct event_tenant, n + 1);
    for (struct json_member m = { 0 }; o && json_next_member(o, &m);)
        if (read_tenant(c, auth, m.key, m.value, &s->tenant[s->tenants++], e) < 0)
            return err_wrap(e, "tenants: %.*s", STR_ARG(m.key));
    for (size_t i = 0; i < s->tenants; i++)
        if (str_eq(s->tenant[i].name, s->default_tenant))
            return sort_tenants(s, e);
    s->tenant[s->tenants++] = (struct event_tenant){ .name = s->default_tenant,
                                                     .limit = AMOUNTS_NO_LIMIT,
                                                     .user_limit = AMOUNTS_NO_LIMIT,
                                                     .weight_milli = 1000 };
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
        auth_add_admin(auth, user);
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
    auth_set_default_tenant(auth, s.default_tenant);
    *out = s;
    return 0;
}
