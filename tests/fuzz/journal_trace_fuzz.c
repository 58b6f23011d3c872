/* Any bytes as a journal that becomes a trace: what is read can be replayed, what is refused names
 * its file and line and leaves the output alone. */
#include "simulate/journal_trace.h"
#include "simulate/replay.h"
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
        must(i == 0 || t->job[i - 1].submit_ms <= j->submit_ms);
    }
    for (uint32_t i = 0; i < t->nodes; i++)
        must(t->node[i].name.n > 0 && t->node[i].gpus <= GPUS_PER_NODE_MAX);
    struct err e;
    must(trace_finish(t, &e) == 0);
}

/* It may be refused, with its reason. */
static void replay(struct trace *t)
{
    const struct replay_options o = { .policy = "nightshift", .freeze_cost_milli = 1000 };
    struct report r;
    struct outcome jobs;
    struct err e = { 0 };
    must(replay_run(t, &o, &r, &jobs, &e) == 0 || e.msg[0]);
}

FUZZ_TARGET(data, size)
{
    struct str text = { (const char *)data, size };
    struct trace t = { .nodes = 12345 };
    struct journal_check c = { .events = 12345 };
    struct err e = { 0 };
    if (trace_parse_journal("t", text, NULL, &t, &e) < 0) {
        must(t.nodes == 12345 && e.code == ERR_INVALID && strncmp(e.msg, "t:", 2) == 0);
    } else {
        check(&t);
        replay(&t);
        trace_free(&t);
    }
    if (journal_verify_text("t", text, &c, &e) < 0)
        must(c.events == 12345 && (e.code == ERR_INVALID || e.code == ERR_CONFLICT));
    return 0;
}
