#include "simulate/replay.h"

#include <stdio.h>

#include "journal/journal.h"
#include "tests/lib/gen_trace.h"
#include "tests/lib/hand_trace.h"
#include "tests/lib/test.h"

static const char *const every[] = { "nightshift", "fifo",     "sjf",     "qssf", "qssf-noisy",
                                     "srtf",       "tiresias", "bestfit", "fgd" };
static const char *const keeping[] = { "nightshift", "fifo",    "sjf", "qssf",
                                       "qssf-noisy", "bestfit", "fgd" }; /* preempt nothing */

static void check_starts(struct trace *t, const char *policy, const struct hand_row *row,
                         uint32_t n)
{
    struct outcome o = hand_replay(t, policy);
    for (uint32_t i = 0; i < t->jobs; i++)
        for (uint32_t k = 0; k < n; k++)
            if (row[k].id == t->job[i].id && o.start_ms[i] != row[k].start_s * 1000)
                test_fail(__FILE__, __LINE__, "%s: job %llu starts at %lld s, not %d", policy,
                          (unsigned long long)row[k].id, (long long)o.start_ms[i] / 1000,
                          row[k].start_s);
    for (uint32_t i = 0; i < t->jobs; i++)
        CHECK(o.end_ms[i] == o.start_ms[i] + t->job[i].duration_ms);
}

static void schedule_is(uint32_t nodes, const char *policy, const struct hand_row *row, uint32_t n)
{
    AUTO(trace_free) struct trace t = hand_trace(nodes, row, n);
    check_starts(&t, policy, row, n);
}

/* ---- the references ---- */

static void fifo_stops_at_the_first_job_without_a_place(void)
{
    const struct hand_row rows[] = {
        { 1, 0, 8, 100, 0, 0 },
        { 2, 0, 6, 50, 0, 0 },
        { 3, 10, 4, 10, 0, 50 },
        { 4, 20, 1, 5, 0, 50 }, /* two GPUs are free all the time */
    };
    schedule_is(2, "fifo", rows, ARRAY_LEN(rows));
}

static void sjf_lets_the_shortest_go_first_and_stops_there(void)
{
    const struct hand_row rows[] = {
        { 1, 0, 8, 100, 0, 0 },  { 2, 0, 6, 50, 0, 0 },    { 3, 10, 4, 10, 0, 50 },
        { 4, 20, 1, 5, 0, 20 },  { 5, 30, 16, 2, 0, 100 }, /* the shortest, and it blocks */
        { 6, 31, 1, 3, 0, 100 },
    };
    /* Job 5 waits from 30 on and is shorter than job 3, so nothing starts before 100. */
    struct hand_row wanted[ARRAY_LEN(rows)];
    memcpy(wanted, rows, sizeof rows);
    wanted[2].start_s = 102;
    wanted[5].start_s = 102;
    schedule_is(2, "sjf", wanted, ARRAY_LEN(wanted));
}

static void what_ends_frees_its_gpus_for_what_comes_at_that_instant(void)
{
    const struct hand_row rows[] = { { 1, 0, 16, 30, 0, 0 }, { 2, 30, 16, 10, 0, 30 } };
    for (size_t i = 0; i < ARRAY_LEN(keeping); i++)
        schedule_is(2, keeping[i], rows, ARRAY_LEN(rows));
}

static void equal_submit_times_go_by_id(void)
{
    const struct hand_row rows[] = { { 5, 0, 16, 10, 0, 10 }, { 4, 0, 16, 10, 0, 0 } };
    schedule_is(2, "fifo", rows, ARRAY_LEN(rows));
    schedule_is(2, "sjf", rows, ARRAY_LEN(rows)); /* and so do equal durations */
}

static void of_equal_durations_the_earlier_goes_first(void)
{
    const struct hand_row rows[] = { { 9, 0, 16, 10, 0, 0 },
                                     { 8, 1, 16, 7, 0, 10 },
                                     { 7, 2, 16, 7, 0, 17 } };
    schedule_is(2, "sjf", rows, ARRAY_LEN(rows));
}

static void qssf_lets_the_least_service_go_first_and_stops_there(void)
{
    const struct hand_row rows[] = {
        { 1, 0, 8, 100, 0, 0 },
        { 2, 1, 8, 10, 0, 150 }, /* 80 GPU-seconds, and the shortest */
        { 3, 2, 1, 50, 0, 100 }, /* 50 */
        { 4, 3, 1, 90, 0,
          160 }, /* 90: seven GPUs are free from 100 on, but job 2 stands before it */
    };
    schedule_is(1, "qssf", rows, ARRAY_LEN(rows));
}

/* Estimates may be anything, also below 0. */
static void qssf_noisy_goes_by_the_estimate(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 100, 0, 0 },
                                     { 2, 1, 8, 10, 0, 150 },
                                     { 3, 2, 1, 50, 0, 100 },
                                     { 4, 3, 8, 20, 0, 160 } };
    const int64_t estimate_ms[] = { 0, -1000, -9000, 5000 };
    AUTO(trace_free) struct trace t = hand_trace(1, rows, ARRAY_LEN(rows));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        t.job[i].estimate_ms = estimate_ms[i]; /* by GPUs: 0, -8, -9, 40 s */
    check_starts(&t, "qssf-noisy", rows, ARRAY_LEN(rows));
}

static void of_equal_service_fewer_gpus_go_first(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 100, 0, 0 },
                                     { 2, 1, 8, 10, 0, 140 },
                                     { 3, 2, 2, 40, 0, 100 } };
    schedule_is(1, "qssf", rows, ARRAY_LEN(rows));
}

/* As the authors' simulator has it: only jobs that have to wait are given a rank. */
static void qssf_ranks_nobody_while_nobody_waits(void)
{
    const struct hand_row rows[] = {
        { 1, 0, 8, 1, 0, 100 }, /* 8 GPU-seconds against 100, but more GPUs */
        { 2, 0, 1, 100, 0, 0 },
        { 3, 50, 8, 2, 0, 101 },
        { 4, 50, 1, 3, 0, 103 }, /* job 1 waits, so these two stand in a queue by rank */
    };
    struct hand_row wanted[ARRAY_LEN(rows)];
    memcpy(wanted, rows, sizeof rows);
    wanted[3].start_s = 50;
    schedule_is(1, "qssf", wanted, ARRAY_LEN(wanted));
}

static void a_job_goes_to_the_tightest_node(void)
{
    const struct hand_row rows[] = {
        { 1, 0, 5, 100, 0, 0 }, /* n0: 3 left */
        { 2, 1, 3, 100, 0, 1 }, /* n0: full, though n1 is empty */
        { 3, 2, 8, 10, 0, 2 },  /* so n1 is whole */
    };
    schedule_is(2, "fifo", rows, ARRAY_LEN(rows));
}

static void a_gang_takes_whole_nodes(void)
{
    const struct hand_row rows[] = {
        { 1, 0, 2, 50, 0, 0 },    /* n0: 6 left */
        { 2, 1, 16, 100, 0, 1 },  /* n1 and n2 */
        { 3, 2, 6, 10, 0, 2 },    /* n0 */
        { 4, 3, 24, 10, 0, 101 }, /* not before all three are empty */
    };
    schedule_is(3, "fifo", rows, ARRAY_LEN(rows));
}

static void the_rest_of_a_gang_goes_to_the_emptiest_node(void)
{
    const struct hand_row rows[] = {
        { 1, 0, 2, 500, 0, 0 },  /* n0: 6 left */
        { 2, 1, 12, 100, 0, 1 }, /* n1, and 4 of n2: not the 6 of n0 */
        { 3, 2, 8, 10, 0, 101 }, /* no node is whole */
        { 4, 3, 6, 10, 0, 101 }, /* n0 would do, but job 3 stands before it */
    };
    schedule_is(3, "fifo", rows, ARRAY_LEN(rows));
}

/* Three replicas of 4 GPUs and 4 CPUs: 8 CPUs of n0 and 4 of n1 are taken. */
static void a_gang_that_asks_for_cpus_takes_them_for_each_replica(void)
{
    const struct hand_row rows[] = { { 1, 0, 12, 100, 0, 0 },
                                     { 2, 1, 0, 50, 0, 1 },
                                     { 3, 2, 0, 50, 0, 51 } };
    AUTO(trace_free) struct trace t = hand_trace(2, rows, ARRAY_LEN(rows));
    for (int i = 0; i < 3; i++)
        t.job[i].request.cpu_milli = 4000;
    check_starts(&t, "fifo", rows, ARRAY_LEN(rows));
}

/* ---- separate clusters ---- */

static void a_tenant_with_nodes_of_its_own_uses_no_others(void)
{
    const struct hand_row rows[] = {
        { 1, 0, 8, 100, 0, 0 },
        { 2, 1, 8, 10, 0, 100 }, /* n1 is idle and belongs to t1 */
        { 3, 50, 8, 10, 1, 50 },
    };
    for (size_t i = 0; i < ARRAY_LEN(keeping); i++) {
        AUTO(trace_free) struct trace t = hand_trace(2, rows, ARRAY_LEN(rows));
        t.node_tenant = arena_array(&t.arena, uint32_t, 2);
        t.node_tenant[1] = 1;
        check_starts(&t, keeping[i], rows, ARRAY_LEN(rows));
    }
}

/* ---- what cannot run ---- */

static void refused(struct trace *t, const char *policy, const char *begin)
{
    struct replay_options o = { .policy = policy, .freeze_cost_milli = 1000 };
    struct report r = { .jobs = 12345 };
    struct outcome jobs = { 0 };
    struct err e = { 0 };
    CHECK(replay_run(t, &o, &r, &jobs, &e) == -1);
    CHECK(e.code == ERR_INVALID && r.jobs == 12345 && !jobs.start_ms);
    if (strncmp(e.msg, begin, strlen(begin)) != 0)
        test_fail(__FILE__, __LINE__, "%s: %s", policy, e.msg);
}

static void a_job_that_can_never_run_is_an_error_that_names_it(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 10, 0, 0 }, { 71, 5, 8, 10, 0, 0 } };
    for (size_t i = 0; i < ARRAY_LEN(every); i++) {
        AUTO(trace_free) struct trace t = hand_trace(2, rows, ARRAY_LEN(rows));
        t.job[1].gpus = t.job[1].request.gpus = 9;
        refused(&t, every[i], "hand, job 71 of the trace: gpus: 9 on one machine");
        t.job[1].gpus = t.job[1].request.gpus = 1;
        t.job[1].models = "H200";
        refused(&t, every[i], "hand, job 71 of the trace: no node has a GPU of model 'H200'");
    }
}

static void a_tenant_without_nodes_cannot_run_its_jobs(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 10, 0, 0 }, { 2, 5, 8, 10, 1, 0 } };
    AUTO(trace_free) struct trace t = hand_trace(2, rows, ARRAY_LEN(rows));
    t.node_tenant = arena_array(&t.arena, uint32_t, 2);
    refused(&t, "fifo", "hand, job 2 of the trace: there are no machines");
    refused(&t, "nightshift", "hand, job 2 of the trace: there are no machines");
}

static void an_unknown_policy_is_refused(void)
{
    const struct hand_row rows[] = { { 1, 0, 8, 10, 0, 0 } };
    AUTO(trace_free) struct trace t = hand_trace(1, rows, 1);
    refused(&t, "lifo", "--policy: 'lifo' is not known");
}

/* What the options and their help name is what can be run. */
static void every_named_policy_is_known(void)
{
    struct str rest = STR(REPLAY_POLICIES), one;
    size_t n = 0;
    for (; rest.n; n++) {
        str_cut(rest, '|', &one, &rest);
        CHECK(n < ARRAY_LEN(every) && str_is(one, every[n]));
    }
    CHECK(n == ARRAY_LEN(every));
}

static void a_trace_without_jobs_is_replayed(void)
{
    AUTO(trace_free) struct trace t = hand_trace(1, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(every); i++)
        hand_replay(&t, every[i]);
}

/* ---- what every replay keeps to ---- */

/* GPUs held at every instant, by a sweep over the stints. */
static void check_never_more_than_there_are(uint64_t seed, const struct trace *t,
                                            const struct outcome *o)
{
    double gpus = 0;
    for (uint32_t i = 0; i < t->nodes; i++)
        gpus += t->node[i].gpus;
    for (uint32_t i = 0; i < t->jobs; i++)
        CHECK_AT(seed, o->start_ms[i] >= t->job[i].submit_ms && o->end_ms[i] != NEVER);
    for (size_t i = 0; i < o->stints; i++) {
        double held = 0;
        CHECK_AT(seed, o->stint[i].from_ms < o->stint[i].to_ms);
        for (size_t k = 0; k < o->stints; k++)
            if (o->stint[k].from_ms <= o->stint[i].from_ms &&
                o->stint[i].from_ms < o->stint[k].to_ms)
                held += o->gpus[o->stint[k].job];
        CHECK_AT(seed, held <= gpus + 1e-6);
    }
}

/* Of each job: its first stint begins with it, its last ends with it, none begins before the one
 * before it has ended, there is one more than freezes, and together they are its work or more. */
static void check_stints(uint64_t seed, const struct trace *t, const struct outcome *o)
{
    for (uint32_t i = 0; i < t->jobs; i++) {
        int64_t until_ms = INT64_MIN, held_ms = 0;
        uint32_t n = 0;
        for (size_t k = 0; k < o->stints; k++) {
            if (o->stint[k].job != i)
                continue;
            CHECK_AT(seed,
                     n ? o->stint[k].from_ms >= until_ms : o->stint[k].from_ms == o->start_ms[i]);
            until_ms = o->stint[k].to_ms;
            held_ms += until_ms - o->stint[k].from_ms;
            n++;
        }
        CHECK_AT(seed, until_ms == o->end_ms[i] && n == o->freezes[i] + 1);
        CHECK_AT(seed, held_ms >= t->job[i].duration_ms);
    }
}

static void every_policy_ends_all_jobs_and_holds_no_more_than_there_is(void)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        AUTO(gen_philly_free) struct gen_philly g;
        gen_philly(seed, &g);
        const struct csv_source vcs = { "vcs", buf_str(&g.vcs) }, jobs = { "j", buf_str(&g.jobs) };
        for (size_t i = 0; i < ARRAY_LEN(every); i++) {
            AUTO(trace_free) struct trace t = { 0 };
            struct err e;
            CHECK_AT(seed, trace_parse_philly(&vcs, &jobs, seed % 2 ? 0 : 7, &t, &e) == 0);
            struct outcome o = hand_replay(&t, every[i]);
            check_never_more_than_there_are(seed, &t, &o);
            check_stints(seed, &t, &o);
        }
    }
}

static void the_same_trace_gives_the_same_schedule(void)
{
    for (size_t i = 0; i < ARRAY_LEN(every); i++) {
        AUTO(trace_free) struct trace t = { 0 };
        struct err e;
        CHECK(trace_make_lab(3, 1, false, &t, &e) == 0);
        struct outcome a = hand_replay(&t, every[i]), b = hand_replay(&t, every[i]);
        CHECK(memcmp(a.start_ms, b.start_ms, t.jobs * sizeof *a.start_ms) == 0);
        CHECK(memcmp(a.end_ms, b.end_ms, t.jobs * sizeof *a.end_ms) == 0);
    }
}

/* ---- the journal of a replay, recounted GPU by GPU ---- */

#define LAB_JOBS_MAX 8192
struct recount {
    const struct trace *t;
    const struct outcome *o;
    uint32_t used[64][GPUS_PER_NODE_MAX];
    struct slot slots[LAB_JOBS_MAX][8];
    uint32_t n[LAB_JOBS_MAX];
    bool started[LAB_JOBS_MAX];
    uint32_t places, ends;
};

static void recount_slots(struct recount *c, uint64_t job, int sign)
{
    for (uint32_t s = 0; s < c->n[job]; s++) {
        const struct slot *slot = &c->slots[job][s];
        CHECK(slot->node < c->t->nodes);
        for (uint32_t g = 0; g < GPUS_PER_NODE_MAX; g++) {
            if (!(slot->gpu_mask >> g & 1))
                continue;
            CHECK(g < c->t->node[slot->node].gpus);
            c->used[slot->node][g] += (uint32_t)(sign * (int)slot->milli);
            CHECK(c->used[slot->node][g] <= GPU_MILLI);
        }
    }
}

static void recount_event(struct recount *c, const struct event *ev)
{
    if (ev->kind == EVENT_PLACE) {
        uint64_t job = ev->place.id.v;
        CHECK(job <= c->t->jobs && ev->place.n <= 8 && c->n[job] == 0);
        memcpy(c->slots[job], ev->place.slots, ev->place.n * sizeof *ev->place.slots);
        c->n[job] = ev->place.n;
        CHECK(c->started[job] || ev->t_ms == c->o->start_ms[job - 1]);
        c->started[job] = true;
        recount_slots(c, job, 1);
        c->places++;
    } else if (ev->kind == EVENT_JOB && ev->job.what == JOB_EV_FROZE) {
        recount_slots(c, ev->job.id.v, -1);
        c->n[ev->job.id.v] = 0;
        c->places--;
    } else if (ev->kind == EVENT_JOB && ev->job.what == JOB_EV_EXITED_OK) {
        CHECK(ev->t_ms == c->o->end_ms[ev->job.id.v - 1]);
        recount_slots(c, ev->job.id.v, -1);
        c->ends++;
    }
}

static void the_journal_of_a_lab_never_gives_a_gpu_twice(void)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        AUTO(trace_free) struct trace t = { 0 };
        AUTO(buf_free) struct buf journal = BUF(64u << 20);
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(free_p) struct recount *c = xcalloc(1, sizeof *c);
        struct replay_options o = { .policy = "nightshift",
                                    .freeze_cost_milli = 1000,
                                    .journal = &journal };
        struct report r;
        struct outcome jobs;
        struct event ev;
        struct err e;
        CHECK(trace_make_lab(seed, 3, false, &t, &e) == 0 && t.jobs < LAB_JOBS_MAX);
        CHECK(replay_run(&t, &o, &r, &jobs, &e) == 0);
        c->t = &t;
        c->o = &jobs;
        struct str text = buf_str(&journal), line;
        CHECK(str_next_line(&text, &line) && journal_read_header(line, &e) == 0);
        while (str_next_line(&text, &line)) {
            arena_reset(&a);
            CHECK_AT(seed, journal_read(line, &a, &ev, &e) == 0);
            recount_event(c, &ev);
        }
        CHECK_AT(seed, c->places == t.jobs && c->ends == t.jobs && r.unfinished == 0);
    }
}

static void a_limit_of_a_tenant_is_kept(void)
{
    AUTO(trace_free) struct trace t = { 0 };
    struct err e;
    uint32_t limited = NONE;
    CHECK(trace_make_lab(1, 7, false, &t, &e) == 0);
    for (uint32_t i = 0; i < t.tenants; i++)
        if (t.tenant[i].limit.of[RES_GPU] != NO_LIMIT)
            limited = i;
    CHECK(limited != NONE);
    struct outcome o = hand_replay(&t, "nightshift");
    for (uint32_t i = 0; i < t.jobs; i++) {
        double held = 0;
        for (uint32_t k = 0; k < t.jobs && t.job[i].tenant == limited; k++)
            if (t.job[k].tenant == limited && o.start_ms[k] <= o.start_ms[i] &&
                o.start_ms[i] < o.end_ms[k])
                held += o.gpus[k];
        CHECK(held * GPU_MILLI <= (double)t.tenant[limited].limit.of[RES_GPU]);
    }
}

static const struct test tests[] = {
    { "fifo stops at the first job without a place", fifo_stops_at_the_first_job_without_a_place },
    { "sjf lets the shortest go first and stops there",
      sjf_lets_the_shortest_go_first_and_stops_there },
    { "what ends frees its GPUs for what comes at that instant",
      what_ends_frees_its_gpus_for_what_comes_at_that_instant },
    { "equal submit times go by id", equal_submit_times_go_by_id },
    { "of equal durations the earlier goes first", of_equal_durations_the_earlier_goes_first },
    { "qssf lets the least service go first and stops there",
      qssf_lets_the_least_service_go_first_and_stops_there },
    { "qssf-noisy goes by the estimate", qssf_noisy_goes_by_the_estimate },
    { "of equal service fewer GPUs go first", of_equal_service_fewer_gpus_go_first },
    { "qssf ranks nobody while nobody waits", qssf_ranks_nobody_while_nobody_waits },
    { "a job goes to the tightest node", a_job_goes_to_the_tightest_node },
    { "a gang takes whole nodes", a_gang_takes_whole_nodes },
    { "the rest of a gang goes to the emptiest node",
      the_rest_of_a_gang_goes_to_the_emptiest_node },
    { "a gang that asks for CPUs takes them for each replica",
      a_gang_that_asks_for_cpus_takes_them_for_each_replica },
    { "a tenant with nodes of its own uses no others",
      a_tenant_with_nodes_of_its_own_uses_no_others },
    { "a job that can never run is an error that names it",
      a_job_that_can_never_run_is_an_error_that_names_it },
    { "a tenant without nodes cannot run its jobs", a_tenant_without_nodes_cannot_run_its_jobs },
    { "an unknown policy is refused", an_unknown_policy_is_refused },
    { "every named policy is known", every_named_policy_is_known },
    { "a trace without jobs is replayed", a_trace_without_jobs_is_replayed },
    { "every policy ends all jobs and holds no more than there is",
      every_policy_ends_all_jobs_and_holds_no_more_than_there_is },
    { "the same trace gives the same schedule", the_same_trace_gives_the_same_schedule },
    { "the journal of a lab never gives a GPU twice",
      the_journal_of_a_lab_never_gives_a_gpu_twice },
    { "a limit of a tenant is kept", a_limit_of_a_tenant_is_kept },
};
TEST_CASES(tests)
