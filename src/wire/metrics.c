#include "wire/metrics.h"

#include <stdio.h>

/* A series a GPU: a value of the report, divided. */
static const struct {
    const char *name, *help;
    enum report_gpu_value value;
    double unit;
} gpu_series[] = {
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
_Static_assert(ARRAY_LEN(node_series) == METRICS_NODE_COUNT,
               "a series was added without its count");

static const struct {
    const char *name, *help;
    double unit;
} part_series[] = {
#define X(id, name, help, unit) { name, help, unit },
    METRICS_PARTS(X)
#undef X
};

/* ---- words ---- */

static void put_escaped(struct buf *b, struct str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '\n')
            buf_addz(b, "\\n");
        else
            buf_printf(b, text.p[i] == '"' || text.p[i] == '\\' ? "\\%c" : "%c", text.p[i]);
}

void metrics_label(struct buf *b, const char *name, struct str value)
{
    buf_printf(b, "%s%s=\"", b->p && b->n && b->p[b->n - 1] == '{' ? "" : ",", name);
    put_escaped(b, value);
    buf_addc(b, '"');
}

void metrics_head(struct buf *b, const char *name, const char *help)
{
    buf_printf(b, "# TYPE %s gauge\n# HELP %s %s\n", name, name, help);
}

void metrics_name_pod(struct metrics_whose *w, const char *pod)
{
    if (!report_who_pod(pod, &w->space, &w->pod, &w->container))
        w->space = w->pod = w->container = STR("");
}

/* ---- GPUs ---- */

static void put_labels(struct buf *b, const struct metrics_gpu *g)
{
    const struct report_gpu *of = &g->head->gpu[g->at];
    char number[24];
    snprintf(number, sizeof number, "%u", of->index);
    metrics_label(b, "gpu", str_of(number));
    metrics_label(b, "UUID", str_of(of->uuid));
    snprintf(number, sizeof number, "nvidia%u", of->index);
    metrics_label(b, "device", str_of(number));
    metrics_label(b, "modelName", str_of(of->name));
    metrics_label(b, "Hostname", str_of(g->host));
    if (g->simulated)
        metrics_label(b, "simulated", STR("true"));
}

static void put_whose(struct buf *b, const struct metrics_whose *w)
{
    metrics_label(b, "job", w->job);
    metrics_label(b, "user", w->user);
    metrics_label(b, "tenant", w->tenant);
    if (!w->pod.n)
        return;
    metrics_label(b, "pod", w->pod);
    metrics_label(b, "namespace", w->space);
    metrics_label(b, "container", w->container);
}

void metrics_gpus(struct buf *b, const struct metrics_gpu *list, size_t n)
{
    for (size_t k = 0; k < ARRAY_LEN(gpu_series); k++) {
        metrics_head(b, gpu_series[k].name, gpu_series[k].help);
        for (size_t i = 0; i < n; i++) {
            const struct metrics_gpu *g = &list[i];
            int64_t v = g->sample->gpu[g->at][gpu_series[k].value];
            if (v < 0)
                continue;
            buf_printf(b, "%s{", gpu_series[k].name);
            put_labels(b, g);
            put_whose(b, &g->whose);
            buf_printf(b, "} %g\n", (double)v / gpu_series[k].unit);
        }
    }
    metrics_head(b, "DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).");
    for (size_t i = 0; i < n; i++) {
        const struct metrics_gpu *g = &list[i];
        int64_t used = g->sample->gpu[g->at][REPORT_GPU_MEM_USED];
        if (used < 0)
            continue;
        buf_addz(b, "DCGM_FI_DEV_FB_FREE{");
        put_labels(b, g);
        put_whose(b, &g->whose);
        buf_printf(b, "} %lld\n", (long long)(g->head->gpu[g->at].mem_mib - used));
    }
}

void metrics_part_head(struct buf *b, enum metrics_part k)
{
    metrics_head(b, part_series[k].name, part_series[k].help);
}

int64_t metrics_part_value(const struct report_part *p, enum metrics_part k)
{
    return k == METRICS_PART_MEM ? p->mem_mib : p->permille;
}

void metrics_part(struct buf *b, enum metrics_part k, const struct metrics_gpu *g, const char *kind,
                  const struct metrics_whose *whose, int64_t value)
{
    buf_printf(b, "%s{", part_series[k].name);
    put_labels(b, g);
    metrics_label(b, "kind", str_of(kind));
    put_whose(b, whose);
    buf_printf(b, "} %g\n", (double)value / part_series[k].unit);
}

/* ---- machines ---- */

void metrics_node_head(struct buf *b, size_t k)
{
    metrics_head(b, node_series[k].name, node_series[k].help);
}

void metrics_node(struct buf *b, size_t k, const char *host, const struct report_sample *s)
{
    int64_t v = s->node[node_series[k].value];
    if (v < 0)
        return;
    buf_printf(b, "%s{", node_series[k].name);
    metrics_label(b, "node", str_of(host));
    buf_printf(b, "} %g\n", (double)v * node_series[k].factor);
}
