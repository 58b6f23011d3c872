/* Figures of machines and GPUs for Prometheus, under the names of NVIDIA's dcgm-exporter where it has one. */
#include "api/exporter.h"

#include "api/load.h"
#include "wire/metrics.h"

/* ---- all GPUs that are measured ---- */

struct gpus {
    struct metrics_gpu *v;
    const struct holder **all; /* of the machine of each */
    size_t n;
};

static struct metrics_whose whose(struct call *c, const struct holder *h)
{
    if (!h)
        return (struct metrics_whose){ 0 };
    return (struct metrics_whose){
        .job = str_of(arena_printf(http_arena(c->rq), "%llu", (unsigned long long)h->id)),
        .user = h->user,
        .tenant = h->tenant,
    };
}

static const struct holder *holder_of(const struct holder *list, const char *who)
{
    uint64_t job;
    if (!report_who_job(who, &job))
        return NULL;
    while (list && list->id != job)
        list = list->next;
    return list;
}

/* The pod that has it alone, for those who see its tenant; a pod of no job, for those who see all. */
static void name_pod(const struct call *c, const struct report_given *g, const struct holder *all,
                     struct metrics_whose *out)
{
    const struct holder *h = g ? holder_of(all, g->task) : NULL;
    if (g && (h ? sees_tenant(c, h->tenant) : c->scope.everything))
        metrics_name_pod(out, g->pod);
}

static const struct holder *only_holder(const struct call *c, const struct holder *list, uint32_t g)
{
    const struct holder *found = NULL;
    for (; list; list = list->next) {
        if (!(list->slot.gpu_mask & (1u << g)))
            continue;
        if (found)
            return NULL;
        found = list;
    }
    return found && sees_tenant(c, found->tenant) ? found : NULL;
}

static void add_gpu(const struct call *c, const struct metrics_gpu *g, const struct holder *all,
                    struct gpus *out)
{
    out->v[out->n] = *g;
    name_pod(c, report_given_alone(g->sample, g->at), all, &out->v[out->n].whose);
    out->all[out->n++] = all;
}

static void gather_node(struct call *c, const struct node_view *v, const struct holder *holders,
                        struct gpus *out)
{
    struct api *a = c->api;
    struct history_node *n = arena_new(http_arena(c->rq), struct history_node);
    struct control_node cn = { 0 };
    struct node_view *view = arena_new(http_arena(c->rq), struct node_view);
    if (!history_find(a->config.history, str_of(v->name), n) ||
        clock_now_ms(&a->config.clock) - n->heard_ms > HISTORY_STALE_MS)
        return;
    *view = *v;
    control_node(a->config.control, str_of(v->name), &cn);
    for (uint32_t g = 0; g < load_gpus(a, v, n); g++) {
        uint32_t at;
        if (!gpu_place(a, v, n, holders, g, &at))
            continue;
        add_gpu(c,
                &(struct metrics_gpu){ .head = n->head,
                                       .sample = n->last,
                                       .at = at,
                                       .host = view->name,
                                       .whose = whose(c, only_holder(c, holders, g)),
                                       .simulated = cn.simulated },
                holders, out);
    }
}

static void gather(struct call *c, struct holder **holders, struct gpus *out)
{
    struct core *core = control_core(c->api->config.control);
    struct node_view v;
    size_t most = 0;
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++)
        most += GPUS_PER_NODE_MAX;
    out->v = arena_array(http_arena(c->rq), struct metrics_gpu, most + 1);
    out->all = arena_array(http_arena(c->rq), const struct holder *, most + 1);
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++)
        gather_node(c, &v, holders[i], out);
}

/* Parts of jobs and of pods that the caller may not name are one each. */
static void put_parts_of(struct call *c, struct buf *b, enum metrics_part k,
                         const struct metrics_gpu *g, const struct holder *all)
{
    static const struct metrics_whose nobody;
    const struct report_sample *s = g->sample;
    int64_t hidden = 0, hidden_pods = 0;
    uint64_t job;
    struct str space, pod, container;
    for (uint32_t i = 0; i < s->parts; i++) {
        const struct report_part *p = &s->part[i];
        int64_t value = metrics_part_value(p, k);
        if (p->gpu != g->at || value < 0)
            continue;
        bool is_job = report_who_job(p->who, &job);
        bool is_pod = !is_job && report_who_pod(p->who, &space, &pod, &container);
        const struct holder *h = holder_of(all, p->who);
        struct metrics_whose who = whose(c, h);
        if (is_job)
            name_pod(c, report_given_to(s, g->at, p->who), all, &who);
        else
            metrics_name_pod(&who, p->who);
        if (is_job && !(h && sees_tenant(c, h->tenant)))
            hidden += value;
        else if (is_pod && !c->scope.everything)
            hidden_pods += value;
        else
            metrics_part(b, k, g, is_job ? "job" : is_pod ? "pod" : p->who, &who, value);
    }
    if (hidden)
        metrics_part(b, k, g, "job", &nobody, hidden);
    if (hidden_pods)
        metrics_part(b, k, g, "pod", &nobody, hidden_pods);
}

static void put_parts(struct call *c, struct buf *b, const struct gpus *all)
{
    for (int k = 0; k < METRICS_PART_COUNT; k++) {
        metrics_part_head(b, (enum metrics_part)k);
        for (size_t i = 0; i < all->n; i++)
            put_parts_of(c, b, (enum metrics_part)k, &all->v[i], all->all[i]);
    }
}

/* ---- machines ---- */

static void put_node_series(struct call *c, struct buf *b, size_t k)
{
    struct core *core = control_core(c->api->config.control);
    struct node_view v;
    struct history_node n;
    metrics_node_head(b, k);
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++)
        if (history_find(c->api->config.history, str_of(v.name), &n))
            metrics_node(b, k, v.name, n.last);
}

static void put_nodes(struct call *c, struct buf *b)
{
    struct core *core = control_core(c->api->config.control);
    struct node_view v;
    struct history_node n = { 0 };
    int64_t now_ms = clock_now_ms(&c->api->config.clock);
    metrics_head(b, "nightshift_node_reports", "1 while the machine's agent is heard of.");
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++) {
        bool known = history_find(c->api->config.history, str_of(v.name), &n);
        buf_addz(b, "nightshift_node_reports{");
        metrics_label(b, "node", str_of(v.name));
        buf_printf(b, "} %d\n", known && now_ms - n.heard_ms <= HISTORY_STALE_MS);
    }
    metrics_head(b, "nightshift_node_findings", "What is wrong with a machine: how many things.");
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++) {
        bool known = history_find(c->api->config.history, str_of(v.name), &n);
        buf_addz(b, "nightshift_node_findings{");
        metrics_label(b, "node", str_of(v.name));
        buf_printf(b, "} %zu\n", known ? n.findings : 0);
    }
    metrics_head(b, "nightshift_node_up", "1 while a machine takes jobs.");
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++) {
        buf_addz(b, "nightshift_node_up{");
        metrics_label(b, "node", str_of(v.name));
        buf_printf(b, "} %d\n", v.state == NODE_UP);
    }
    for (size_t k = 0; k < METRICS_NODE_COUNT; k++)
        put_node_series(c, b, k);
}

int put_machines(struct call *c, struct buf *b, struct err *e)
{
    struct holder **holders;
    struct gpus all = { 0 };
    if (!c->api->config.history || !may(c, ACCESS_LOOK, &(struct subject){ 0 }))
        return 0;
    size_t nodes = core_totals(control_core(c->api->config.control)).nodes;
    if (find_holders(c, &holders, nodes, e) < 0)
        return -1;
    gather(c, holders, &all);
    put_nodes(c, b);
    metrics_gpus(b, all.v, all.n);
    put_parts(c, b, &all);
    return 0;
}
