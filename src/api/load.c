/* What machines measure: reports of their agents in, figures and charts out. */
#include "api/load.h"
#include "api/audit.h"
#include "node/nvml.h"
#include "sys/weak.h"

#include <stdio.h>

/* ---- the agent's report ---- */

struct draining {
    struct api *api;
    char node[65], reason[300];
};

/* It is on the disk: from now on these findings have drained it. */
static void on_drained(void *ctx)
{
    struct draining *d = ctx;
    history_set_reason(d->api->config.history, str_of(d->node), str_of(d->reason));
    free(d);
}

bool find_node(struct api *a, struct str name, uint32_t *out_i, struct node_view *out)
{
    struct core *core = control_core(a->config.control);
    for (uint32_t i = 0; core_node(core, (node_id){ i }, out); i++)
        if (str_is(name, out->name)) {
            *out_i = i;
            return true;
        }
    return false;
}

int no_node(struct str name, struct err *e)
{
    err_set(e, ERR_NOT_FOUND, "there is no machine '%.*s'", (int)MIN(name.n, (size_t)64), name.p);
    return err_hint(e, "see those there are: nightshift nodes");
}

/* A machine that is broken takes nothing new, and says why. */
static void drain_if_broken(struct call *c, struct str name, const struct node_view *v)
{
    struct history *h = c->api->config.history;
    const struct history_finding *f = history_undrained(h, name);
    struct err e;
    if (!f || (v->state != NODE_UP && v->state != NODE_DRAIN))
        return;
    struct draining *d = xcalloc(1, sizeof *d);
    d->api = c->api;
    snprintf(d->node, sizeof d->node, "%.*s", STR_ARG(name));
    snprintf(d->reason, sizeof d->reason, "%s: %s", f->is.rule, f->is.text);
    if (v->state == NODE_DRAIN) { /* somebody did it already, for a reason of their own */
        struct history_node n;
        if (history_find(h, name, &n) && n.reason[0])
            snprintf(d->reason, sizeof d->reason, "%s", n.reason);
        on_drained(d);
        return;
    }
    struct audit_change ch = { .what = AUDIT_NODE_DRAIN,
                               .subject = name,
                               .before = STR("{\"state\":\"up\"}"),
                               .after = STR("{\"state\":\"drain\"}"),
                               .reason = str_of(arena_printf(http_arena(c->rq), "%s", d->reason)) };
    if (control_node_state(c->api->config.control, name, NODE_DRAIN,
                           (struct control_done){ on_drained, d }, &e) < 0) {
        log_event(c->api->config.log, LOG_ERROR_, "node.drain", "node=%.*s why=%s", STR_ARG(name),
                  e.msg);
        free(d);
        return;
    }
    api_audit(c, &ch);
    if (c->api->config.notices)
        notices_drained(c->api->config.notices, control_batch(c->api->config.control), name,
                        ch.reason);
    log_event(c->api->config.log, LOG_WARN_, "node.unhealthy", "node=%.*s why=%s", STR_ARG(name),
              f->is.text);
}

int api_node_report(struct call *c, struct err *e)
{
    struct api *a = c->api;
    struct node_view v;
    uint32_t i;
    uint64_t number = 0;
    char answer[96];
    if (!a->config.history || !find_node(a, c->param[0], &i, &v))
        return no_node(c->param[0], e);
    if (history_take(a->config.history, c->param[0], http_body(c->rq),
                     clock_now_ms(&a->config.clock), &number, e) < 0)
        return -1;
    drain_if_broken(c, c->param[0], &v);
    /* Commands to the agent (throttle, pause, an owner's hold) will stand here; there are none yet. */
    snprintf(answer, sizeof answer, "{\"ack\":%llu,\"commands\":[]}", (unsigned long long)number);
    http_reply(c->rq, 200, "application/json", str_of(answer));
    return 0;
}

/* ---- pieces of answers ---- */

static bool is_fresh(struct api *a, const struct history_node *n)
{
    return clock_now_ms(&a->config.clock) - n->heard_ms <= HISTORY_STALE_MS;
}

bool load_of(struct api *a, struct str node, struct history_node *out)
{
    return a->config.history && history_find(a->config.history, node, out);
}

static void put_known(struct json_out *w, const char *key, int64_t v)
{
    if (v < 0)
        json_put_null(w, key);
    else
        json_put_i64(w, key, v);
}

static void put_scaled(struct json_out *w, const char *key, int64_t v, double unit, int digits)
{
    if (v < 0)
        json_put_null(w, key);
    else
        json_put_f64(w, key, (double)v / unit, digits);
}

void put_health(struct json_out *w, struct api *a, struct str node, bool drained)
{
    struct history_node n;
    bool known = load_of(a, node, &n);
    json_put_bool(w, "reports", known && is_fresh(a, &n));
    if (drained && known && n.reason[0])
        json_put_str(w, "drained_because", str_of(n.reason));
    else
        json_put_null(w, "drained_because");
    json_begin(w, "health", '[');
    for (size_t i = 0; known && i < n.findings; i++) {
        const struct history_finding *f = &n.finding[i];
        json_begin(w, NULL, '{');
        json_put_str(w, "rule", str_of(f->is.rule));
        put_known(w, "gpu", f->is.gpu);
        json_put_str(w, "text", str_of(f->is.text));
        json_put_i64(w, "since_ms", f->since_ms);
        json_end(w, '}');
    }
    json_end(w, ']');
}

static bool gpu_place(const struct history_node *n, struct str uuid, uint32_t *out)
{
    for (uint32_t i = 0; i < n->head->gpus; i++)
        if (str_is(uuid, n->head->gpu[i].uuid)) {
            *out = i;
            return true;
        }
    return false;
}

/* Short: for lists of machines. */
void put_gpu_load(struct json_out *w, struct api *a, struct str node, struct str uuid)
{
    struct history_node n;
    uint32_t at;
    bool known = load_of(a, node, &n) && is_fresh(a, &n) && gpu_place(&n, uuid, &at);
    const int64_t *v = known ? n.last->gpu[at] : NULL;
    put_scaled(w, "util_percent", v ? v[REPORT_GPU_UTIL] : -1, 10, 1);
    put_known(w, "mem_used_mib", v ? v[REPORT_GPU_MEM_USED] : -1);
    put_known(w, "mem_mib", known ? n.head->gpu[at].mem_mib : -1);
}

bool job_trouble(struct api *a, uint64_t job, struct buf *out)
{
    struct core *core = control_core(a->config.control);
    struct job_view v;
    struct node_view at;
    bool any = false;
    if (!a->config.history || !core_job(core, (job_id){ job }, &v))
        return false;
    for (uint32_t i = 0; i < v.n; i++) {
        if (i > 0 && v.slots[i].node == v.slots[i - 1].node &&
            v.slots[i].gpu_mask == v.slots[i - 1].gpu_mask)
            continue;
        AUTO(buf_free) struct buf one = BUF(1024);
        if (!core_node(core, (node_id){ v.slots[i].node }, &at) ||
            !history_trouble(a->config.history, str_of(at.name), v.slots[i].gpu_mask, &one))
            continue;
        buf_addz(out, any ? "; " : "");
        buf_add(out, buf_str(&one));
        any = true;
    }
    return any;
}

/* ---- whose work it is ---- */

static const struct holder *holder_of(const struct holder *list, uint64_t job)
{
    for (; list; list = list->next)
        if (list->id == job)
            return list;
    return NULL;
}

static bool may_name(struct call *c, const struct holder *h)
{
    return h && (sees_tenant(c, h->tenant) || weak_here("holders"));
}

/* Another tenant's work is there, and nobody's name; so is that of a job which ended just now. */
static void put_part(struct call *c, struct json_out *w, const struct report_part *p,
                     const struct holder *holders)
{
    uint64_t job;
    bool is_job = report_who_job(p->who, &job);
    const struct holder *h = is_job ? holder_of(holders, job) : NULL;
    json_begin(w, NULL, '{');
    json_put_str(w, "kind", is_job ? STR("job") : str_of(p->who));
    if (may_name(c, h)) {
        json_put_u64(w, "id", h->id);
        json_put_str(w, "name", h->name);
        json_put_str(w, "user", h->user);
        json_put_str(w, "tenant", h->tenant);
    } else {
        json_put_null(w, "id");
        if (is_job)
            json_put_str(w, "name", h ? STR("(another tenant)") : STR("(ended)"));
        else
            json_put_null(w, "name");
        json_put_null(w, "user");
        json_put_null(w, "tenant");
    }
    put_scaled(w, "util_percent", p->permille, 10, 1);
    put_known(w, "mem_mib", p->mem_mib);
    put_known(w, "processes", p->processes);
    json_end(w, '}');
}

static void put_idle(struct json_out *w, const struct history_node *n, uint32_t at)
{
    const int64_t *v = n->last->gpu[at];
    json_begin(w, NULL, '{');
    json_put_str(w, "kind", STR("idle"));
    json_put_null(w, "id");
    json_put_null(w, "name");
    json_put_null(w, "user");
    json_put_null(w, "tenant");
    put_scaled(w, "util_percent", v[REPORT_GPU_UTIL] < 0 ? -1 : 1000 - v[REPORT_GPU_UTIL], 10, 1);
    put_known(w, "mem_mib",
              v[REPORT_GPU_MEM_USED] < 0 ? -1 : n->head->gpu[at].mem_mib - v[REPORT_GPU_MEM_USED]);
    put_known(w, "processes", 0);
    json_end(w, '}');
}

static void put_parts(struct call *c, struct json_out *w, const struct history_node *n, uint32_t at,
                      const struct holder *holders)
{
    json_begin(w, "parts", '[');
    for (uint32_t i = 0; n && i < n->last->parts; i++)
        if (n->last->part[i].gpu == at)
            put_part(c, w, &n->last->part[i], holders);
    if (n && n->last->gpu[at][REPORT_GPU_UTIL] >= 0)
        put_idle(w, n, at);
    json_end(w, ']');
}

static void put_throttle(struct json_out *w, const int64_t *v)
{
    const char *name;
    json_begin(w, "throttle", '[');
    for (unsigned i = 0; v && v[REPORT_GPU_THROTTLE] > 0 && (name = nvml_throttle_name(i)); i++)
        if (v[REPORT_GPU_THROTTLE] >> i & 1)
            json_put_str(w, NULL, str_of(name));
    json_end(w, ']');
}

static void put_figures(struct json_out *w, const struct history_node *n, uint32_t at)
{
    const int64_t *v = n ? n->last->gpu[at] : NULL;
    const struct report_gpu *g = n ? &n->head->gpu[at] : NULL;
#define V(id) (v ? v[REPORT_GPU_##id] : -1)
    put_scaled(w, "util_percent", V(UTIL), 10, 1);
    put_scaled(w, "mem_util_percent", V(MEM_UTIL), 10, 1);
    put_known(w, "mem_used_mib", V(MEM_USED));
    put_known(w, "mem_mib", g ? g->mem_mib : -1);
    put_scaled(w, "power_w", V(POWER), 1000, 1);
    put_scaled(w, "power_limit_w", g ? g->power_limit_mw : -1, 1000, 1);
    put_known(w, "temp_c", V(TEMP));
    put_known(w, "sm_mhz", V(SM_CLOCK));
    put_known(w, "mem_mhz", V(MEM_CLOCK));
    put_throttle(w, v);
    put_known(w, "ecc_corrected", V(ECC_CORRECTED));
    put_known(w, "ecc_uncorrected", V(ECC_UNCORRECTED));
    put_known(w, "xid", V(XID) == 0 ? -1 : V(XID));
    put_known(w, "idle_since_ms", n && n->idle_since_ms[at] ? n->idle_since_ms[at] : -1);
#undef V
}

/* A GPU whole: `known` NULL when its machine is silent. */
static void put_gpu(struct call *c, struct json_out *w, const struct node_view *v, uint32_t g,
                    const struct history_node *known, const struct holder *holders)
{
    struct control_node cn = { 0 };
    uint32_t at = 0;
    control_node(c->api->config.control, str_of(v->name), &cn);
    struct str uuid = str_of(g < cn.gpus ? cn.gpu_uuid[g] : "");
    const struct history_node *n = known && gpu_place(known, uuid, &at) ? known : NULL;
    json_begin(w, NULL, '{');
    json_put_str(w, "node", str_of(v->name));
    json_put_str(w, "state", str_of(node_state_name(v->state)));
    json_put_u64(w, "index", g);
    json_put_str(w, "uuid", uuid);
    json_put_str(w, "model", str_of(v->model ? v->model : ""));
    json_put_bool(w, "simulated", cn.simulated);
    json_put_u64(w, "free_milli", v->gpu_free[g]);
    put_known(w, "seen_ms", n ? n->last->t_ms : -1);
    put_figures(w, n, at);
    put_parts(c, w, n, at, holders);
    json_begin(w, "jobs", '[');
    for (const struct holder *h = holders; h; h = h->next)
        if (h->slot.gpu_mask & (1u << g)) {
            json_begin(w, NULL, '{');
            put_holder(c, w, h);
            json_end(w, '}');
        }
    json_end(w, ']');
    json_end(w, '}');
}

int api_gpu_list(struct call *c, struct err *e)
{
    struct core *core = control_core(c->api->config.control);
    struct holder **holders;
    struct node_view v;
    struct history_node n;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    if (find_holders(c, &holders, core_totals(core).nodes, e) < 0)
        return -1;
    json_begin(&w, NULL, '{');
    json_put_i64(&w, "now_ms", clock_now_ms(&c->api->config.clock));
    json_begin(&w, "gpus", '[');
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++) {
        bool known = load_of(c->api, str_of(v.name), &n) && is_fresh(c->api, &n);
        for (uint32_t g = 0; g < v.gpus; g++)
            put_gpu(c, &w, &v, g, known ? &n : NULL, holders[i]);
    }
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}

/* ---- one machine ---- */

/* Those of tenants that the caller sees. */
static void put_tasks(struct call *c, struct json_out *w, const struct history_node *n,
                      const struct holder *holders)
{
    uint64_t job;
    json_begin(w, "tasks", '[');
    for (uint32_t i = 0; n && i < n->last->tasks; i++) {
        const struct report_task *t = &n->last->task[i];
        const struct holder *h = report_who_job(t->task, &job) ? holder_of(holders, job) : NULL;
        if (!may_name(c, h))
            continue;
        json_begin(w, NULL, '{');
        json_put_str(w, "task", str_of(t->task));
        json_put_u64(w, "id", h->id);
        json_put_str(w, "name", h->name);
        json_put_str(w, "user", h->user);
        json_put_str(w, "tenant", h->tenant);
        for (int k = 0; k < REPORT_TASK_COUNT; k++)
            put_known(w, report_task_value_name((enum report_task_value)k), t->v[k]);
        json_end(w, '}');
    }
    json_end(w, ']');
}

int api_node_load(struct call *c, struct err *e)
{
    struct core *core = control_core(c->api->config.control);
    struct holder **holders;
    struct node_view v;
    struct history_node n;
    uint32_t i = 0;
    AUTO(buf_free) struct buf b = BUF(API_REPLY_MAX);
    struct json_out w = { .b = &b };
    if (!find_node(c->api, c->param[0], &i, &v))
        return no_node(c->param[0], e);
    if (find_holders(c, &holders, core_totals(core).nodes, e) < 0)
        return -1;
    bool heard = load_of(c->api, c->param[0], &n), known = heard && is_fresh(c->api, &n);
    json_begin(&w, NULL, '{');
    json_put_str(&w, "name", str_of(v.name));
    json_put_str(&w, "state", str_of(node_state_name(v.state)));
    put_known(&w, "seen_ms", heard ? n.last->t_ms : -1);
    if (heard)
        json_put_str(&w, "agent", str_of(n.head->version));
    else
        json_put_null(&w, "agent");
    put_health(&w, c->api, c->param[0], v.state == NODE_DRAIN);
    for (int k = 0; k < REPORT_NODE_COUNT; k++)
        put_known(&w, report_node_value_name((enum report_node_value)k),
                  known ? n.last->node[k] : -1);
    put_tasks(c, &w, known ? &n : NULL, holders[i]);
    json_begin(&w, "gpus", '[');
    for (uint32_t g = 0; g < v.gpus; g++)
        put_gpu(c, &w, &v, g, known ? &n : NULL, holders[i]);
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}
