#include "simulate/replay.h"

#include "tests/lib/hand_trace.h"
#include "tests/lib/test.h"

/* What is wanted: who had GPUs from when to when, in the order in which that ended.  A job's end is
 * seen a second after its work is done. */
struct had {
    uint64_t id;
    int from_s, to_s;
};

static void check_stints(const struct trace *t, const struct outcome *o, const struct had *want,
                         size_t n)
{
    CHECK(o->stints == n);
    for (size_t k = 0; k < n; k++) {
        const struct stint *s = &o->stint[k];
        if (t->job[s->job].id != want[k].id || s->from_ms != want[k].from_s * 1000 ||
            s->to_ms != want[k].to_s * 1000)
            test_fail(__FILE__, __LINE__, "stint %zu: job %llu from %lld to %lld s", k,
                      (unsigned long long)t->job[s->job].id, (long long)s->from_ms / 1000,
                      (long long)s->to_ms / 1000);
    }
}

/* Starts, ends and freezes are those of the stints. */
static void check_jobs(const struct trace *t, const struct outcome *o, const struct had *want,
                       size_t n)
{
    for (uint32_t i = 0; i < t->jobs; i++) {
        const struct had *first = NULL, *last = NULL;
        uint32_t times = 0;
        for (size_t k = 0; k < n; k++)
            if (want[k].id == t->job[i].id) {
                first = first ? first : &want[k];
                last = &want[k];
                times++;
            }
        CHECK(first && o->start_ms[i] == first->from_s * 1000);
        CHECK(last && o->end_ms[i] == last->to_s * 1000);
        CHECK(o->freezes[i] == times - 1);
    }
}

static void check_trace(struct trace *t, const char *policy, const struct had *want, size_t n)
{
    struct outcome o = hand_replay(t, policy);
    check_stints(t, &o, want, n);
    check_jobs(t, &o, want, n);
}

#define RUNS(nodes, policy, rows, want)                                                            \
    do {                                                                                           \
        AUTO(trace_free) struct trace t = hand_trace(nodes, rows, ARRAY_LEN(rows));                \
        check_trace(&t, policy, want, ARRAY_LEN(want));                                            \
    } while (0)

/* ---- SRTF ---- */

static void the_shorter_preempts_and_the_other_pays(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 100, 0, 0 }, { 2, 10, 8, 20, 0, 0 } };
    const struct had want[] = { { 1, 0, 10 }, { 2, 10, 31 }, { 1, 31, 152 } }; /* 90 + 30 left */
    RUNS(1, "srtf", rows, want);
}

static void one_gpu_pays_less(void)
{
    const struct hand_row rows[] = { { 1, 0, 1, 100, 0, 0 }, { 2, 10, 8, 20, 0, 0 } };
    const struct had want[] = { { 1, 0, 10 }, { 2, 10, 31 }, { 1, 31, 129 } }; /* 90 + 7 left */
    RUNS(1, "srtf", rows, want);
}

static void more_than_a_node_pays_more(void)
{
    const struct hand_row rows[] = { { 1, 0, 16, 100, 0, 0 }, { 2, 10, 16, 20, 0, 0 } };
    const struct had want[] = { { 1, 0, 10 }, { 2, 10, 31 }, { 1, 31, 182 } }; /* 90 + 60 left */
    RUNS(2, "srtf", rows, want);
}

static void the_longer_waits(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 100, 0, 0 }, { 2, 10, 8, 95, 0, 0 } };
    const struct had want[] = { { 1, 0, 101 }, { 2, 101, 197 } }; /* 90 left against 95 */
    RUNS(1, "srtf", rows, want);
}

/* At 40 both need 60 more. */
static void of_equal_rest_the_waiting_one_goes_first(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 100, 0, 0 }, { 2, 40, 8, 60, 0, 0 } };
    const struct had want[] = { { 1, 0, 40 }, { 2, 40, 101 }, { 1, 101, 192 } };
    RUNS(1, "srtf", rows, want);
}

/* From 20 on jobs 1 (80 + 30 left) and 3 need the same; job 1 has joined the queue last. */
static void of_equal_rest_the_earlier_in_the_queue_goes_first(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 100, 0, 0 },
                                     { 2, 20, 8, 10, 0, 0 },
                                     { 3, 5, 8, 110, 0, 0 } };
    const struct had want[] = { { 1, 0, 20 }, { 2, 20, 31 }, { 3, 31, 142 }, { 1, 142, 253 } };
    RUNS(1, "srtf", rows, want);
}

static void a_job_that_asks_for_more_than_is_left_is_passed_over(void)
{
    const struct hand_row rows[] = {
        { 1, 0, 6, 50, 0, 0 },
        { 2, 0, 4, 60, 0, 0 }, /* two are left */
        { 3, 0, 2, 70, 0, 0 },
    };
    const struct had want[] = { { 1, 0, 51 }, { 3, 0, 71 }, { 2, 51, 112 } };
    RUNS(1, "srtf", rows, want);
}

/* Six GPUs are free, three on each node: job 3 may have six, so nobody is preempted for it. */
static void nobody_is_preempted_for_a_job_that_lacks_only_a_node(void)
{
    const struct hand_row rows[] = { { 1, 0, 5, 1000, 0, 0 },
                                     { 2, 0, 5, 2000, 0, 0 },
                                     { 3, 10, 6, 50, 0, 0 } };
    const struct had want[] = { { 1, 0, 1001 }, { 3, 1001, 1052 }, { 2, 0, 2001 } };
    RUNS(2, "srtf", rows, want);
}

static void a_job_may_be_preempted_again(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 100, 0, 0 },
                                     { 2, 10, 8, 20, 0, 0 },
                                     { 3, 40, 8, 5, 0, 0 } };
    const struct had want[] = {
        { 1, 0, 10 },  { 2, 10, 31 },  { 1, 31, 40 }, /* 120 - 9 + 30 left */
        { 3, 40, 46 }, { 1, 46, 188 },
    };
    RUNS(1, "srtf", rows, want);
}

/* ---- Tiresias ---- */

static void tiresias_looks_once_a_minute(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 30, 0, 0 }, { 2, 1, 8, 30, 0, 0 } };
    const struct had want[] = { { 1, 0, 31 }, { 2, 60, 91 } };
    RUNS(1, "tiresias", rows, want);
}

static void a_trace_may_begin_before_time_0(void)
{
    const struct hand_row rows[] = { { 1, -90, 8, 30, 0, 0 }, { 2, -60, 4, 30, 0, 0 } };
    const struct had want[] = { { 1, -60, -29 }, { 2, 0, 31 } };
    RUNS(1, "tiresias", rows, want);
}

/* Within a class it is first come, first served, whoever is shorter. */
static void in_a_class_nobody_is_preempted_for_a_later_job(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 1000, 0, 0 }, { 2, 30, 8, 10, 0, 0 } };
    const struct had want[] = { { 1, 0, 1001 }, { 2, 1020, 1031 } };
    RUNS(1, "tiresias", rows, want);
}

/* Eight GPUs have had 5 hours after 2250 s; the next look is at 2280. */
static void who_had_5_gpu_hours_gives_way(void)
{
    const struct hand_row rows[] = {
        { 1, 0, 8, 5000, 0, 0 },
        { 2, 100, 8, 100, 0, 0 },
        { 3, 3000, 8, 100, 0, 0 }, /* job 1 has not lost what it had */
    };
    const struct had want[] = {
        { 1, 0, 2280 },    /* 5000 - 2280 + 30 left */
        { 2, 2280, 2381 }, /* and a look at 2400 */
        { 1, 2400, 3000 }, /* 2750 - 600 + 30 left */
        { 3, 3000, 3101 }, { 1, 3120, 5301 },
    };
    RUNS(1, "tiresias", rows, want);
}

/* At 18000 s, when job 3 is let in, job 1 has had exactly 5 GPU-hours. */
static void exactly_5_gpu_hours_is_still_the_first_class(void)
{
    const struct hand_row rows[] = { { 1, 0, 1, 40000, 0, 0 },
                                     { 2, 100, 8, 100, 0, 0 },
                                     { 3, 17950, 1, 10, 0, 0 } };
    const struct had want[] = {
        { 3, 18000, 18011 }, { 1, 0, 18060 }, { 2, 18060, 18161 }, { 1, 18180, 40128 }
    };
    RUNS(1, "tiresias", rows, want);
}

/* Job 1 is done after 2279.5 s, which is seen at 2280.5; at 2280 it has to give way. */
static void a_job_may_be_preempted_before_its_end_is_seen(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 2280, 0, 0 }, { 2, 100, 8, 100, 0, 0 } };
    const struct had want[] = { { 1, 0, 2280 }, { 2, 2280, 2381 }, { 1, 2400, 2431 } };
    AUTO(trace_free) struct trace t = hand_trace(1, rows, ARRAY_LEN(rows));
    t.job[0].duration_ms = 2279500;
    check_trace(&t, "tiresias", want, ARRAY_LEN(want));
}

/* Both are in the second class when job 1 comes back: it came first. */
static void in_the_second_class_the_earlier_takes_its_gpus_back(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 3000, 0, 0 }, { 2, 100, 8, 6000, 0, 0 } };
    const struct had want[] = {
        { 1, 0, 2280 },    /* 3000 - 2280 + 30 = 750 left */
        { 2, 2280, 4560 }, /* 6000 - 2280 + 30 = 3750 left */
        { 1, 4560, 5311 },
        { 2, 5340, 9091 },
    };
    RUNS(1, "tiresias", rows, want);
}

/* ---- both ---- */

static void a_tenant_with_nodes_of_its_own_preempts_on_no_others(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 100, 0, 0 },
                                     { 2, 0, 8, 50, 1, 0 },
                                     { 3, 10, 8, 20, 1, 0 } };
    const struct had want[] = { { 1, 0, 101 }, { 2, 0, 10 }, { 3, 10, 31 }, { 2, 31, 102 } };
    AUTO(trace_free) struct trace t = hand_trace(2, rows, ARRAY_LEN(rows));
    t.node_tenant = arena_array(&t.arena, uint32_t, 2);
    t.node_tenant[1] = 1;
    check_trace(&t, "srtf", want, ARRAY_LEN(want));
}

/* Half GPUs count as halves: sixteen of them may run on a node of eight. */
static void shares_count_by_what_they_take(void)
{
    struct hand_row rows[17];
    for (uint32_t i = 0; i < ARRAY_LEN(rows); i++)
        rows[i] = (struct hand_row){ .id = i + 1, .duration_s = 10 + (int)i };
    AUTO(trace_free) struct trace t = hand_trace(1, rows, ARRAY_LEN(rows));
    for (uint32_t i = 0; i < ARRAY_LEN(rows); i++)
        t.job[i].request.gpu_milli = 500;
    struct outcome o = hand_replay(&t, "srtf");
    for (uint32_t i = 0; i < 16; i++)
        CHECK(o.start_ms[i] == 0 && o.end_ms[i] == t.job[i].duration_ms + 1000);
    CHECK(o.start_ms[16] == 11000);
}

static const struct test tests[] = {
    { "the shorter preempts and the other pays", the_shorter_preempts_and_the_other_pays },
    { "one GPU pays less", one_gpu_pays_less },
    { "more than a node pays more", more_than_a_node_pays_more },
    { "the longer waits", the_longer_waits },
    { "of equal rest the waiting one goes first", of_equal_rest_the_waiting_one_goes_first },
    { "of equal rest the earlier in the queue goes first",
      of_equal_rest_the_earlier_in_the_queue_goes_first },
    { "a job that asks for more than is left is passed over",
      a_job_that_asks_for_more_than_is_left_is_passed_over },
    { "nobody is preempted for a job that lacks only a node",
      nobody_is_preempted_for_a_job_that_lacks_only_a_node },
    { "a job may be preempted again", a_job_may_be_preempted_again },
    { "Tiresias looks once a minute", tiresias_looks_once_a_minute },
    { "a trace may begin before time 0", a_trace_may_begin_before_time_0 },
    { "in a class nobody is preempted for a later job",
      in_a_class_nobody_is_preempted_for_a_later_job },
    { "who had 5 GPU-hours gives way", who_had_5_gpu_hours_gives_way },
    { "exactly 5 GPU-hours is still the first class",
      exactly_5_gpu_hours_is_still_the_first_class },
    { "a job may be preempted before its end is seen",
      a_job_may_be_preempted_before_its_end_is_seen },
    { "in the second class the earlier takes its GPUs back",
      in_the_second_class_the_earlier_takes_its_gpus_back },
    { "a tenant with nodes of its own preempts on no others",
      a_tenant_with_nodes_of_its_own_preempts_on_no_others },
    { "shares count by what they take", shares_count_by_what_they_take },
};
TEST_CASES(tests)
