/* What machines measure: reports of their agents in, figures and charts out. */
#include "api/load.h"
#include "api/audit.h"
#include "api/commands.h"
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
    AUTO(buf_free) struct buf answer = BUF(16u << 10);
    struct json_out w = { .b = &answer };
    if (!a->config.history || !find_node(a, c->param[0], &i, &v))
        return no_node(c->param[0], e);
    if (history_take(a->config.history, c->param[0], http_body(c->rq),
                     clock_now_ms(&a->config.clock), &number, e) < 0)
        return -1;
    drain_if_broken(c, c->param[0], &v);
    commands_reported(c, c->param[0]);
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "ack", number);
    commands_put(a, c->param[0], &w);
    json_end(&w, '}');
    http_reply(c->rq, 200, "application/json", buf_str(&answer));
    return 0;
}

/* ---- pieces of answers ---- */

bool load_is_fresh(struct api *a, const struct history_node *n)
{
    return clock_now_ms(&a->config.clock) - n->heard_ms <= HISTORY_STALE_MS;
}

bool load_of(struct api *a, struct str node, struct history_node *out)
{
    return a->config.history && history_find(a->config.history, node, out);
}

void put_known(struct json_out *w, const char *key, int64_t v)
{
    if (v < 0)
        json_put_null(w, key);
    else
        json_put_i64(w, key, v);
}

void put_scaled(struct json_out *w, const char *key, int64_t v, double unit, int digits)
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
    json_put_bool(w, "reports", known && load_is_fresh(a, &n));
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

static bool place_by_uuid(const struct history_node *n, const char *uuid, uint32_t *out)
{
    for (uint32_t i = 0; uuid[0] && i < n->head->gpus; i++)
        if (strcmp(uuid, n->head->gpu[i].uuid) == 0) {
            *out = i;
            return true;
        }
    return false;
}

/* The device that the kubelet gave to the job which has this one by our books; of several, in order. */
static bool place_by_pod(const struct history_node *n, const struct holder *holders, uint32_t g,
                         uint32_t *out)
{
    const struct holder *only = NULL;
    uint64_t job;
    for (const struct holder *h = holders; h; h = h->next)
        if (h->slot.gpu_mask & (1u << g)) {
            if (only)
                return false;
            only = h;
        }
    uint32_t before =
        only ? (uint32_t)__builtin_popcount(only->slot.gpu_mask & ((1u << g) - 1)) : 0;
    for (uint32_t i = 0; only && i < n->last->givens; i++)
        if (report_who_job(n->last->given[i].task, &job) && job == only->id && before-- == 0) {
            *out = n->last->given[i].gpu;
            return true;
        }
    return false;
}

uint32_t load_gpus(struct api *a, const struct node_view *v, const struct history_node *n)
{
    struct control_node cn = { 0 };
    control_node(a->config.control, str_of(v->name), &cn);
    bool numbered = cn.gpus && cn.gpu_uuid[0][0];
    uint32_t told = n && !numbered ? MIN(n->head->gpus, (uint32_t)GPUS_PER_NODE_MAX) : 0;
    return MAX(v->gpus, told);
}

/* To a pod that is no job's. */
static bool is_others(const struct history_node *n, uint32_t at)
{
    uint64_t job;
    for (uint32_t i = 0; i < n->last->givens; i++)
        if (n->last->given[i].gpu == at && !report_who_job(n->last->given[i].task, &job))
            return true;
    return false;
}

/* Of the devices in neither list the one with this number; what pods of others have comes last. */
static bool place_in_order(const struct history_node *n, uint64_t taken, uint32_t number,
                           uint32_t *out)
{
    for (int others = 0; others < 2; others++)
        for (uint32_t at = 0; at < n->head->gpus; at++)
            if (!(taken >> at & 1) && is_others(n, at) == (others == 1) && number-- == 0) {
                *out = at;
                return true;
            }
    return false;
}

bool gpu_place(struct api *a, const struct node_view *v, const struct history_node *n,
               const struct holder *holders, uint32_t g, uint32_t *out)
{
    struct control_node cn = { 0 };
    uint64_t taken = 0;
    uint32_t at, free_before = 0;
    control_node(a->config.control, str_of(v->name), &cn);
    if (g < cn.gpus && cn.gpu_uuid[g][0])
        return place_by_uuid(n, cn.gpu_uuid[g], out);
    if (place_by_pod(n, holders, g, out))
        return true;
    for (uint32_t i = 0; i < MAX(v->gpus, g); i++)
        if (place_by_pod(n, holders, i, &at))
            taken |= UINT64_C(1) << at;
        else
            free_before += i < g;
    return place_in_order(n, taken, free_before, out);
}

/* Short: for lists of machines. */
void put_gpu_load(struct json_out *w, struct api *a, const struct node_view *v,
                  const struct holder *holders, uint32_t g)
{
    struct history_node n;
    uint32_t at;
    bool known = load_of(a, str_of(v->name), &n) && load_is_fresh(a, &n) &&
                 gpu_place(a, v, &n, holders, g, &at);
    const int64_t *of = known ? n.last->gpu[at] : NULL;
    put_scaled(w, "util_percent", of ? of[REPORT_GPU_UTIL] : -1, 10, 1);
    put_known(w, "mem_used_mib", of ? of[REPORT_GPU_MEM_USED] : -1);
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

/* ---- GPUs ---- */

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
        bool known = load_of(c->api, str_of(v.name), &n) && load_is_fresh(c->api, &n);
        for (uint32_t g = 0; g < load_gpus(c->api, &v, known ? &n : NULL); g++)
            put_whole_gpu(c, &w, &v, g, known ? &n : NULL, holders[i]);
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
        const struct holder *h = report_who_job(t->task, &job) ? load_holder(holders, job) : NULL;
        if (!h || !may_name(c, h))
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

/* null: not a machine of Kubernetes, or its agent is silent. */
static void put_kubelet(struct json_out *w, const struct report_sample *s)
{
    if (!s || s->kubelet[REPORT_KUBELET_PODS] < 0) {
        json_put_null(w, "kubelet");
        return;
    }
    json_begin(w, "kubelet", '{');
    for (int k = 0; k < REPORT_KUBELET_COUNT; k++)
        put_known(w, report_kubelet_value_name((enum report_kubelet_value)k), s->kubelet[k]);
    json_end(w, '}');
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
    bool heard = load_of(c->api, c->param[0], &n), known = heard && load_is_fresh(c->api, &n);
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
    put_kubelet(&w, known ? n.last : NULL);
    put_tasks(c, &w, known ? &n : NULL, holders[i]);
    json_begin(&w, "gpus", '[');
    for (uint32_t g = 0; g < load_gpus(c->api, &v, known ? &n : NULL); g++)
        put_whole_gpu(c, &w, &v, g, known ? &n : NULL, holders[i]);
    json_end(&w, ']');
    json_end(&w, '}');
    reply_json(c, 200, &b);
    return 0;
}
