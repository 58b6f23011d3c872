#include "tests/lib/gen_trace.h"

#include "base/rng.h"

#define TEXT_MAX ((size_t)1 << 20)

static void shuffle(struct rng *r, uint32_t *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        v[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = rng_below(r, i), was = v[j];
        v[j] = v[i - 1];
        v[i - 1] = was;
    }
}

static void numbers_line(struct buf *b, uint32_t seed, const uint32_t *v, uint32_t n)
{
    buf_printf(b, "%u", seed);
    for (uint32_t i = 0; i < n; i++)
        buf_printf(b, " %u", v[i]);
    buf_addc(b, '\n');
}

static void openb_pods(struct rng *r, struct buf *b)
{
    static const char *const specs[] = { "", "", "", "T4", "V100M16|V100M32" };
    buf_addz(b, "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
                "deletion_time,scheduled_time\n");
    for (uint32_t i = 0; i < GEN_OPENB_PODS; i++) {
        static const uint32_t sizes[] = { 0, 1, 1, 1, 1, 2, 4, 8 };
        uint32_t gpus = sizes[rng_below(r, ARRAY_LEN(sizes))];
        uint32_t milli = gpus == 0                   ? 0
                       : gpus > 1 || rng_below(r, 2) ? 1000
                                                     : 10 * rng_between(r, 1, 99);
        const char *spec = gpus ? specs[rng_below(r, ARRAY_LEN(specs))] : "";
        uint32_t t = rng_below(r, 1000000);
        uint32_t cpus = rng_between(r, 1, 12), gib = rng_between(r, 1, 32);
        buf_printf(b, "openb-pod-%04u,%u,%u,%u,%u,%s,LS,Running,%u,%u,%u\n", i, cpus * 1000,
                   gib * 1024, gpus, milli, spec, t, t + 5000, t + 1);
    }
}

void gen_openb(uint64_t seed, struct gen_openb *out)
{
    static const struct {
        const char *model;
        uint32_t gpus;
    } kinds[] = { { "P100", 2 }, { "T4", 2 }, { "V100M16", 4 }, { "V100M32", 8 }, { "G2", 8 } };
    struct rng r = { seed };
    uint32_t v[GEN_OPENB_PODS];
    *out = (struct gen_openb){ BUF(TEXT_MAX), BUF(TEXT_MAX), BUF(TEXT_MAX), BUF(TEXT_MAX),
                               BUF(TEXT_MAX) };
    buf_addz(&out->nodes, "sn,cpu_milli,memory_mib,gpu,model\n");
    for (uint32_t i = 0; i < GEN_OPENB_NODES; i++) {
        uint32_t k = rng_below(&r, ARRAY_LEN(kinds));
        uint32_t cpus = rng_between(&r, 1, 4), mem = rng_between(&r, 1, 4);
        buf_printf(&out->nodes, "openb-node-%04u,%u,%u,%u,%s\n", i, 32000 * cpus, 131072 * mem,
                   kinds[k].gpus, kinds[k].model);
    }
    openb_pods(&r, &out->pods);
    buf_addz(&out->published, "metric,workload,policy,seed,a10,a50,a100,a130\n");
    for (uint32_t s = 42; s < 42 + GEN_OPENB_SEEDS; s++) {
        shuffle(&r, v, GEN_OPENB_PODS);
        numbers_line(&out->seq, s, v, GEN_OPENB_PODS);
        shuffle(&r, v, GEN_OPENB_NODES);
        numbers_line(&out->ranks, s, v, GEN_OPENB_NODES);
        buf_printf(&out->published, "alloc_pct,default,BestFit,%u,10.00,49.%02u,91.25,\n", s,
                   rng_below(&r, 100));
        buf_printf(&out->published, "frag_pct_of_idle,default,BestFit,%u,1,2,3,4\n", s);
    }
}

void gen_openb_free(struct gen_openb *g)
{
    buf_free(&g->nodes);
    buf_free(&g->pods);
    buf_free(&g->seq);
    buf_free(&g->ranks);
    buf_free(&g->published);
}

void gen_philly(uint64_t seed, struct gen_philly *out)
{
    static const struct {
        const char *vc;
        uint32_t nodes;
    } vcs[] = { { "6214e9", 4 }, { "7f04ca", 2 }, { "11cb48", 1 } };
    static const uint32_t sizes[] = { 1, 1, 1, 1, 1, 2, 4, 8, 8, 16, 12, 20, 32 };
    struct rng r = { seed };
    *out = (struct gen_philly){ BUF(TEXT_MAX), BUF(TEXT_MAX) };
    buf_addz(&out->vcs, "vc,node num\n");
    for (size_t i = 0; i < ARRAY_LEN(vcs); i++)
        buf_printf(&out->vcs, "%s,%u\n", vcs[i].vc, vcs[i].nodes);
    buf_addz(&out->jobs, "job_id,submit_s,vc,num_gpus,duration_s,noisy_est_s\n");
    uint32_t t = 0;
    for (uint32_t i = 0; i < GEN_PHILLY_JOBS; i++) {
        uint32_t v = rng_below(&r, ARRAY_LEN(vcs)), gpus = sizes[rng_below(&r, ARRAY_LEN(sizes))];
        uint32_t duration = 1 + (uint32_t)rng_exp(&r, 3000);
        t += rng_below(&r, 900);
        buf_printf(&out->jobs, "%u,%u,%s,%u,%u,%d\n", 7000 + i, t, vcs[v].vc,
                   MIN(gpus, vcs[v].nodes * 8), duration,
                   (int)duration + (int)rng_below(&r, 2000) - 1000);
    }
}

void gen_philly_free(struct gen_philly *g)
{
    buf_free(&g->vcs);
    buf_free(&g->jobs);
}

void gen_swf(uint64_t seed, struct buf *out)
{
    struct rng r = { seed };
    *out = BUF(TEXT_MAX);
    buf_addz(out, "; Version: 2.2\n; Computer: a made one\n; MaxNodes: 8\n; MaxProcs: 64\n;\n");
    uint32_t t = 0;
    for (uint32_t i = 1; i <= GEN_SWF_JOBS; i++) {
        uint32_t procs = 1u << rng_below(&r, 7), run = 1 + (uint32_t)rng_exp(&r, 2000);
        uint32_t wait = rng_below(&r, 500), user = rng_below(&r, 12), group = rng_below(&r, 4);
        t += rng_below(&r, 600);
        buf_printf(out, "%5u %6u %4u %5u %2u %.1f -1 %2u %5u -1 1 %u %u -1 1 -1 -1 -1\n", i, t,
                   wait, run, procs, (double)run / 2, procs, run * 2, user, group);
    }
    buf_printf(out, "%u %u -1 0 4 -1 -1 4 600 -1 5 1 1 -1 1 -1 -1 -1\n", GEN_SWF_JOBS + 1, t);
}

void gen_shockwave(uint64_t seed, struct buf *out)
{
    static const char *const modes[] = { "gns", "accordion", "static" };
    static const uint32_t sizes[] = { 1, 1, 1, 1, 2, 2, 4, 8 };
    struct rng r = { seed };
    *out = BUF(TEXT_MAX);
    buf_addz(out, "job_id,submit_s,num_gpus,exclusive_s,trace_duration_s,mode,model\n");
    uint32_t t = 0;
    for (uint32_t i = 0; i < GEN_SHOCKWAVE_JOBS; i++) {
        uint32_t tenths = 10 + (uint32_t)rng_exp(&r, 40000);
        uint32_t gpus = sizes[rng_below(&r, ARRAY_LEN(sizes))];
        buf_printf(out, "%u,%u,%u,%u.%u,%u,%s,\"LM (batch size %u)\"\n", i, t, gpus, tenths / 10,
                   tenths % 10, tenths / 10 + 7, modes[rng_below(&r, ARRAY_LEN(modes))], 10 + i);
        t += rng_below(&r, 120);
    }
}
