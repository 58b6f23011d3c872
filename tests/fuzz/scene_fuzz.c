/* A scene of any bytes: what is read can be replayed, what is refused leaves the output alone. */
#include "simulate/trace.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

FUZZ_TARGET(data, size)
{
    const struct csv_source from = { "t", { (const char *)data, size } };
    struct trace t = { .nodes = 12345 };
    struct err e = { 0 };
    if (trace_parse_scene(&from, &t, &e) < 0) {
        must(t.nodes == 12345 && e.code == ERR_INVALID && e.hint[0]);
        must(strstr(e.msg, ": field '"));
        return 0;
    }
    uint64_t gpus = 0;
    for (uint32_t i = 0; i < t.nodes; i++)
        gpus += t.node[i].gpus;
    for (uint32_t i = 0; i < t.jobs; i++)
        must(t.job[i].gpus <= gpus && t.job[i].tenant < t.tenants && t.job[i].user[0]);
    must(trace_finish(&t, &e) == 0);
    trace_free(&t);
    return 0;
}
