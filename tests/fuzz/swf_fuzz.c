/* A log of any bytes, once for CPUs and once for GPUs: what is read can be replayed, what is
 * refused leaves the output alone. */
#include "simulate/trace.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void check(struct trace *t, uint32_t gpus)
{
    uint64_t units = 0;
    for (uint32_t i = 0; i < t->nodes; i++)
        units += gpus ? t->node[i].gpus : t->node[i].cpu_milli / 1000;
    for (uint32_t i = 0; i < t->jobs; i++) {
        const struct request *r = &t->job[i].request;
        must((uint64_t)r->replicas * (gpus ? r->gpus : r->cpu_milli / 1000) <= units);
        must(t->job[i].tenant < t->tenants && t->job[i].user[0]);
    }
    struct err e;
    must(trace_finish(t, &e) == 0);
}

FUZZ_TARGET(data, size)
{
    const struct csv_source from = { "t", { (const char *)data, size } };
    for (uint32_t gpus = 0; gpus <= 8; gpus += 8) {
        struct trace t = { .nodes = 12345 };
        struct err e = { 0 };
        if (trace_parse_swf(&from, gpus, &t, &e) < 0) {
            must(t.nodes == 12345 && e.code == ERR_INVALID && e.hint[0]);
            must(strstr(e.msg, ": field '"));
            continue;
        }
        check(&t, gpus);
        trace_free(&t);
    }
    return 0;
}
