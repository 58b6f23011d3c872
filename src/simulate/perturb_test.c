#include "simulate/replay.h"
#include "simulate/trace.h"
#include "tests/lib/test.h"

#define HOUR_MS INT64_C(3600000)

/* A lab's three days, and the same changed. */
struct both {
    struct trace was, is;
};

static void both_free(struct both *b)
{
    trace_free(&b->was);
    trace_free(&b->is);
}

static struct both change(struct trace_change c)
{
    struct both b = { 0 };
    struct err e = { 0 };
    CHECK(trace_make_lab(1, 3, false, &b.was, &e) == 0 &&
          trace_make_lab(1, 3, false, &b.is, &e) == 0);
    CHECK(trace_change(&b.is, &c, &e) == 0);
    CHECK(b.is.jobs == b.was.jobs && b.is.jobs > 100);
    return b;
}

static const struct trace_job *with_id(const struct trace *t, uint64_t id)
{
    for (uint32_t i = 0; i < t->jobs; i++)
        if (t->job[i].id == id)
            return &t->job[i];
    return NULL;
}

static void nothing_asked_for_changes_nothing(void)
{
    AUTO(both_free) struct both b = change((struct trace_change){ .seed = 7 });
    CHECK_STR(b.is.name, b.was.name);
    for (uint32_t i = 0; i < b.was.jobs; i++)
        CHECK(b.is.job[i].id == b.was.job[i].id &&
              b.is.job[i].submit_ms == b.was.job[i].submit_ms &&
              b.is.job[i].duration_ms == b.was.job[i].duration_ms);
}

static void jitter_spreads_durations_evenly_and_moves_nothing(void)
{
    AUTO(both_free) struct both b = change((struct trace_change){ .seed = 7, .jitter_pct = 10 });
    double least = 2, most = 0, sum = 0;
    for (uint32_t i = 0; i < b.was.jobs; i++) {
        double by = (double)b.is.job[i].duration_ms / (double)b.was.job[i].duration_ms;
        CHECK(b.is.job[i].submit_ms == b.was.job[i].submit_ms);
        CHECK(by > 0.8999 && by < 1.1001);
        least = MIN(least, by);
        most = MAX(most, by);
        sum += by;
    }
    CHECK(least < 0.92 && most > 1.08 && sum / b.was.jobs > 0.98 && sum / b.was.jobs < 1.02);
}

static void the_shortest_job_keeps_a_duration(void)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        AUTO(trace_free) struct trace t = { 0 };
        struct err e = { 0 };
        CHECK(trace_make_lab(1, 1, false, &t, &e) == 0);
        t.job[0].duration_ms = 1;
        const struct trace_change c = { .seed = seed, .jitter_pct = 100 };
        CHECK_AT(seed, trace_change(&t, &c, &e) == 0);
        for (uint32_t i = 0; i < t.jobs; i++)
            CHECK_AT(seed, t.job[i].duration_ms >= 1);
    }
}

static void shift_moves_each_tenant_as_one(void)
{
    AUTO(both_free) struct both b = change((struct trace_change){ .seed = 7, .shift_hours = 24 });
    int64_t by_ms[64], most = 0;
    uint32_t moved = 0;
    CHECK(b.was.tenants < ARRAY_LEN(by_ms));
    for (uint32_t i = 0; i < b.was.tenants; i++)
        by_ms[i] = -1;
    for (uint32_t i = 0; i < b.was.jobs; i++) {
        const struct trace_job *was = &b.was.job[i], *is = with_id(&b.is, was->id);
        int64_t by = is->submit_ms - was->submit_ms;
        CHECK(is->duration_ms == was->duration_ms && is->tenant == was->tenant);
        CHECK(by >= 0 && by <= 24 * HOUR_MS);
        moved += by_ms[was->tenant] < 0;
        CHECK(by_ms[was->tenant] < 0 || by_ms[was->tenant] == by);
        by_ms[was->tenant] = by;
        most = MAX(most, by);
        CHECK(i == 0 || b.is.job[i - 1].submit_ms <= b.is.job[i].submit_ms);
    }
    CHECK(moved > 2 && most > HOUR_MS);
}

static bool same_jobs(const struct trace *a, const struct trace *b)
{
    for (uint32_t i = 0; i < a->jobs; i++)
        if (a->job[i].id != b->job[i].id || a->job[i].submit_ms != b->job[i].submit_ms ||
            a->job[i].duration_ms != b->job[i].duration_ms)
            return false;
    return true;
}

static void the_seed_decides(void)
{
    const struct trace_change c = { .seed = 7, .jitter_pct = 10, .shift_hours = 24 };
    struct trace_change other = c, jitter = c;
    other.seed = 8;
    jitter.shift_hours = 0;
    AUTO(both_free) struct both a = change(c), b = change(c), d = change(other), j = change(jitter);
    CHECK(same_jobs(&a.is, &b.is) && !same_jobs(&a.is, &d.is));
    CHECK_STR(a.is.name, "lab, jitter 10 %, shift 24 h, seed 7");
    for (uint32_t i = 0; i < a.is.jobs; i++) /* a shift draws nothing of the jitter's */
        CHECK(a.is.job[i].duration_ms == with_id(&j.is, a.is.job[i].id)->duration_ms);
}

static void a_freeze_costs_more_with_more_gpus(void)
{
    static const struct {
        uint32_t gpus;
        int64_t ms;
    } table[] = { { 0, 7000 }, { 1, 7000 }, { 2, 30000 }, { 8, 30000 }, { 9, 60000 } };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        CHECK_INT(freeze_cost_ms(table[i].gpus), table[i].ms);
}

static const struct test tests[] = {
    { "nothing asked for changes nothing", nothing_asked_for_changes_nothing },
    { "jitter spreads durations evenly and moves nothing",
      jitter_spreads_durations_evenly_and_moves_nothing },
    { "the shortest job keeps a duration", the_shortest_job_keeps_a_duration },
    { "shift moves each tenant as one", shift_moves_each_tenant_as_one },
    { "the seed decides, and each change draws for itself", the_seed_decides },
    { "a freeze costs more with more GPUs", a_freeze_costs_more_with_more_gpus },
};
TEST_CASES(tests)
