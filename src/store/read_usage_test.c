#include "store/usage.h"
#include "tests/lib/storing.h"

static void put(struct store_batch *b, uint64_t job, const char *tenant, const char *user,
                int64_t from_ms, int64_t to_ms)
{
    struct store_run r = { .job = job,
                           .run = 1,
                           .tenant = str_of(tenant),
                           .user = str_of(user),
                           .node = STR("desk1"),
                           .model = STR("A100"),
                           .gpu_milli = 2500,
                           .cpu_milli = 4000,
                           .mem_mib = 100,
                           .started_ms = from_ms,
                           .ended_ms = to_ms };
    store_put_run(b, &r);
}

static struct store_usages usage(struct storing *t, const struct store_scope *who, int64_t from_ms,
                                 int64_t to_ms, int64_t now_ms)
{
    struct store_usages u = { 0 };
    struct store_span span = { from_ms, to_ms, now_ms, 0 };
    struct err e = { 0 };
    CHECK(store_usage(t->store, who, &span, &t->arena, &u, &e) == 0);
    return u;
}

static void a_run_counts_with_the_part_inside(void)
{
    static const struct {
        int64_t from, to, now, gpu_ms;
        uint64_t runs;
    } cases[] = {
        { 0, 10000, 10000, 2500, 1 },    /* all of 1,000 … 2,000 */
        { 1500, 10000, 10000, 1250, 1 }, /* its end */
        { 0, 1200, 10000, 500, 1 },      /* its beginning */
        { 1200, 1400, 10000, 500, 1 },   /* its middle */
        { 0, 1000, 10000, 0, 0 },        /* it begins where the span ends */
        { 2000, 10000, 10000, 0, 0 },    /* it ended where the span begins */
        { 0, 10000, 1500, 2500, 1 },     /* an end in the future is as good as any */
    };
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    put(b, 1, "vision", "ana", 1000, 2000);
    storing_commit(&t, b);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct store_usages u = usage(&t, &storing_all, cases[i].from, cases[i].to, cases[i].now);
        CHECK_AT(i, u.n == cases[i].runs);
        CHECK_AT(i, !u.n || (u.v[0].gpu_ms == (uint64_t)cases[i].gpu_ms && u.v[0].runs == 1));
        CHECK_AT(i, !u.n || u.v[0].cpu_ms == (uint64_t)cases[i].gpu_ms * 8 / 5);
    }
}

static void a_run_that_goes_on_counts_until_now(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    put(b, 1, "vision", "ana", 1000, 0);
    storing_commit(&t, b);
    CHECK(usage(&t, &storing_all, 0, 10000, 3000).v[0].gpu_ms == 5000);
    CHECK(usage(&t, &storing_all, 0, 2000, 3000).v[0].gpu_ms == 2500);
    CHECK(usage(&t, &storing_all, 4000, 10000, 3000).n == 0);
    CHECK(usage(&t, &storing_all, 0, 10000, 500).v[0].gpu_ms == 0); /* a clock that went back */
    b = store_batch_new(t.store);
    put(b, 1, "vision", "ana", 1000, 1400); /* it ended: the same row */
    storing_commit(&t, b);
    struct store_usages u = usage(&t, &storing_all, 0, 10000, 3000);
    CHECK(u.n == 1 && u.v[0].gpu_ms == 1000 && u.v[0].runs == 1);
}

static void rows_are_summed_ordered_and_seen_by_tenant(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    put(b, 1, "vision", "ben", 0, 1000);
    put(b, 2, "audio", "zoe", 0, 1000);
    put(b, 3, "vision", "ana", 0, 1000);
    put(b, 4, "vision", "ben", 500, 0);
    storing_commit(&t, b);
    struct store_usages u = usage(&t, &storing_all, 0, 1000, 1000);
    CHECK(u.n == 3 && str_is(u.v[0].user, "zoe") && str_is(u.v[1].user, "ana"));
    CHECK(str_is(u.v[2].user, "ben") && u.v[2].gpu_ms == 3750 && u.v[2].runs == 2);
    CHECK(str_is(u.v[2].tenant, "vision") && str_is(u.v[2].model, "A100"));
    struct str audio = STR("audio");
    struct store_scope who = { .tenant = &audio, .n = 1 }, nobody = { 0 };
    CHECK(usage(&t, &who, 0, 1000, 1000).n == 1 && usage(&t, &nobody, 0, 1000, 1000).n == 0);
}

static struct store_usages usage_by(struct storing *t, unsigned by)
{
    struct store_usages u = { 0 };
    int64_t noon = 43200000, day = 2 * noon;
    struct store_span span = { noon, 3 * day + noon, 3 * day, by };
    struct err e = { 0 };
    CHECK(store_usage(t->store, &storing_all, &span, &t->arena, &u, &e) == 0);
    return u;
}

static void it_is_summed_by_what_was_asked_for(void)
{
    const int64_t hour = 3600000, day = 24 * hour;
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    put(b, 1, "vision", "ana", 10 * hour, day + 2 * hour);     /* from noon on: 12, 2 hours */
    put(b, 2, "vision", "ben", day + hour, day + 2 * hour);    /* 1 */
    put(b, 3, "audio", "ana", 2 * day - hour, 0);              /* goes on: 1, 24 */
    put(b, 4, "audio", "ana", day - 3 * hour, 2 * day + hour); /* 3, 24, 1 */
    storing_commit(&t, b);
    struct store_usages u = usage_by(&t, 1u << USAGE_BY_DAY);
    static const struct {
        int64_t hours;
        uint64_t runs;
    } by_day[] = { { 15, 2 }, { 28, 4 }, { 25, 2 } };
    CHECK_INT(u.n, ARRAY_LEN(by_day));
    for (size_t i = 0; i < u.n; i++) {
        CHECK_AT(i, u.v[i].day == (int64_t)i && u.v[i].tenant.n == 0 && u.v[i].user.n == 0);
        CHECK_AT(i, u.v[i].gpu_ms == (uint64_t)(by_day[i].hours * hour * 5 / 2));
        CHECK_AT(i, u.v[i].runs == by_day[i].runs);
    }
    u = usage_by(&t, 1u << USAGE_BY_USER);
    CHECK(u.n == 2 && str_is(u.v[0].user, "ana") && str_is(u.v[1].user, "ben"));
    CHECK(u.v[0].gpu_ms == (uint64_t)(67 * hour * 5 / 2) && u.v[0].runs == 3);
    u = usage_by(&t, 1u << USAGE_BY_DAY | 1u << USAGE_BY_TENANT);
    CHECK(u.n == 5 && u.v[0].day == 0 && str_is(u.v[0].tenant, "audio") && u.v[0].runs == 1);
    CHECK(u.v[4].day == 2 && str_is(u.v[4].tenant, "audio") && u.v[4].runs == 2);
    u = usage_by(&t, 1u << USAGE_BY_MODEL);
    CHECK(u.n == 1 && str_is(u.v[0].model, "A100") && u.v[0].runs == 4);
}

static void the_runs_of_a_job_come_in_order(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    for (uint32_t i = 3; i >= 1; i--) {
        struct store_run r = { .job = 9, .run = i, .tenant = STR("vision"), .node = STR("desk1") };
        r.started_ms = 10 * (int64_t)i;
        store_put_run(b, &r);
    }
    put(b, 10, "vision", "ana", 0, 1);
    storing_commit(&t, b);
    struct store_runs runs;
    struct err e = { 0 };
    struct store_scope nobody = { 0 };
    CHECK(store_job_runs(t.store, &storing_all, 9, &t.arena, &runs, &e) == 0 && runs.n == 3);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(runs.v[i].run == i + 1 && runs.v[i].started_ms == 10 * (int64_t)(i + 1));
    CHECK(str_is(runs.v[0].node, "desk1") && runs.v[0].ended_ms == 0);
    CHECK(store_job_runs(t.store, &nobody, 9, &t.arena, &runs, &e) == 0 && runs.n == 0);
}

static const struct test tests[] = {
    { "a run counts with the part inside the span", a_run_counts_with_the_part_inside },
    { "a run that goes on counts until now", a_run_that_goes_on_counts_until_now },
    { "rows are summed, ordered and seen by tenant", rows_are_summed_ordered_and_seen_by_tenant },
    { "it is summed by what was asked for", it_is_summed_by_what_was_asked_for },
    { "the runs of a job come in order", the_runs_of_a_job_come_in_order },
};
TEST_CASES(tests)
