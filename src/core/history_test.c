#include "core/history.h"

#include "base/rng.h"
#include "tests/lib/test.h"

#define HOUR_MS INT64_C(3600000)

static struct request gpus(uint16_t n, uint32_t replicas)
{
    return (struct request){ .replicas = replicas, .gpus = n };
}

/* One GPU, of a tenant, without a family. */
static struct history_of of_tenant(uint32_t tenant)
{
    return (struct history_of){ .tenant = tenant, .size = 1 };
}

static struct history_of of_family(uint32_t tenant, uint32_t user, uint32_t family)
{
    return (struct history_of){ .tenant = tenant, .size = 1, .user = user, .family = family };
}

static int64_t left_ms(const struct history *h, struct history_of of, int64_t ran_ms, double part)
{
    return history_left_ms(history_row(h, of), ran_ms, part);
}

static double worth(const struct history *h, uint32_t tenant, uint32_t bin)
{
    return history_row(h, of_tenant(tenant))->worth[bin];
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
        history_learn(&h, of_tenant(1), 0, 2 * HOUR_MS, true);
    derive(&h);
    int64_t own = left_ms(&h, of_tenant(1), 0, 0.5), other = left_ms(&h, of_tenant(2), 0, 0.5);
    CHECK(own > HOUR_MS && own < 4 * HOUR_MS);
    CHECK(other > HOUR_MS && other < 5 * HOUR_MS);
    history_free(&h);
}

static void a_tenant_that_differs_is_learnt(void)
{
    struct history h;
    history_init(&h);
    for (int i = 0; i < 300; i++) {
        history_learn(&h, of_tenant(1), 0, 60000, true);
        history_learn(&h, of_tenant(2), 0, 20 * HOUR_MS, true);
    }
    derive(&h);
    CHECK(left_ms(&h, of_tenant(1), 0, 0.5) < 5 * 60000);
    CHECK(left_ms(&h, of_tenant(2), 0, 0.5) > 10 * HOUR_MS);
    CHECK(worth(&h, 1, 0) > 20 * worth(&h, 2, 0));
    history_free(&h);
}

static void a_job_that_still_runs_counts_for_the_time_it_ran(void)
{
    struct history h;
    history_init(&h);
    for (int i = 0; i < 20; i++)
        history_learn(&h, of_tenant(1), 0, HOUR_MS, true);
    derive(&h);
    int64_t before = left_ms(&h, of_tenant(1), 0, 0.5);
    history_derive_begin(&h);
    for (int i = 0; i < 40; i++)
        history_derive_running(&h, of_tenant(1), 0, 30 * HOUR_MS);
    history_derive_done(&h);
    CHECK(left_ms(&h, of_tenant(1), 0, 0.5) > 2 * before);
    history_free(&h);
}

static void the_old_fades(void)
{
    struct history h;
    history_init(&h);
    for (int i = 0; i < 500; i++)
        history_learn(&h, of_tenant(1), 0, 20 * HOUR_MS, true);
    for (int i = 0; i < 500; i++)
        history_learn(&h, of_tenant(1), 0, 60000, true);
    derive(&h);
    CHECK(left_ms(&h, of_tenant(1), 0, 0.5) < 10 * 60000);
    history_free(&h);
}

static void quantiles_grow_and_the_rest_grows_with_age_where_most_end_early(void)
{
    struct history h;
    history_init(&h);
    for (int i = 0; i < 300; i++)
        history_learn(&h, of_tenant(1), 0, i % 4 ? 60000 : 40 * HOUR_MS, true);
    derive(&h);
    int64_t last = 0;
    for (int q = 1; q < 10; q++) {
        int64_t left = left_ms(&h, of_tenant(1), 0, q / 10.0);
        CHECK(left >= last);
        last = left;
    }
    CHECK(left_ms(&h, of_tenant(1), HOUR_MS, 0.5) > left_ms(&h, of_tenant(1), 0, 0.5));
    CHECK(worth(&h, 1, 0) > worth(&h, 1, history_bin(2 * HOUR_MS)));
    history_free(&h);
}

/* Two users of one tenant, each with four sorts of work; a run is up to a fifth off. */
static const struct {
    uint32_t user, family;
    int64_t run_ms;
} work[] = {
    { 11, 1, 40000 },       { 11, 2, 20 * 60000 }, { 11, 3, 3 * HOUR_MS },  { 11, 4, 30 * HOUR_MS },
    { 12, 1, 6 * HOUR_MS }, { 12, 2, 90000 },      { 12, 3, 70 * HOUR_MS }, { 12, 4, 2 * HOUR_MS },
};

static int64_t one_run(struct rng *r, size_t of)
{
    return (int64_t)((double)work[of].run_ms * (0.8 + 0.4 * rng_unit(r)));
}

/* By how many times the middle of what is foretold is off, in doublings; a mean over all sorts. */
static double off_by(const struct history *h, bool by_family)
{
    const size_t works = ARRAY_LEN(work);
    double sum = 0;
    for (size_t i = 0; i < works; i++) {
        uint32_t family = by_family ? work[i].family : 0;
        double said = (double)left_ms(h, of_family(1, work[i].user, family), 0, 0.5);
        double real = (double)work[i].run_ms;
        for (double step = MAX(said, real) / MIN(said, real); step > 1; step /= 1.0717734625362931)
            sum += 0.1;
    }
    return sum / (double)works;
}

static void families_are_told_apart_where_a_tenant_mixes_them_and_better_with_age(void)
{
    struct history h;
    struct rng r = { 5 };
    double last = 100;
    history_init(&h);
    for (int runs = 1; runs <= 64; runs++) {
        for (size_t i = 0; i < ARRAY_LEN(work); i++)
            history_learn(&h, of_family(1, work[i].user, work[i].family), 0, one_run(&r, i), true);
        if (runs & (runs - 1))
            continue;
        derive(&h);
        double own = off_by(&h, true), tenants = off_by(&h, false);
        CHECK(own < tenants);
        CHECK(own < last + 0.2);
        CHECK(runs < 4 || own < 0.5 * tenants);
        CHECK(runs < 16 || own < 1);
        last = own;
    }
    history_free(&h);
}

static void a_family_without_an_end_is_as_its_tenants_jobs_are(void)
{
    struct history h;
    history_init(&h);
    for (int i = 0; i < 100; i++)
        history_learn(&h, of_tenant(1), 0, HOUR_MS, true);
    history_learn(&h, of_family(1, 11, 7), 0, 60000, false);
    derive(&h);
    CHECK_INT(h.families, 0);
    CHECK(history_row(&h, of_family(1, 11, 7)) == history_row(&h, of_tenant(1)));
    history_free(&h);
}

/* What was seen once moves it a little, of whatever sort it is. */
static void one_end_is_not_yet_a_rule(void)
{
    struct history h;
    history_init(&h);
    for (int i = 0; i < 100; i++)
        history_learn(&h, of_tenant(1), 0, 10 * HOUR_MS, true);
    history_learn(&h, of_family(1, 11, 7), 0, 30000, true);
    derive(&h);
    int64_t tenants = left_ms(&h, of_tenant(1), 0, 0.5);
    CHECK(left_ms(&h, of_family(1, 11, 7), 0, 0.25) < HOUR_MS);
    CHECK(left_ms(&h, of_family(1, 11, 7), 0, 0.75) > tenants / 2);
    CHECK(left_ms(&h, of_family(1, 11, 7), HOUR_MS, 0.5) > tenants / 2);
    history_free(&h);
}

static void a_user_who_names_each_job_anew_crowds_out_nobody(void)
{
    struct history h;
    history_init(&h);
    history_learn(&h, of_family(1, 11, 7), 0, 60000, true);
    for (uint32_t i = 1; i <= 10000; i++)
        history_learn(&h, of_family(1, 12, i), 0, HOUR_MS, true);
    CHECK_INT(h.families, 1 + HISTORY_OF_A_USER);
    CHECK(history_row(&h, of_family(1, 11, 7))->of.family == 7);
    CHECK(history_row(&h, of_family(1, 12, 10000))->of.family == 10000);
    CHECK(history_row(&h, of_family(1, 12, 9936))->of.family == 0);
    history_free(&h);
}

static void the_family_unheard_of_the_longest_is_forgotten(void)
{
    struct history h, copy;
    history_init(&h);
    for (uint32_t i = 0; i < HISTORY_FAMILIES; i++)
        history_learn(&h, of_family(1, 100 + i, 7), 0, HOUR_MS, true);
    history_learn(&h, of_family(1, 100, 7), 0, HOUR_MS, true); /* the first is heard of again */
    history_copy(&copy, &h);
    uint32_t *order = history_families_by_age(&copy);
    CHECK_INT(copy.family[order[0]].of.user, 101);
    CHECK_INT(copy.family[order[HISTORY_FAMILIES - 1]].of.user, 100);
    free(order);
    history_learn(&copy, of_family(1, 99, 7), 0, HOUR_MS, true);
    CHECK_INT(copy.families, HISTORY_FAMILIES);
    CHECK(history_row(&copy, of_family(1, 99, 7))->of.family == 7);
    CHECK(history_row(&copy, of_family(1, 100, 7))->of.family == 7);
    CHECK(history_row(&copy, of_family(1, 101, 7))->of.family == 0);
    history_free(&h);
    history_free(&copy);
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
    { "families are told apart where a tenant mixes them, and better with age",
      families_are_told_apart_where_a_tenant_mixes_them_and_better_with_age },
    { "a family without an end is as its tenant's jobs are",
      a_family_without_an_end_is_as_its_tenants_jobs_are },
    { "one end is not yet a rule", one_end_is_not_yet_a_rule },
    { "a user who names each job anew crowds out nobody",
      a_user_who_names_each_job_anew_crowds_out_nobody },
    { "the family unheard of the longest is forgotten",
      the_family_unheard_of_the_longest_is_forgotten },
    { "the mean of work is of everybody", the_mean_of_work_is_of_everybody },
};
TEST_CASES(tests)
