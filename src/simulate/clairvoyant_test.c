/* Lent machines: the clairvoyant schedule and what is measured by it, on worlds small enough to
 * count by hand; and the lab's week with lent desks. */
#include <math.h>

#include "simulate/measure.h"
#include "tests/lib/hand_trace.h"
#include "tests/lib/test.h"

#define HOUR_S 3600
#define HOUR_MS INT64_C(3600000)
#define BAR 0.90 /* of a clairvoyant schedule's harvest */

/* The first node is lent from 01:00 to 02:00. */
static void lend_first(struct trace *t)
{
    t->node[0].pool = STR("desks");
    t->windows = 1;
    t->window = arena_array(&t->arena, struct trace_window, 1);
    t->window[0] = (struct trace_window){ "desks", "Mon-Sun 01:00-02:00" };
}

static void it_works_lent_machines_while_they_are_open(void)
{
    static const struct hand_row rows[] = {
        { 1, 0, 8, 2 * HOUR_S, 0, 0 },
        { 2, 0, 8, 3 * HOUR_S, 0, 0 }, /* waits for the window, and goes on elsewhere after it */
    };
    struct trace t = hand_trace(2, rows, ARRAY_LEN(rows));
    lend_first(&t);
    CHECK(fabs(clairvoyant_hours(&t, 0, 4 * HOUR_MS) - 8) < 1e-9);
    CHECK(fabs(clairvoyant_hours(&t, 0, HOUR_MS + HOUR_MS / 2) - 4) < 1e-9);
    trace_free(&t);
}

static void it_fills_lent_machines_first_and_moves_nothing_without_need(void)
{
    static const struct hand_row rows[] = {
        { 1, 0, 2, 2 * HOUR_S, 0, 0 },      /* stays where it is */
        { 2, HOUR_S, 1, HOUR_S / 2, 0, 0 }, /* comes while the lent one is open */
    };
    struct trace t = hand_trace(2, rows, ARRAY_LEN(rows));
    lend_first(&t);
    CHECK(fabs(clairvoyant_hours(&t, 0, 2 * HOUR_MS) - 0.5) < 1e-9); /* only the second job */
    trace_free(&t);
}

static void a_shorter_job_goes_first(void)
{
    static const struct hand_row rows[] = {
        { 1, HOUR_S, 8, 2 * HOUR_S, 0, 0 },
        { 2, HOUR_S, 8, HOUR_S / 4, 0, 0 },
        { 3, HOUR_S, 8, HOUR_S / 2, 0, 0 },
    };
    struct trace t = hand_trace(2, rows, ARRAY_LEN(rows));
    lend_first(&t);
    /* The second job on the lent node, then the first; the third on the other. */
    CHECK(fabs(clairvoyant_hours(&t, HOUR_MS, 2 * HOUR_MS) - 8) < 1e-9);
    t.windows = 0; /* and nothing is lent any more */
    t.node[0].pool = STR("");
    CHECK(clairvoyant_hours(&t, 0, 4 * HOUR_MS) <= 0);
    trace_free(&t);
}

static void what_is_held_outside_a_window_is_counted(void)
{
    static const struct hand_row rows[] = { { 1, 0, 2, HOUR_S, 0, 0 },
                                            { 2, 3 * HOUR_S, 1, HOUR_S, 0, 0 } };
    struct trace t = hand_trace(2, rows, ARRAY_LEN(rows));
    struct report r = { 0 };
    lend_first(&t);
    struct outcome o = outcome_new(&t);
    outcome_lend(&t, &o, &(struct lease){ 0, 2, HOUR_MS + HOUR_MS / 2, 2 * HOUR_MS + 60000 });
    measure_lent(&t, &o, &r);
    CHECK(fabs(r.outside_window_s - 120) < 1e-9);
    CHECK(fabs(r.harvest - 2 * (0.5 + 1.0 / 60)) < 1e-9);
    t.windows = 0;
    measure_lent(&t, &o, &r);
    CHECK(isnan(r.harvest) && isnan(r.harvest_ratio) && isnan(r.outside_window_s));
    trace_free(&t);
}

/* Each job held its GPUs for its run time and what its freezes cost, no more and no less. */
static void check_work(uint64_t seed, const struct trace *t, const struct outcome *o)
{
    const struct replay_options opt = { .policy = "nightshift", .freeze_cost_milli = 1000 };
    AUTO(free_p) int64_t *held_ms = xcalloc((size_t)t->jobs + 1, sizeof *held_ms);
    for (size_t k = 0; k < o->stints; k++)
        held_ms[o->stint[k].job] += o->stint[k].to_ms - o->stint[k].from_ms;
    for (uint32_t i = 0; i < t->jobs; i++)
        CHECK_AT(seed, held_ms[i] == t->job[i].duration_ms +
                                         o->freezes[i] * replay_freeze_ms(&opt, &t->job[i]));
}

static void lent_desks_are_back_in_time_and_nothing_is_lost(void)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        AUTO(trace_free) struct trace t = { 0 };
        const struct replay_options o = { .policy = "nightshift", .freeze_cost_milli = 1000 };
        struct report r;
        struct outcome jobs;
        struct err e;
        CHECK_AT(seed, trace_make_lab(seed, 7, true, &t, &e) == 0);
        CHECK_AT(seed, replay_run(&t, &o, &r, &jobs, &e) == 0);
        CHECK_AT(seed, r.unfinished == 0 && r.outside_window_s <= 0);
        CHECK_AT(seed, r.harvest > 500 && r.harvest_ratio >= BAR);
        check_work(seed, &t, &jobs);
    }
}

static void only_the_core_knows_windows(void)
{
    AUTO(trace_free) struct trace t = { 0 };
    const struct replay_options o = { .policy = "fifo", .freeze_cost_milli = 1000 };
    struct report r;
    struct outcome jobs;
    struct err e;
    CHECK(trace_make_lab(1, 1, true, &t, &e) == 0);
    CHECK(replay_run(&t, &o, &r, &jobs, &e) < 0 && e.code == ERR_INVALID && e.hint[0]);
}

static const struct test tests[] = {
    { "it works lent machines while they are open", it_works_lent_machines_while_they_are_open },
    { "it fills lent machines first and moves nothing without need",
      it_fills_lent_machines_first_and_moves_nothing_without_need },
    { "a shorter job goes first", a_shorter_job_goes_first },
    { "what is held outside a window is counted", what_is_held_outside_a_window_is_counted },
    { "lent desks are back in time and nothing is lost",
      lent_desks_are_back_in_time_and_nothing_is_lost },
    { "only the core knows windows", only_the_core_knows_windows },
};
TEST_CASES(tests)
