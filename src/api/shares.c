/* Tenants: what they may have, have and had. */
#include "api/state.h"

static void put_amounts(struct json_out *w, const char *key, const struct amounts *a)
{
    static const struct {
        const char *name;
        enum resource r;
        double unit;
    } rows[] = {
        { "gpus", RES_GPU, 1e3 },          { "cpus", RES_CPU, 1e3 },
        { "memory_mib", RES_MEM, 1 },      { "jobs", RES_JOBS, 1 },
        { "notebooks", RES_NOTEBOOKS, 1 }, { "storage_mib", RES_STORAGE, 1 },
    };
    json_begin(w, key, '{');
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t v = a->of[rows[i].r];
        if (v == NO_LIMIT)
            json_put_null(w, rows[i].name);
        else
            json_put_f64(w, rows[i].name, (double)v / rows[i].unit, rows[i].unit > 1 ? 3 : 0);
    }
    json_end(w, '}');
}

static void put_share(struct json_out *w, const struct share_view *v)
{
    json_put_str(w, "name", str_of(v->name));
    json_put_f64(w, "weight", v->weight_milli / 1e3, 3);
    put_amounts(w, "used", &v->used);
    put_amounts(w, "limit", &v->limit);
    json_put_f64(w, "held_gpus", (double)v->cost_milli / 1e3, 3);
    json_put_f64(w, "past_gpus", v->past_milli / 1e3, 3);
    json_put_u64(w, "waiting", v->waiting);
}

/* What only tenants have: limits by model, a budget. */
static void put_rules(struct json_out *w, struct core *core, share_id id,
                      const struct share_view *v)
{
    struct share_model m;
    json_begin(w, "models", '[');
    for (uint32_t i = 0; core_share_model(core, id, i, &m); i++) {
        json_begin(w, NULL, '{');
        json_put_str(w, "models", str_of(m.models));
        json_put_f64(w, "used", (double)m.used_milli / 1e3, 3);
        json_put_f64(w, "limit", (double)m.limit_milli / 1e3, 3);
        json_end(w, '}');
    }
    json_end(w, ']');
    if (v->budget_gpu_milli_ms == 0) {
        json_put_null(w, "budget");
        return;
    }
    json_begin(w, "budget", '{');
    json_put_f64(w, "gpu_hours", (double)v->budget_gpu_milli_ms / 3.6e9, 3);
    json_put_f64(w, "used_gpu_hours", (double)v->spent_gpu_milli_ms / 3.6e9, 3);
    json_put_i64(w, "from_ms", v->budget_from_ms);
    json_put_i64(w, "until_ms", v->budget_until_ms);
    json_end(w, '}');
}

/* The users' shares of each tenant, found once for all of them. */
struct users_of {
    uint32_t *first, *next; /* by number; NONE: no more */
};

static struct users_of find_users(struct call *c, int64_t now_ms)
{
    struct core *core = control_core(c->api->config.control);
    uint32_t n = core_totals(core).shares;
    struct users_of of = { arena_array(http_arena(c->rq), uint32_t, n),
                           arena_array(http_arena(c->rq), uint32_t, n) };
    struct share_view v;
    for (uint32_t i = 0; i < n; i++)
        of.first[i] = NONE;
    for (uint32_t i = n; i-- > 0;)
        if (core_share(core, (share_id){ i }, now_ms, &v) && v.is_user) {
            of.next[i] = of.first[v.parent.v];
            of.first[v.parent.v] = i;
        }
    return of;
}

static void put_users(struct core *core, int64_t now_ms, struct json_out *w,
                      const struct users_of *of, uint32_t tenant)
{
    struct share_view v;
    json_begin(w, "users", '[');
    for (uint32_t i = of->first[tenant]; i != NONE; i = of->next[i])
        if (core_share(core, (share_id){ i }, now_ms, &v)) {
            json_begin(w, NULL, '{');
            put_share(w, &v);
            json_end(w, '}');
        }
    json_end(w, ']');
}

int api_quota(struct call *c, struct err *e)
{
    struct core *core = control_core(c->api->config.control);
    int64_t now_ms = control_now_ms(c->api->config.control);
    struct share_view v, parent;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    struct users_of users = find_users(c, now_ms);
    (void)e;
    json_begin(&w, NULL, '{');
    json_begin(&w, "tenants", '[');
    for (uint32_t i = 1; core_share(core, (share_id){ i }, now_ms, &v); i++) { /* 0: the root */
        if (v.is_user || v.removed || !sees_tenant(c, str_of(v.name)))
            continue;
        json_begin(&w, NULL, '{');
        put_share(&w, &v);
        if (v.parent.v != 0 && core_share(core, v.parent, now_ms, &parent))
            json_put_str(&w, "parent", str_of(parent.name));
        else
            json_put_null(&w, "parent");
        json_put_f64(&w, "guarantee", (double)v.guarantee_milli / 1e3, 3);
        put_rules(&w, core, (share_id){ i }, &v);
        put_users(core, now_ms, &w, &users, i);
        json_end(&w, '}');
    }
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}
