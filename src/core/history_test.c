#include "core/history.h"

#include "tests/lib/test.h"

#define HOUR_MS INT64_C(3600000)

static struct request gpus(uint16_t n, uint32_t replicas)
{
    return (struct request){ .replicas = replicas, .gpus = n };
}

static void derive(struct history *h)
{
    history_derive_begin(h);
    history_derive_done(h);
}

static void jobs_are_classed_by_their_gpus(void)
{
    static const struct {
        uint16_t gpus;
        uint32_t replicas, size;
    } rows[] = { { 0, 1, 0 }, { 1, 1, 1 }, { 2, 1, 2 }, { 3, 1, 3 }, { 4, 1, 3 },
                 { 8, 1, 4 }, { 8, 2, 5 }, { 8, 4, 6 }, { 8, 5, 7 }, { 8, 4000, 7 } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request r = gpus(rows[i].gpus, rows[i].replicas);
        CHECK_INT(history_size(&r), rows[i].size);
    }
}

static void a_large_job_weighs_more_than_its_gpus(void)
{
    struct request one = gpus(1, 1), four = gpus(4, 1), six = gpus(6, 1), eight = gpus(4, 2);
    struct request part = { .replicas = 1, .gpu_milli = 250 };
    CHECK(history_gpus_weight(&one) > 0.999 && history_gpus_weight(&one) < 1.001);
    CHECK(history_gpus_weight(&four) > 7.99 && history_gpus_weight(&four) < 8.01);
    CHECK(history_gpus_weight(&six) > 14 && history_gpus_weight(&six) < 16);
    CHECK(history_gpus_weight(&eight) > 22.6 && history_gpus_weight(&eight) < 22.7);
    CHECK(history_gpus_weight(&part) < 0.26 && history_gpus_weight(&part) > 0.24);
}

static void what_is_not_known_of_a_tenant_is_taken_from_all(void)
{
    struct history h;
    history_init(&h);
    for (int i = 0; i < 500; i++)
        history_learn(&h, 1, 1, 0, 2 * HOUR_MS, true);
    derive(&h);
    int64_t own = history_left_ms(&h, 1, 1, 0, 0.5), other = history_left_ms(&h, 2, 1, 0, 0.5);
    CHECK(own > HOUR_MS && own < 4 * HOUR_MS);
    CHECK(other > HOUR_MS && other < 5 * HOUR_MS);
    history_free(&h);
}

static void a_tenant_that_differs_is_learnt(void)
{
    struct history h;
    history_init(&h);
    for (int i = 0; i < 300; i++) {
        history_learn(&h, 1, 1, 0, 60000, true);
        history_learn(&h, 2, 1, 0, 20 * HOUR_MS, true);
    }
    derive(&h);
    CHECK(history_left_ms(&h, 1, 1, 0, 0.5) < 5 * 60000);
    CHECK(history_left_ms(&h, 2, 1, 0, 0.5) > 10 * HOUR_MS);
    CHECK(history_worth(&h, 1, 1, 0) > 20 * history_worth(&h, 2, 1, 0));
    history_free(&h);
}

static void a_job_that_still_runs_counts_for_the_time_it_ran(void)
{
    struct history h;
    history_init(&h);
    for (int i = 0; i < 20; i++)
        history_learn(&h, 1, 1, 0, HOUR_MS, true);
    derive(&h);
    int64_t before = history_left_ms(&h, 1, 1, 0, 0.5);
    history_derive_begin(&h);
    for (int i = 0; i < 40; i++)
        history_derive_running(&h, 1, 1, 0, 30 * HOUR_MS);
    history_derive_done(&h);
    CHECK(history_left_ms(&h, 1, 1, 0, 0.5) > 2 * before);
    history_free(&h);
}

static void the_old_fades(void)
{
    struct history h;
    history_init(&h);
    for (int i = 0; i < 500; i++)
        history_learn(&h, 1, 1, 0, 20 * HOUR_MS, true);
    for (int i = 0; i < 500; i++)
        history_learn(&h, 1, 1, 0, 60000, true);
    derive(&h);
    CHECK(history_left_ms(&h, 1, 1, 0, 0.5) < 10 * 60000);
    history_free(&h);
}

static void quantiles_grow_and_the_rest_grows_with_age_where_most_end_early(void)
{
    struct history h;
    history_init(&h);
    for (int i = 0; i < 300; i++)
        history_learn(&h, 1, 1, 0, i % 4 ? 60000 : 40 * HOUR_MS, true);
    derive(&h);
    int64_t last = 0;
    for (int q = 1; q < 10; q++) {
        int64_t left = history_left_ms(&h, 1, 1, 0, q / 10.0);
        CHECK(left >= last);
        last = left;
    }
    CHECK(history_left_ms(&h, 1, 1, HOUR_MS, 0.5) > history_left_ms(&h, 1, 1, 0, 0.5));
    CHECK(history_worth(&h, 1, 1, 0) > history_worth(&h, 1, 1, history_bin(2 * HOUR_MS)));
    history_free(&h);
}

static void the_mean_of_work_is_of_everybody(void)
{
    struct history h;
    history_init(&h);
    for (int i = 0; i < 2000; i++)
        history_learn_work(&h, i % 2 ? 2e6 : 4e6);
    CHECK(history_mean_work_ms(&h) > 2.9e6 && history_mean_work_ms(&h) < 3.1e6);
    history_free(&h);
}

static const struct test tests[] = {
    { "jobs are classed by their GPUs", jobs_are_classed_by_their_gpus },
    { "a large job weighs more than its GPUs", a_large_job_weighs_more_than_its_gpus },
    { "what is not known of a tenant is taken from all",
      what_is_not_known_of_a_tenant_is_taken_from_all },
    { "a tenant that differs is learnt", a_tenant_that_differs_is_learnt },
    { "a job that still runs counts for the time it ran",
      a_job_that_still_runs_counts_for_the_time_it_ran },
    { "the old fades", the_old_fades },
    { "quantiles grow, and the rest grows with age where most end early",
      quantiles_grow_and_the_rest_grows_with_age_where_most_end_early },
    { "the mean of work is of everybody", the_mean_of_work_is_of_everybody },
};
TEST_MAIN(tests)
