#include "simulate/scale.h"

#include <math.h>

#include "base/json.h"
#include "tests/lib/test.h"

static struct scale_result run(uint32_t nodes, uint32_t jobs, uint64_t seed)
{
    struct scale_result r = { 0 };
    struct err e = { 0 };
    if (scale_run(nodes, jobs, seed, &r, &e) < 0)
        test_fail(__FILE__, __LINE__, "%u nodes, %u jobs: %s", nodes, jobs, e.msg);
    return r;
}

static void a_small_run_gives_plausible_figures(void)
{
    struct scale_result r = run(40, 500, 1);
    const double figures[] = { r.full_pass_ms,  r.considered_per_s, r.placed_per_s, r.submit_ms,
                               r.submit_p99_ms, r.end_ms,           r.end_p99_ms,   r.rss_mib };
    for (size_t i = 0; i < ARRAY_LEN(figures); i++)
        CHECK(isfinite(figures[i]) && figures[i] > 0);
    CHECK(isfinite(r.bytes_per_job));
    CHECK(r.nodes == 40 && r.jobs == 500);
    CHECK(r.placed > 0 && r.placed < 500); /* half of the cluster was free, the queue is longer */
    CHECK(r.considered > 0 && r.cells > 1 && r.cells <= 40 && r.shapes > 1);
}

static void the_same_seed_places_the_same_jobs(void)
{
    struct scale_result a = run(40, 300, 7), b = run(40, 300, 7), c = run(40, 300, 8);
    CHECK(a.placed == b.placed && a.cells == b.cells && a.shapes == b.shapes);
    CHECK(a.considered == b.considered);
    CHECK(a.placed != c.placed || a.cells != c.cells || a.shapes != c.shapes);
}

static void the_smallest_sizes_run_too(void)
{
    for (uint32_t nodes = 4; nodes <= 36; nodes += 8)
        for (uint64_t seed = 1; seed <= 3; seed++)
            CHECK(isfinite(run(nodes, 1, seed).full_pass_ms));
}

static void the_json_has_the_figures_as_numbers(void)
{
    static const char *const keys[] = { "full_pass_ms", "incremental_submit_ms",
                                        "incremental_end_ms", "why_ms", "rss_mib" };
    AUTO(buf_free) struct buf b = BUF(65536);
    struct scale_result r = run(32, 50, 1);
    struct err e;
    scale_json(&r, &b);
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&b), &e);
    CHECK(d && b.p[b.n - 1] == '\n');
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        double v = -1;
        CHECK(json_get_f64(json_root(d), keys[i], 0, 1e9, &v, &e) == 0 && v >= 0);
    }
}

static void the_yardstick_takes_its_time(void)
{
    double ms = scale_yardstick_ms();
    CHECK(isfinite(ms) && ms > 0.1);
}

static const struct test tests[] = {
    { "a small run gives plausible figures", a_small_run_gives_plausible_figures },
    { "the same seed places the same jobs", the_same_seed_places_the_same_jobs },
    { "the smallest sizes run too", the_smallest_sizes_run_too },
    { "the JSON has the figures as numbers", the_json_has_the_figures_as_numbers },
    { "the yardstick takes its time", the_yardstick_takes_its_time },
};
TEST_CASES(tests)
