/* Figures of machines and GPUs for Prometheus, under the names of NVIDIA's dcgm-exporter where it has one. */
#include "api/exporter.h"

#include <stdio.h>

struct gpu_ref {
    const struct node_view *v;
    const struct history_node *n;
    uint32_t at;                 /* in the machine's report */
    const struct holder *holder; /* the only one, and the caller may know it; else NULL */
    const struct holder *all;    /* of the machine */
    bool simulated;
};

/* A series a GPU: a value of the report, divided. */
static const struct {
    const char *name, *help;
    enum report_gpu_value value;
    double unit;
} series[] = {
    { "DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", REPORT_GPU_UTIL, 10 },
    { "DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", REPORT_GPU_MEM_UTIL, 10 },
    { "DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", REPORT_GPU_MEM_USED, 1 },
    { "DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", REPORT_GPU_POWER, 1000 },
    { "DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", REPORT_GPU_TEMP, 1 },
    { "DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", REPORT_GPU_SM_CLOCK, 1 },
    { "DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", REPORT_GPU_MEM_CLOCK, 1 },
    { "DCGM_FI_DEV_XID_ERRORS", "Value of the last XID error encountered.", REPORT_GPU_XID, 1 },
    { "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "Volatile single-bit ECC errors.", REPORT_GPU_ECC_CORRECTED,
      1 },
    { "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "Volatile double-bit ECC errors.",
      REPORT_GPU_ECC_UNCORRECTED, 1 },
};

static void put_escaped(struct buf *b, struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '\n')
            buf_addz(b, "\\n");
        else
            buf_printf(b, text.p[i] == '"' || text.p[i] == '\\' ? "\\%c" : "%c", text.p[i]);
}

static void put_label(struct buf *b, const char *name, struct str value)
{
    buf_printf(b, "%s%s=\"", b->p && b->n && b->p[b->n - 1] == '{' ? "" : ",", name);
    put_escaped(b, value);
    buf_addc(b, '"');
}

static void put_labels(struct buf *b, const struct gpu_ref *g)
{
    const struct report_gpu *of = &g->n->head->gpu[g->at];
    char number[24];
    snprintf(number, sizeof number, "%u", of->index);
    put_label(b, "gpu", str_of(number));
    put_label(b, "UUID", str_of(of->uuid));
    snprintf(number, sizeof number, "nvidia%u", of->index);
    put_label(b, "device", str_of(number));
    put_label(b, "modelName", str_of(of->name));
    put_label(b, "Hostname", str_of(g->v->name));
    if (g->simulated)
        put_label(b, "simulated", STR("true"));
}

static void put_holder_labels(struct buf *b, const struct holder *h)
{
    char number[24] = "";
    if (h)
        snprintf(number, sizeof number, "%llu", (unsigned long long)h->id);
    put_label(b, "job", str_of(number));
    put_label(b, "user", h ? h->user : STR(""));
    put_label(b, "tenant", h ? h->tenant : STR(""));
}

static void put_head(struct buf *b, const char *name, const char *help)
{
    buf_printf(b, "# TYPE %s gauge\n# HELP %s %s\n", name, name, help);
}

/* ---- all GPUs that are measured ---- */

struct gpus {
    struct gpu_ref *v;
    size_t n;
};

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
    for (uint32_t g = 0; g < v->gpus && g < cn.gpus; g++)
        for (uint32_t at = 0; at < n->head->gpus; at++)
            if (strcmp(cn.gpu_uuid[g], n->head->gpu[at].uuid) == 0)
                out->v[out->n++] = (struct gpu_ref){ .v = view,
                                                     .n = n,
                                                     .at = at,
                                                     .holder = only_holder(c, holders, g),
                                                     .all = holders,
                                                     .simulated = cn.simulated };
}

static void gather(struct call *c, struct holder **holders, struct gpus *out)
{
    struct core *core = control_core(c->api->config.control);
    struct node_view v;
    size_t most = 0;
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++)
        most += v.gpus;
    out->v = arena_array(http_arena(c->rq), struct gpu_ref, most + 1);
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++)
        gather_node(c, &v, holders[i], out);
}

static void put_gpus(struct buf *b, const struct gpus *all)
{
    for (size_t k = 0; k < ARRAY_LEN(series); k++) {
        put_head(b, series[k].name, series[k].help);
        for (size_t i = 0; i < all->n; i++) {
            const struct gpu_ref *g = &all->v[i];
            int64_t v = g->n->last->gpu[g->at][series[k].value];
            if (v < 0)
                continue;
            buf_printf(b, "%s{", series[k].name);
            put_labels(b, g);
            put_holder_labels(b, g->holder);
            buf_printf(b, "} %g\n", (double)v / series[k].unit);
        }
    }
    put_head(b, "DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).");
    for (size_t i = 0; i < all->n; i++) {
        const struct gpu_ref *g = &all->v[i];
        int64_t used = g->n->last->gpu[g->at][REPORT_GPU_MEM_USED];
        if (used < 0)
            continue;
        buf_addz(b, "DCGM_FI_DEV_FB_FREE{");
        put_labels(b, g);
        put_holder_labels(b, g->holder);
        buf_printf(b, "} %lld\n", (long long)(g->n->head->gpu[g->at].mem_mib - used));
    }
}

struct part_kind {
    const char *name, *help;
    bool mem;
};

static void put_part(struct buf *b, const struct part_kind *k, const struct gpu_ref *g,
                     struct str kind, const struct holder *h, int64_t value)
{
    buf_printf(b, "%s{", k->name);
    put_labels(b, g);
    put_label(b, "kind", kind);
    put_holder_labels(b, h);
    buf_printf(b, "} %g\n", (double)value / (k->mem ? 1 : 10));
}

/* Parts of jobs that the caller may not name are one. */
static void put_parts_of(struct call *c, struct buf *b, const struct part_kind *k,
                         const struct gpu_ref *g)
{
    const struct report_sample *s = g->n->last;
    int64_t hidden = 0;
    uint64_t job = 0;
    for (uint32_t i = 0; i < s->parts; i++) {
        const struct report_part *p = &s->part[i];
        int64_t value = k->mem ? p->mem_mib : p->permille;
        if (p->gpu != g->at || value < 0)
            continue;
        bool is_job = report_who_job(p->who, &job);
        const struct holder *h = is_job ? g->all : NULL;
        while (h && h->id != job)
            h = h->next;
        if (is_job && !(h && sees_tenant(c, h->tenant)))
            hidden += value;
        else
            put_part(b, k, g, is_job ? STR("job") : str_of(p->who), h, value);
    }
    if (hidden)
        put_part(b, k, g, STR("job"), NULL, hidden);
}

static void put_parts(struct call *c, struct buf *b, const struct gpus *all)
{
    static const struct part_kind kinds[] = {
        { "nightshift_gpu_part_percent", "Work of a GPU by whose it is.", false },
        { "nightshift_gpu_part_mem_mib", "Memory of a GPU by whose it is.", true },
    };
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        put_head(b, kinds[k].name, kinds[k].help);
        for (size_t i = 0; i < all->n; i++)
            put_parts_of(c, b, &kinds[k], &all->v[i]);
    }
}

/* ---- machines ---- */

static const struct {
    const char *name, *help;
    enum report_node_value value;
    double factor;
} node_series[] = {
    { "nightshift_node_cpus_busy", "Processors that are busy.", REPORT_NODE_CPU, 1e-3 },
    { "nightshift_node_cpus", "Processors of a machine.", REPORT_NODE_CPUS, 1e-3 },
    { "nightshift_node_mem_used_bytes", "Memory in use.", REPORT_NODE_MEM_USED, 1048576 },
    { "nightshift_node_mem_bytes", "Memory of a machine.", REPORT_NODE_MEM, 1048576 },
    { "nightshift_node_disk_used_bytes", "Of the disk with the state folder.",
      REPORT_NODE_DISK_USED, 1048576 },
    { "nightshift_node_disk_bytes", "Its size.", REPORT_NODE_DISK, 1048576 },
    { "nightshift_node_receive_bytes_per_second", "By its network cards.", REPORT_NODE_RX, 1 },
    { "nightshift_node_transmit_bytes_per_second", "By its network cards.", REPORT_NODE_TX, 1 },
};

static void put_node_series(struct call *c, struct buf *b, size_t k)
{
    struct core *core = control_core(c->api->config.control);
    struct node_view v;
    struct history_node n;
    put_head(b, node_series[k].name, node_series[k].help);
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++) {
        if (!history_find(c->api->config.history, str_of(v.name), &n) ||
            n.last->node[node_series[k].value] < 0)
            continue;
        buf_printf(b, "%s{", node_series[k].name);
        put_label(b, "node", str_of(v.name));
        buf_printf(b, "} %g\n", (double)n.last->node[node_series[k].value] * node_series[k].factor);
    }
}

static void put_nodes(struct call *c, struct buf *b)
{
    struct core *core = control_core(c->api->config.control);
    struct node_view v;
    struct history_node n = { 0 };
    int64_t now_ms = clock_now_ms(&c->api->config.clock);
    put_head(b, "nightshift_node_reports", "1 while the machine's agent is heard of.");
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++) {
        bool known = history_find(c->api->config.history, str_of(v.name), &n);
        buf_addz(b, "nightshift_node_reports{");
        put_label(b, "node", str_of(v.name));
        buf_printf(b, "} %d\n", known && now_ms - n.heard_ms <= HISTORY_STALE_MS);
    }
    put_head(b, "nightshift_node_findings", "What is wrong with a machine: how many things.");
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++) {
        bool known = history_find(c->api->config.history, str_of(v.name), &n);
        buf_addz(b, "nightshift_node_findings{");
        put_label(b, "node", str_of(v.name));
        buf_printf(b, "} %zu\n", known ? n.findings : 0);
    }
    put_head(b, "nightshift_node_up", "1 while a machine takes jobs.");
    for (uint32_t i = 0; core_node(core, (node_id){ i }, &v); i++) {
        buf_addz(b, "nightshift_node_up{");
        put_label(b, "node", str_of(v.name));
        buf_printf(b, "} %d\n", v.state == NODE_UP);
    }
    for (size_t k = 0; k < ARRAY_LEN(node_series); k++)
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
    put_gpus(b, &all);
    put_parts(c, b, &all);
    return 0;
}
