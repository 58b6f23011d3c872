/* The benchmarks: packing and the scale of one pass. */
#include "simulate/command.h"
#include "simulate/packing.h"
#include "simulate/scale.h"

static int need(const char *value, const char *option, const char *example, struct err *e)
{
    if (value)
        return 0;
    err_set(e, ERR_INVALID, "--%s is needed", option);
    return err_hint(e, "for example: %s", example);
}

/* ---- packing ---- */

struct packing_args {
    const char *data, *workload, *policy, *prior;
    bool json;
};

static const struct opt packing_opts[] = {
    { "data", OPT_TEXT, offsetof(struct packing_args, data), "DIR", "folder with the openb tables",
      0, 0 },
    { "workload", OPT_TEXT, offsetof(struct packing_args, workload), "W",
      "which pod list: default, cpu250, gpushare40, multigpu20, gpuspec10 …", 0, 0 },
    { "policy", OPT_CHOICE, offsetof(struct packing_args, policy), "nightshift|fgd|bestfit",
      "the packer", 0, 0 },
    { "prior", OPT_CHOICE, offsetof(struct packing_args, prior), "trace|online",
      "what the packer knows: the whole list, or what has arrived (fgd: trace, else online)", 0,
      0 },
    { "json", OPT_FLAG, offsetof(struct packing_args, json), NULL, "one JSON object", 0, 0 },
};

static void packing_table(const struct packing_result *r, struct buf *b)
{
    buf_printf(b, "%s on %s\n\n%8s  %9s  %9s  %8s  %8s\n", r->policy, r->workload, "seed",
               "at 100 %", "at 130 %", "placed", "dropped");
    for (uint32_t i = 0; i < r->seeds; i++)
        buf_printf(b, "%8llu  %9.2f  %9.2f  %8llu  %8llu\n", (unsigned long long)r->seed[i].seed,
                   r->seed[i].alloc[100], r->seed[i].alloc[130],
                   (unsigned long long)r->seed[i].placed, (unsigned long long)r->seed[i].dropped);
    buf_printf(b, "%8s  %9.2f  %9.2f   percent of the GPUs allocated; %.0f ns a placement\n",
               "mean", r->alloc_100, r->alloc_130, r->ns_per_placement);
}

static int run_packing(int argc, char *const *argv, struct err *e)
{
    struct packing_args a = { .workload = "default", .policy = "nightshift" };
    struct openb o;
    struct packing_result r;
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    if (opts_parse(packing_opts, ARRAY_LEN(packing_opts), argc, argv, &a, e) < 0 ||
        need(a.data, "data",
             "nightshift-sim packing --data DIR --workload default --policy nightshift", e) < 0 ||
        openb_read(a.data, a.workload, &o, e) < 0)
        return -1;
    const char *prior = a.prior ? a.prior : strcmp(a.policy, "fgd") == 0 ? "trace" : "online";
    int rc = packing_run(&o, a.workload, a.policy, strcmp(prior, "trace") == 0, &r, e);
    if (rc == 0) {
        if (a.json)
            packing_json(&r, &b);
        else
            packing_table(&r, &b);
        rc = command_print(&b, e);
        free(r.seed);
    }
    openb_free(&o);
    return rc;
}

const struct command command_packing = {
    .name = "packing",
    .help = "how much of a cluster can be used, pods arriving one by one",
    .opts = packing_opts,
    .opts_n = ARRAY_LEN(packing_opts),
    .run = run_packing,
};

/* ---- scale ---- */

struct scale_args {
    uint64_t nodes, jobs, seed;
    bool json;
};

static const struct opt scale_opts[] = {
    { "nodes", OPT_NUMBER, offsetof(struct scale_args, nodes), "N", "machines of 8 GPUs", 4,
      SCALE_NODES_MAX },
    { "jobs", OPT_NUMBER, offsetof(struct scale_args, jobs), "J", "jobs that wait", 1,
      SCALE_JOBS_MAX },
    { "seed", OPT_NUMBER, offsetof(struct scale_args, seed), "S",
      "of the made-up cluster and queue", 0, UINT32_MAX },
    { "json", OPT_FLAG, offsetof(struct scale_args, json), NULL, "one JSON object", 0, 0 },
};

static void scale_table(const struct scale_result *r, struct buf *b)
{
    buf_printf(b,
               "%u machines, %u waiting jobs (simulated)\n"
               "    full pass          %10.2f ms   %llu jobs placed, %.0f considered a second\n"
               "    after one submit   %10.4f ms   99 %% under %.4f ms\n"
               "    after one end      %10.4f ms   99 %% under %.4f ms\n"
               "    why a job waits    %10.2f ms   the worst of some\n"
               "    memory             %10.0f MiB  %.0f bytes a waiting job\n"
               "    yardstick          %10.2f ms   the same work everywhere: how fast this machine "
               "is just now\n",
               r->nodes, r->jobs, r->full_pass_ms, (unsigned long long)r->placed,
               r->considered_per_s, r->submit_ms, r->submit_p99_ms, r->end_ms, r->end_p99_ms,
               r->why_ms, r->rss_mib, r->bytes_per_job, r->yardstick_ms);
}

static int run_scale(int argc, char *const *argv, struct err *e)
{
    struct scale_args a = { .nodes = 1000, .jobs = 10000, .seed = 1 };
    struct scale_result r;
    AUTO(buf_free) struct buf b = BUF(1u << 16);
    if (opts_parse(scale_opts, ARRAY_LEN(scale_opts), argc, argv, &a, e) < 0 ||
        scale_run((uint32_t)a.nodes, (uint32_t)a.jobs, a.seed, &r, e) < 0)
        return -1;
    r.yardstick_ms = scale_yardstick_ms();
    if (a.json)
        scale_json(&r, &b);
    else
        scale_table(&r, &b);
    return command_print(&b, e);
}

const struct command command_scale = {
    .name = "scale",
    .help = "how long one pass takes on a large cluster with a long queue",
    .opts = scale_opts,
    .opts_n = ARRAY_LEN(scale_opts),
    .run = run_scale,
};
