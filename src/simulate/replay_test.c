#include "simulate/replay.h"

#include <stdio.h>

#include "journal/journal.h"
#include "tests/lib/gen_trace.h"
#include "tests/lib/test.h"

/* ---- traces by hand: nodes of 8 GPUs and 8 CPUs, jobs in rows ---- */

struct row {
    uint64_t id;
    int submit_s;
    uint32_t gpus;
    int duration_s;
    uint32_t tenant;
    int start_s; /* wanted */
};

static void add_tenants(struct trace *t, uint32_t n)
{
    t->tenant = arena_array(&t->arena, struct trace_tenant, n);
    t->tenants = n;
    for (uint32_t i = 0; i < n; i++)
        t->tenant[i] = (struct trace_tenant){ .name = arena_printf(&t->arena, "t%u", i),
                                              .parent = "",
                                              .weight_milli = 1000,
                                              .limit = AMOUNTS_NO_LIMIT };
}

static struct trace_job make_job(const struct row *r, uint32_t nodes)
{
    const struct trace_rack racks[2] = { { nodes, 8 } };
    struct trace_job j = { .id = r->id,
                           .submit_ms = r->submit_s * 1000,
                           .duration_ms = r->duration_s * 1000,
                           .tenant = r->tenant,
                           .user = "u",
                           .models = "",
                           .gpus = r->gpus,
                           .priority = PRIO_NORMAL,
                           .request = { .replicas = 1 } };
    uint32_t each = r->gpus;
    CHECK(r->gpus == 0 || trace_split(r->gpus, racks, &j.request.replicas, &each));
    j.request.gpus = (uint16_t)each;
    j.request.layout = j.request.replicas > 1 ? LAYOUT_FEWEST : LAYOUT_PACK;
    return j;
}

static struct trace by_hand(uint32_t nodes, const struct row *row, uint32_t n)
{
    struct trace t = { .name = "hand", .nodes = nodes, .jobs = n };
    struct err e = { 0 };
    add_tenants(&t, 2);
    t.node = arena_array(&t.arena, struct event_node, nodes);
    for (uint32_t i = 0; i < nodes; i++)
        t.node[i] = (struct event_node){ .name = str_of(arena_printf(&t.arena, "n%u", i)),
                                         .model = STR("gpu"),
                                         .gpus = 8,
                                         .gpu_mem_mib = 1000,
                                         .cpu_milli = 8000,
                                         .mem_mib = 8000 };
    t.job = arena_array(&t.arena, struct trace_job, n);
    for (uint32_t i = 0; i < n; i++)
        t.job[i] = make_job(&row[i], nodes);
    CHECK(trace_finish(&t, &e) == 0);
    return t;
}

static struct outcome replay(struct trace *t, const char *policy)
{
    struct replay_options o = { .policy = policy };
    struct report r;
    struct outcome jobs;
    struct err e = { 0 };
    if (replay_run(t, &o, &r, &jobs, &e) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", policy, e.msg);
    return jobs;
}

static void check_starts(struct trace *t, const char *policy, const struct row *row, uint32_t n)
{
    struct outcome o = replay(t, policy);
    for (uint32_t i = 0; i < t->jobs; i++)
        for (uint32_t k = 0; k < n; k++)
            if (row[k].id == t->job[i].id && o.start_ms[i] != row[k].start_s * 1000)
                test_fail(__FILE__, __LINE__, "%s: job %llu starts at %lld s, not %d", policy,
                          (unsigned long long)row[k].id, (long long)o.start_ms[i] / 1000,
                          row[k].start_s);
    for (uint32_t i = 0; i < t->jobs; i++)
        CHECK(o.end_ms[i] == o.start_ms[i] + t->job[i].duration_ms);
}

static void schedule_is(uint32_t nodes, const char *policy, const struct row *row, uint32_t n)
{
    AUTO(trace_free) struct trace t = by_hand(nodes, row, n);
    check_starts(&t, policy, row, n);
}

/* ---- the references ---- */

static void fifo_stops_at_the_first_job_without_a_place(void)
{
    const struct row rows[] = {
        { 1, 0, 8, 100, 0, 0 },
        { 2, 0, 6, 50, 0, 0 },
        { 3, 10, 4, 10, 0, 50 },
        { 4, 20, 1, 5, 0, 50 }, /* two GPUs are free all the time */
    };
    schedule_is(2, "fifo", rows, ARRAY_LEN(rows));
}

static void sjf_lets_the_shortest_go_first_and_stops_there(void)
{
    const struct row rows[] = {
        { 1, 0, 8, 100, 0, 0 },  { 2, 0, 6, 50, 0, 0 },    { 3, 10, 4, 10, 0, 50 },
        { 4, 20, 1, 5, 0, 20 },  { 5, 30, 16, 2, 0, 100 }, /* the shortest, and it blocks */
        { 6, 31, 1, 3, 0, 100 },
    };
    /* Job 5 waits from 30 on and is shorter than job 3, so nothing starts before 100. */
    struct row wanted[ARRAY_LEN(rows)];
    memcpy(wanted, rows, sizeof rows);
    wanted[2].start_s = 102;
    wanted[5].start_s = 102;
    schedule_is(2, "sjf", wanted, ARRAY_LEN(wanted));
}

static void what_ends_frees_its_gpus_for_what_comes_at_that_instant(void)
{
    const struct row rows[] = { { 1, 0, 16, 30, 0, 0 }, { 2, 30, 16, 10, 0, 30 } };
    schedule_is(2, "fifo", rows, ARRAY_LEN(rows));
    schedule_is(2, "sjf", rows, ARRAY_LEN(rows));
    schedule_is(2, "bestfit", rows, ARRAY_LEN(rows));
    schedule_is(2, "fgd", rows, ARRAY_LEN(rows));
    schedule_is(2, "nightshift", rows, ARRAY_LEN(rows));
}

static void equal_submit_times_go_by_id(void)
{
    const struct row rows[] = { { 5, 0, 16, 10, 0, 10 }, { 4, 0, 16, 10, 0, 0 } };
    schedule_is(2, "fifo", rows, ARRAY_LEN(rows));
    schedule_is(2, "sjf", rows, ARRAY_LEN(rows)); /* and so do equal durations */
}

static void of_equal_durations_the_earlier_goes_first(void)
{
    const struct row rows[] = { { 9, 0, 16, 10, 0, 0 },
                                { 8, 1, 16, 7, 0, 10 },
                                { 7, 2, 16, 7, 0, 17 } };
    schedule_is(2, "sjf", rows, ARRAY_LEN(rows));
}

static void a_job_goes_to_the_tightest_node(void)
{
    const struct row rows[] = {
        { 1, 0, 5, 100, 0, 0 }, /* n0: 3 left */
        { 2, 1, 3, 100, 0, 1 }, /* n0: full, though n1 is empty */
        { 3, 2, 8, 10, 0, 2 },  /* so n1 is whole */
    };
    schedule_is(2, "fifo", rows, ARRAY_LEN(rows));
}

static void a_gang_takes_whole_nodes(void)
{
    const struct row rows[] = {
        { 1, 0, 2, 50, 0, 0 },    /* n0: 6 left */
        { 2, 1, 16, 100, 0, 1 },  /* n1 and n2 */
        { 3, 2, 6, 10, 0, 2 },    /* n0 */
        { 4, 3, 24, 10, 0, 101 }, /* not before all three are empty */
    };
    schedule_is(3, "fifo", rows, ARRAY_LEN(rows));
}

static void the_rest_of_a_gang_goes_to_the_emptiest_node(void)
{
    const struct row rows[] = {
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
    const struct row rows[] = { { 1, 0, 12, 100, 0, 0 },
                                { 2, 1, 0, 50, 0, 1 },
                                { 3, 2, 0, 50, 0, 51 } };
    AUTO(trace_free) struct trace t = by_hand(2, rows, ARRAY_LEN(rows));
    for (int i = 0; i < 3; i++)
        t.job[i].request.cpu_milli = 4000;
    check_starts(&t, "fifo", rows, ARRAY_LEN(rows));
}

/* ---- separate clusters ---- */

static void a_tenant_with_nodes_of_its_own_uses_no_others(void)
{
    static const char *const policies[] = { "fifo", "sjf", "bestfit", "fgd", "nightshift" };
    const struct row rows[] = {
        { 1, 0, 8, 100, 0, 0 },
        { 2, 1, 8, 10, 0, 100 }, /* n1 is idle and belongs to t1 */
        { 3, 50, 8, 10, 1, 50 },
    };
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        AUTO(trace_free) struct trace t = by_hand(2, rows, ARRAY_LEN(rows));
        t.node_tenant = arena_array(&t.arena, uint32_t, 2);
        t.node_tenant[1] = 1;
        check_starts(&t, policies[i], rows, ARRAY_LEN(rows));
    }
}

/* ---- what cannot run ---- */

static void refused(struct trace *t, const char *policy, const char *begin)
{
    struct replay_options o = { .policy = policy };
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
    static const char *const policies[] = { "fifo", "sjf", "bestfit", "fgd", "nightshift" };
    const struct row rows[] = { { 1, 0, 8, 10, 0, 0 }, { 71, 5, 8, 10, 0, 0 } };
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        AUTO(trace_free) struct trace t = by_hand(2, rows, ARRAY_LEN(rows));
        t.job[1].gpus = t.job[1].request.gpus = 9;
        refused(&t, policies[i], "hand, job 71 of the trace: gpus: 9 on one machine");
        t.job[1].gpus = t.job[1].request.gpus = 1;
        t.job[1].models = "H200";
        refused(&t, policies[i], "hand, job 71 of the trace: no node has a GPU of model 'H200'");
    }
}

static void a_tenant_without_nodes_cannot_run_its_jobs(void)
{
    const struct row rows[] = { { 1, 0, 8, 10, 0, 0 }, { 2, 5, 8, 10, 1, 0 } };
    AUTO(trace_free) struct trace t = by_hand(2, rows, ARRAY_LEN(rows));
    t.node_tenant = arena_array(&t.arena, uint32_t, 2);
    refused(&t, "fifo", "hand, job 2 of the trace: there are no machines");
    refused(&t, "nightshift", "hand, job 2 of the trace: there are no machines");
}

static void an_unknown_policy_is_refused(void)
{
    const struct row rows[] = { { 1, 0, 8, 10, 0, 0 } };
    AUTO(trace_free) struct trace t = by_hand(1, rows, 1);
    refused(&t, "lifo", "--policy: 'lifo' is not known");
}

static void a_trace_without_jobs_is_replayed(void)
{
    AUTO(trace_free) struct trace t = by_hand(1, NULL, 0);
    replay(&t, "fifo");
    replay(&t, "nightshift");
}

/* ---- what every replay keeps to ---- */

/* GPUs held at every instant, by a sweep over starts and ends. */
static void check_never_more_than_there_are(uint64_t seed, const struct trace *t,
                                            const struct outcome *o)
{
    double gpus = 0;
    for (uint32_t i = 0; i < t->nodes; i++)
        gpus += t->node[i].gpus;
    for (uint32_t i = 0; i < t->jobs; i++) {
        double held = 0;
        CHECK_AT(seed, o->start_ms[i] >= t->job[i].submit_ms && o->end_ms[i] != NEVER);
        for (uint32_t k = 0; k < t->jobs; k++)
            if (o->start_ms[k] <= o->start_ms[i] && o->start_ms[i] < o->end_ms[k])
                held += o->gpus[k];
        CHECK_AT(seed, held <= gpus + 1e-6);
    }
}

static void every_policy_ends_all_jobs_and_holds_no_more_than_there_is(void)
{
    static const char *const policies[] = { "fifo", "sjf", "bestfit", "fgd", "nightshift" };
    for (uint64_t seed = 1; seed <= 10; seed++) {
        AUTO(gen_philly_free) struct gen_philly g;
        gen_philly(seed, &g);
        const struct csv_source vcs = { "vcs", buf_str(&g.vcs) }, jobs = { "j", buf_str(&g.jobs) };
        for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
            AUTO(trace_free) struct trace t = { 0 };
            struct err e;
            CHECK_AT(seed, trace_parse_philly(&vcs, &jobs, seed % 2 ? 0 : 7, &t, &e) == 0);
            struct outcome o = replay(&t, policies[i]);
            check_never_more_than_there_are(seed, &t, &o);
        }
    }
}

static void the_same_trace_gives_the_same_schedule(void)
{
    static const char *const policies[] = { "fifo", "sjf", "bestfit", "fgd", "nightshift" };
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        AUTO(trace_free) struct trace t = { 0 };
        struct err e;
        CHECK(trace_make_lab(3, 1, &t, &e) == 0);
        struct outcome a = replay(&t, policies[i]), b = replay(&t, policies[i]);
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
        CHECK(ev->t_ms == c->o->start_ms[job - 1]);
        recount_slots(c, job, 1);
        c->places++;
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
        struct replay_options o = { .policy = "nightshift", .journal = &journal };
        struct report r;
        struct outcome jobs;
        struct event ev;
        struct err e;
        CHECK(trace_make_lab(seed, 3, &t, &e) == 0 && t.jobs < LAB_JOBS_MAX);
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
    CHECK(trace_make_lab(1, 7, &t, &e) == 0);
    for (uint32_t i = 0; i < t.tenants; i++)
        if (t.tenant[i].limit.of[RES_GPU] != NO_LIMIT)
            limited = i;
    CHECK(limited != NONE);
    struct outcome o = replay(&t, "nightshift");
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
    { "a trace without jobs is replayed", a_trace_without_jobs_is_replayed },
    { "every policy ends all jobs and holds no more than there is",
      every_policy_ends_all_jobs_and_holds_no_more_than_there_is },
    { "the same trace gives the same schedule", the_same_trace_gives_the_same_schedule },
    { "the journal of a lab never gives a GPU twice",
      the_journal_of_a_lab_never_gives_a_gpu_twice },
    { "a limit of a tenant is kept", a_limit_of_a_tenant_is_kept },
};
TEST_MAIN(tests)
