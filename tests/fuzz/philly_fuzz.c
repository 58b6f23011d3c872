/* Two tables in one input, a line "%" between them: what is read can be replayed, what is refused
 * leaves the output alone. */
#include "simulate/trace.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void check(struct trace *t)
{
    for (uint32_t i = 0; i < t->jobs; i++) {
        const struct trace_job *j = &t->job[i];
        must(j->tenant < t->tenants && j->duration_ms > 0 && j->user[0]);
        must(j->gpus == j->request.gpus * j->request.replicas && j->request.gpus <= 8);
        must(i == 0 || t->job[i - 1].submit_ms <= j->submit_ms);
    }
    struct err e;
    must(trace_finish(t, &e) == 0);
}

FUZZ_TARGET(data, size)
{
    struct str vcs, jobs;
    str_cut((struct str){ (const char *)data, size }, '%', &vcs, &jobs);
    const struct csv_source v = { "vcs", vcs }, j = { "jobs", jobs };
    for (uint32_t pooled = 0; pooled <= 3; pooled += 3) {
        struct trace t = { .nodes = 12345 };
        struct err e = { 0 };
        if (trace_parse_philly(&v, &j, pooled, &t, &e) < 0) {
            must(t.nodes == 12345 && e.code == ERR_INVALID && e.hint[0]);
            must(strstr(e.msg, ": field '"));
            continue;
        }
        check(&t);
        trace_free(&t);
    }
    return 0;
}
