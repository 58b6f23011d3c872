#include <stdio.h>

#include "base/rng.h"
#include "core/core.h"
#include "journal/journal.h"
#include "simulate/journal_trace.h"
#include "simulate/replay.h"
#include "tests/lib/test.h"

/* ---- a daemon as small as can be: it gathers, decides, and has an engine that takes its time ---- */

#define SEEDS 200
#define JOBS 60
#define NODES 3
#define PENDING 512

struct pending {
    int64_t t_ms;
    uint64_t job;
    enum job_event what;
};

struct daemon {
    struct rng rng;
    struct core *core;
    struct buf journal;
    struct arena arena;
    int64_t now_ms;
    struct pending pending[PENDING];
    size_t n;
    struct {
        int64_t left_ms, since_ms;
        bool lives;
    } job[JOBS + 1];
    uint64_t jobs, placed;
    bool segments; /* it begins its journal anew at times */
};

static int64_t up_to(struct daemon *d, int64_t n)
{
    return (int64_t)(rng_unit(&d->rng) * (double)n);
}

static bool tell(struct daemon *d, const struct event *ev)
{
    struct err e;
    if (core_apply(d->core, ev, &e) < 0)
        return false;
    journal_write(ev, &d->journal);
    return true;
}

static void later(struct daemon *d, uint64_t job, enum job_event what, int64_t after_ms)
{
    CHECK(d->n < PENDING);
    d->pending[d->n++] = (struct pending){ d->now_ms + after_ms, job, what };
}

static void forget(struct daemon *d, uint64_t job)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->n; i++)
        if (d->pending[i].job != job)
            d->pending[kept++] = d->pending[i];
    d->n = kept;
}

static bool tell_job(struct daemon *d, uint64_t job, enum job_event what)
{
    struct event ev = { .t_ms = d->now_ms, .kind = EVENT_JOB };
    ev.job = (struct event_job){ { job }, what };
    return tell(d, &ev);
}

static void pass(struct daemon *d)
{
    struct plan plan;
    arena_reset(&d->arena);
    core_pass(d->core, d->now_ms, &d->arena, &plan);
    journal_write(&(struct event){ .t_ms = d->now_ms, .kind = EVENT_PASS }, &d->journal);
    for (size_t i = 0; i < plan.n; i++) {
        struct event ev = action_event(&plan.action[i], d->now_ms);
        journal_write(&ev, &d->journal);
    }
    for (size_t i = 0; i < plan.n; i++) {
        uint64_t id = plan.action[i].job.v;
        if (plan.action[i].kind == ACT_TAKE) {
            forget(d, id);
            d->job[id].left_ms -= d->now_ms - d->job[id].since_ms;
            d->job[id].left_ms = MAX(d->job[id].left_ms, INT64_C(1));
            later(d, id, JOB_EV_FROZE, 30 + up_to(d, 2000));
        } else if (plan.action[i].kind != ACT_PROMISE) {
            later(d, id, JOB_EV_STARTED, up_to(d, 3) ? 20 + up_to(d, 3000) : 0);
            d->placed++;
        }
    }
}

static void engine_says(struct daemon *d, struct pending p)
{
    struct job_view v;
    CHECK(core_job(d->core, (job_id){ p.job }, &v));
    bool stopped = v.state == JOB_STOPPING;
    CHECK(tell_job(d, p.job, stopped ? JOB_EV_ENDED : p.what));
    if (p.what == JOB_EV_STARTED) {
        d->job[p.job].since_ms = d->now_ms;
        later(d, p.job, JOB_EV_EXITED_OK, d->job[p.job].left_ms);
    } else if (p.what == JOB_EV_FROZE && !stopped) {
        d->job[p.job].left_ms += 1000; /* its thaw_cost_ms */
    } else {
        d->job[p.job].lives = false;
    }
}

static void submit(struct daemon *d)
{
    static const char *const tenants[] = { "a", "b" };
    struct after after = { { (uint64_t)up_to(d, (int64_t)d->jobs + 1) }, 1, AFTER_ANY };
    struct event ev = { .t_ms = d->now_ms, .kind = EVENT_SUBMIT };
    uint64_t id = d->jobs + 1;
    ev.submit = (struct event_submit){ .id = { id },
                                       .tenant = str_of(tenants[up_to(d, 2)]),
                                       .user = STR("u"),
                                       .request = { .replicas = 1, .cpu_milli = 1000 },
                                       .priority = PRIO_NORMAL,
                                       .thaw_cost_ms = 1000 };
    ev.submit.request.gpus = (uint16_t)(1 + up_to(d, 4));
    if (up_to(d, 8) == 0)
        ev.submit.begin_ms = d->now_ms + up_to(d, 60000);
    if (after.first.v && d->job[after.first.v].lives && up_to(d, 4) == 0) {
        ev.submit.after = &after;
        ev.submit.afters = 1;
    }
    CHECK(tell(d, &ev));
    d->jobs = id;
    d->job[id].lives = true;
    d->job[id].left_ms = 1000 + up_to(d, 400000);
}

/* Somebody holds, releases or ends a job that waits, or lets a machine drain, or come back. */
static void somebody(struct daemon *d)
{
    static const enum job_event verbs[] = { JOB_EV_HOLD, JOB_EV_RELEASE, JOB_EV_CANCEL };
    static const char *const nodes[] = { "n0", "n1", "n2" };
    struct job_view v;
    uint64_t id = 1 + (uint64_t)up_to(d, (int64_t)d->jobs);
    if (d->jobs == 0 || up_to(d, 3) == 0) {
        struct event ev = { .t_ms = d->now_ms, .kind = EVENT_NODE_STATE };
        ev.node_state = (struct event_node_state){ str_of(nodes[up_to(d, NODES)]),
                                                   up_to(d, 4) ? NODE_UP : NODE_DRAIN };
        CHECK(tell(d, &ev));
        return;
    }
    if (!core_job(d->core, (job_id){ id }, &v) || job_state_holds(v.state))
        return;
    enum job_event what = verbs[up_to(d, 3)];
    if (tell_job(d, id, what) && what == JOB_EV_CANCEL)
        d->job[id].lives = false;
}

static void write_line(void *ctx, const struct event *ev)
{
    struct daemon *d = ctx;
    struct err e;
    CHECK(core_apply(d->core, ev, &e) == 0);
    journal_write(ev, &d->journal);
}

static void cut(struct daemon *d)
{
    struct core *old = d->core;
    d->core = core_new();
    journal_write_header(&d->journal);
    core_snapshot(old, write_line, d);
    core_free(old);
}

static void begin(struct daemon *d)
{
    static const char *const names[] = { "n0", "n1", "n2" };
    journal_write_header(&d->journal);
    struct event ev = { .t_ms = d->now_ms, .kind = EVENT_POLICY, .policy = policy_default() };
    ev.policy.half_life_ms = 3600000;
    CHECK(tell(d, &ev));
    for (int i = 0; i < 2; i++) {
        ev = (struct event){ .t_ms = d->now_ms, .kind = EVENT_TENANT };
        ev.tenant = (struct event_tenant){ .name = str_of(i ? "b" : "a"),
                                           .weight_milli = i ? 3000 : 1000,
                                           .limit = AMOUNTS_NO_LIMIT,
                                           .user_limit = AMOUNTS_NO_LIMIT };
        CHECK(tell(d, &ev));
    }
    for (int i = 0; i < NODES; i++) {
        ev = (struct event){ .t_ms = d->now_ms, .kind = EVENT_NODE };
        ev.node = (struct event_node){ .name = str_of(names[i]),
                                       .model = STR("gpu"),
                                       .gpus = 4,
                                       .cpu_milli = 64000,
                                       .mem_mib = 64000 };
        CHECK(tell(d, &ev));
    }
    pass(d);
}

/* The next thing the engine says; false: it says nothing up to then. */
static bool next_pending(struct daemon *d, int64_t until_ms, struct pending *out)
{
    size_t first = d->n;
    for (size_t i = 0; i < d->n; i++)
        if (d->pending[i].t_ms <= until_ms &&
            (first == d->n || d->pending[i].t_ms < d->pending[first].t_ms))
            first = i;
    if (first == d->n)
        return false;
    *out = d->pending[first];
    d->pending[first] = d->pending[--d->n];
    return true;
}

static void engine_until(struct daemon *d, int64_t until_ms)
{
    struct pending p;
    while (next_pending(d, until_ms, &p)) {
        d->now_ms = MAX(d->now_ms, p.t_ms);
        engine_says(d, p);
        d->now_ms += 1 + up_to(d, 15);
        pass(d);
    }
    d->now_ms = MAX(d->now_ms, until_ms);
}

static void live(struct daemon *d, uint64_t seed)
{
    d->rng = (struct rng){ seed };
    d->core = core_new();
    d->journal = BUF(64u << 20);
    d->now_ms = 1000000;
    begin(d);
    while (d->jobs < JOBS) {
        engine_until(d, d->now_ms + up_to(d, 20000));
        if (up_to(d, 5) == 0)
            somebody(d);
        else
            submit(d);
        d->now_ms += up_to(d, 20);
        pass(d);
        if (d->segments && d->jobs == JOBS / 2 && up_to(d, 3) == 0)
            cut(d);
    }
    engine_until(d, d->now_ms + 2000000);
}

static void daemon_free(struct daemon *d)
{
    core_free(d->core);
    buf_free(&d->journal);
    arena_free(&d->arena);
}

/* ---- its journal, replayed ---- */

static bool next_decision(struct str *rest, struct str *line)
{
    while (str_next_line(rest, line)) {
        AUTO(buf_free) struct buf z = BUF(JOURNAL_LINE_MAX);
        buf_add(&z, *line);
        if (strstr(buf_str(&z).p, "\"ev\":\"place\"") || strstr(buf_str(&z).p, "\"ev\":\"take\""))
            return true;
    }
    return false;
}

static uint64_t replays_to_the_same(uint64_t seed)
{
    AUTO(daemon_free) struct daemon d = { 0 };
    AUTO(trace_free) struct trace t = { 0 };
    AUTO(buf_free) struct buf again = BUF(64u << 20);
    struct replay_options o = { .policy = "nightshift",
                                .freeze_cost_milli = 1000,
                                .journal = &again };
    struct report r;
    struct outcome jobs;
    struct err e = { 0 };
    live(&d, seed);
    if (trace_parse_journal("d", buf_str(&d.journal), NULL, &t, &e) < 0 ||
        replay_run(&t, &o, &r, &jobs, &e) < 0)
        test_fail(__FILE__, __LINE__, "seed %llu: %s", (unsigned long long)seed, e.msg);
    struct str was = buf_str(&d.journal), is = buf_str(&again), x, y;
    while (next_decision(&was, &x)) {
        if (!next_decision(&is, &y))
            y = STR("nothing");
        if (!str_eq(x, y))
            test_fail(__FILE__, __LINE__, "seed %llu: %.*s, was %.*s", (unsigned long long)seed,
                      STR_ARG(y), STR_ARG(x));
    }
    return d.placed;
}

static void a_daemons_journal_replays_to_the_same_decisions(void)
{
    uint64_t placed = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        placed += replays_to_the_same(seed);
    CHECK(placed > SEEDS * JOBS / 2);
}

/* When each job was first placed. */
static void first_places(struct str journal, int64_t out_ms[static JOBS + 1])
{
    AUTO(arena_free) struct arena a = { 0 };
    struct str line;
    struct err e;
    for (int i = 0; i <= JOBS; i++)
        out_ms[i] = NEVER;
    while (next_decision(&journal, &line)) {
        struct event ev;
        CHECK(journal_read(line, &a, &ev, &e) == 0);
        if (ev.kind == EVENT_PLACE && out_ms[ev.place.id.v] == NEVER)
            out_ms[ev.place.id.v] = ev.t_ms;
    }
}

static void a_journal_of_several_segments_is_one_history(void)
{
    struct replay_options o = { .policy = "nightshift", .freeze_cost_milli = 1000 };
    unsigned segments = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(daemon_free) struct daemon d = { .segments = true };
        AUTO(trace_free) struct trace t = { 0 };
        int64_t placed_ms[JOBS + 1];
        struct report r;
        struct outcome jobs;
        struct err e = { 0 };
        live(&d, seed);
        if (trace_parse_journal("d", buf_str(&d.journal), NULL, &t, &e) < 0 ||
            replay_run(&t, &o, &r, &jobs, &e) < 0)
            test_fail(__FILE__, __LINE__, "seed %llu: %s", (unsigned long long)seed, e.msg);
        first_places(buf_str(&d.journal), placed_ms);
        for (uint32_t i = 0; i < t.jobs; i++)
            if (jobs.start_ms[i] != placed_ms[t.job[i].id])
                test_fail(__FILE__, __LINE__, "seed %llu, job %llu: %lld, was %lld",
                          (unsigned long long)seed, (unsigned long long)t.job[i].id,
                          (long long)jobs.start_ms[i], (long long)placed_ms[t.job[i].id]);
        for (uint32_t i = 0; i < t.steps; i++)
            segments += t.step[i].kind == STEP_CUT;
    }
    CHECK(segments > SEEDS / 4);
}

static void a_span_begins_with_what_was_there(void)
{
    struct replay_options o = { .policy = "nightshift", .freeze_cost_milli = 1000 };
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(daemon_free) struct daemon d = { 0 };
        AUTO(trace_free) struct trace t = { 0 };
        struct journal_span span = { .from_ms = 1300000, .to_ms = 2000000 };
        int64_t placed_ms[JOBS + 1];
        struct report r;
        struct outcome jobs;
        struct err e = { 0 };
        live(&d, seed);
        if (trace_parse_journal("d", buf_str(&d.journal), &span, &t, &e) < 0 ||
            replay_run(&t, &o, &r, &jobs, &e) < 0)
            test_fail(__FILE__, __LINE__, "seed %llu: %s", (unsigned long long)seed, e.msg);
        first_places(buf_str(&d.journal), placed_ms);
        uint32_t ran = 0;
        for (uint32_t i = 0; i < t.jobs; i++) {
            bool before = placed_ms[t.job[i].id] < span.from_ms;
            ran += before && jobs.start_ms[i] < span.from_ms + 60000;
            CHECK(before || jobs.start_ms[i] >= span.from_ms);
        }
        CHECK(t.from_ms == span.from_ms && r.begin_ms >= span.from_ms && ran > 0);
    }
}

static const struct test tests[] = {
    { "a daemon's journal replays to the same decisions",
      a_daemons_journal_replays_to_the_same_decisions },
    { "a journal of several segments is one history",
      a_journal_of_several_segments_is_one_history },
    { "a span begins with what was there", a_span_begins_with_what_was_there },
};
TEST_CASES(tests)
