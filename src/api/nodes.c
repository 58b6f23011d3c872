/* Machines, their GPUs, and who has them. */
#include "api/audit.h"
#include "api/holds.h"
#include "api/lent.h"
#include "api/load.h"
#include "core/device.h"
#include "sys/weak.h"

int find_holders(struct call *c, struct holder ***out, size_t nodes, struct err *e)
{
    struct arena *a = http_arena(c->rq);
    struct store_filter f = { .limit = 1000 };
    struct store_scope all = { .everything = true };
    struct holder **by_node = arena_array(a, struct holder *, nodes + 1);
    struct core *core = control_core(c->api->config.control);
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        if (job_state_holds((enum job_state)s))
            f.states |= 1u << s;
    for (size_t n = f.limit; n == f.limit;) {
        struct store_jobs jobs;
        if (store_jobs_list(c->api->config.store, &all, &f, a, &jobs, e) < 0)
            return -1;
        const struct store_job *job = jobs.v;
        n = jobs.n;
        for (size_t i = 0; i < n; i++) {
            struct job_view v;
            f.before = job[i].fixed.id;
            if (!core_job(core, (job_id){ job[i].fixed.id }, &v))
                continue;
            for (uint32_t k = 0; k < v.n && v.slots[k].node < nodes; k++) {
                struct holder *h = arena_new(a, struct holder);
                *h = (struct holder){ .id = job[i].fixed.id,
                                      .name = job[i].fixed.name,
                                      .user = job[i].fixed.user,
                                      .tenant = job[i].fixed.tenant,
                                      .slot = v.slots[k],
                                      .next = by_node[v.slots[k].node] };
                by_node[v.slots[k].node] = h;
            }
        }
    }
    *out = by_node;
    return 0;
}

/* Another tenant's job is "somebody's": that a GPU is taken is no secret, by whom is. */
void put_holder(struct call *c, struct json_out *w, const struct holder *h)
{
    if (sees_tenant(c, h->tenant) || weak_here("holders")) {
        json_put_u64(w, "id", h->id);
        json_put_str(w, "name", h->name);
        json_put_str(w, "user", h->user);
        json_put_str(w, "tenant", h->tenant);
    } else {
        json_put_null(w, "id");
        json_put_str(w, "name", STR("(another tenant)"));
        json_put_null(w, "user");
        json_put_null(w, "tenant");
    }
    json_put_u64(w, "milli", h->slot.milli);
}

static void put_holder_alone(struct call *c, struct json_out *w, const struct holder *h)
{
    json_begin(w, NULL, '{');
    put_holder(c, w, h);
    json_end(w, '}');
}

static void put_gpus(struct call *c, struct json_out *w, const struct node_view *v,
                     const struct control_node *n, const struct holder *holders)
{
    json_begin(w, "gpus", '[');
    for (uint32_t g = 0; g < v->gpus; g++) {
        json_begin(w, NULL, '{');
        json_put_u64(w, "index", g);
        json_put_str(w, "uuid", str_of(g < n->gpus ? n->gpu_uuid[g] : ""));
        json_put_str(w, "model", str_of(v->model ? v->model : ""));
        json_put_u64(w, "free_milli", v->gpu_free[g]);
        put_gpu_load(w, c->api, v, holders, g);
        json_begin(w, "jobs", '[');
        for (const struct holder *h = holders; h; h = h->next)
            if (h->slot.gpu_mask & (1u << g))
                put_holder_alone(c, w, h);
        json_end(w, ']');
        json_end(w, '}');
    }
    json_end(w, ']');
}

/* Its pool, whether it may work, and until when that is so. */
static void put_window(struct call *c, struct json_out *w, const struct node_view *v)
{
    struct control *control = c->api->config.control;
    int64_t now_ms = control_now_ms(control), until_ms = INT64_MAX;
    struct control_pool p;
    bool open = true;
    if (control_pool_find(control, str_of(v->pool), &p)) {
        open = calendar_is_open(p.now, now_ms);
        until_ms = calendar_next_change(p.now, now_ms);
        json_put_str(w, "pool", str_of(p.name));
    } else {
        json_put_null(w, "pool");
    }
    json_put_bool(w, "open", open);
    put_when(w, "until_ms", until_ms);
}

/* The reservation that it has now, or will have next. */
static void put_reserved(struct call *c, struct json_out *w, const struct node_view *v)
{
    struct reservation_view r = { 0 };
    if (v->reserved)
        control_reservation_at(c->api->config.control, v->reserved - 1, &r);
    if (!r.name) {
        json_put_null(w, "reserved");
        return;
    }
    json_begin(w, "reserved", '{');
    put_reservation_head(c, w, &r);
    json_end(w, '}');
}

/* What it has beyond GPUs, by name. */
static void put_devices(struct json_out *w, const struct node_view *v)
{
    struct str rest = str_of(v->devices);
    struct device d;
    json_begin(w, "devices", '{');
    for (uint32_t i = 0; devices_next(&rest, &d); i++) {
        char name[NAME_MAX_BYTES + 1] = { 0 };
        memcpy(name, d.name.p, d.name.n);
        json_begin(w, name, '{');
        json_put_u64(w, "total", d.n);
        json_put_u64(w, "free", v->device_free[i]);
        json_end(w, '}');
    }
    json_end(w, '}');
}

static void put_node(struct call *c, struct json_out *w, const struct node_view *v,
                     const struct holder *holders)
{
    struct control_node n = { 0 };
    control_node(c->api->config.control, str_of(v->name), &n);
    json_begin(w, NULL, '{');
    json_put_str(w, "name", str_of(v->name));
    json_put_str(w, "state", str_of(node_state_name(v->state)));
    json_put_bool(w, "simulated", n.simulated);
    json_put_str(w, "model", str_of(v->model ? v->model : ""));
    json_put_u64(w, "cpu_milli", v->cpu_milli);
    json_put_u64(w, "cpu_free_milli", v->cpu_free_milli);
    json_put_u64(w, "mem_mib", v->mem_mib);
    json_put_u64(w, "mem_free_mib", v->mem_free_mib);
    put_devices(w, v);
    put_window(c, w, v);
    put_reserved(c, w, v);
    put_held(w, c->api, str_of(v->name));
    put_health(w, c->api, str_of(v->name), v->state == NODE_DRAIN);
    json_begin(w, "jobs", '[');
    for (const struct holder *h = holders; h; h = h->next)
        if (h->slot.gpu_mask == 0)
            put_holder_alone(c, w, h);
    json_end(w, ']');
    put_gpus(c, w, v, &n, holders);
    json_put_u64(w, "gpus_of_others", n.gpus_of_others);
    json_end(w, '}');
}

static int reply_nodes(struct call *c, struct str only, struct err *e)
{
    struct core *core = control_core(c->api->config.control);
    size_t nodes = core_totals(core).nodes;
    struct holder **holders;
    struct node_view v;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    if (find_holders(c, &holders, nodes, e) < 0)
        return -1;
    if (!only.n) {
        json_begin(&w, NULL, '{');
        json_begin(&w, "nodes", '[');
    }
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++)
        if (!only.n || str_is(only, v.name))
            put_node(c, &w, &v, holders[i]);
    if (!only.n) {
        json_end(&w, ']');
        json_end(&w, '}');
    }
    reply_json(c, 200, &b);
    return 0;
}

int api_node_list(struct call *c, struct err *e)
{
    return reply_nodes(c, STR(""), e);
}

static void on_node_done(void *ctx)
{
    struct named_later *l = ctx;
    struct err e;
    if (reply_nodes(&l->call, l->name, &e) < 0)
        http_reply_error(l->call.rq, &e, NULL);
}

static struct str state_of(struct call *c, struct str name)
{
    struct core *core = control_core(c->api->config.control);
    struct node_view v;
    uint32_t i = 0;
    while (core_node(core, (node_id){ i }, &v) && !str_is(name, v.name))
        i++;
    if (!core_node(core, (node_id){ i }, &v))
        return STR("");
    return str_of(arena_printf(http_arena(c->rq), "{\"state\":\"%s\"}", node_state_name(v.state)));
}

static int set_state(struct call *c, enum node_state state, struct err *e)
{
    struct named_later *l = named_later_new(c);
    struct audit_change ch = { .what = state == NODE_UP ? AUDIT_NODE_RESUME : AUDIT_NODE_DRAIN,
                               .subject = l->name,
                               .before = state_of(c, l->name) };
    if (read_verb(c, &ch.reason, e) < 0 ||
        control_node_state(c->api->config.control, l->name, state,
                           (struct control_done){ on_node_done, l }, e) < 0)
        return -1;
    ch.after = state_of(c, l->name);
    api_audit(c, &ch);
    if (c->api->config.history && state == NODE_UP)
        history_set_reason(c->api->config.history, l->name, STR(""));
    else if (c->api->config.history)
        history_set_reason(c->api->config.history, l->name,
                           ch.reason.n ? ch.reason : STR("an operator drained it"));
    return 0;
}

int api_node_drain(struct call *c, struct err *e)
{
    return set_state(c, NODE_DRAIN, e);
}

int api_node_resume(struct call *c, struct err *e)
{
    return set_state(c, NODE_UP, e);
}
