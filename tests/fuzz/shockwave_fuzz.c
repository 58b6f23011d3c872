/* A table of any bytes, on a whole number of machines and on one with a rest: what is read can be
 * replayed, what is refused leaves the output alone. */
#include "simulate/trace.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void check(struct trace *t, uint32_t gpus)
{
    must(t->tenants == t->jobs && t->rho_note);
    for (uint32_t i = 0; i < t->jobs; i++) {
        const struct trace_job *j = &t->job[i];
        must(j->tenant < t->tenants && j->duration_ms > 0 && j->submit_ms >= 0 && j->user[0]);
        must(j->gpus == j->request.gpus * j->request.replicas && j->gpus <= gpus);
        must(i == 0 || t->job[i - 1].submit_ms <= j->submit_ms);
    }
    struct err e;
    must(trace_finish(t, &e) == 0);
}

FUZZ_TARGET(data, size)
{
    const struct csv_source from = { "t", { (const char *)data, size } };
    for (uint32_t gpus = 10; gpus <= 32; gpus += 22) {
        struct trace t = { .nodes = 12345 };
        struct err e = { 0 };
        if (trace_parse_shockwave(&from, (struct trace_pool){ gpus, 4 }, &t, &e) < 0) {
            must(t.nodes == 12345 && e.code == ERR_INVALID && e.hint[0]);
            must(strstr(e.msg, ": field '"));
            continue;
        }
        check(&t, gpus);
        trace_free(&t);
    }
    return 0;
}
