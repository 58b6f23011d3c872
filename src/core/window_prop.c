/* Windows on generated worlds, driven as an engine would that keeps its word: a start takes
 * seconds, a freeze no longer than it may cost, a job with a limit ends by it.  Then no job ever
 * holds a machine outside its window, and none that can be frozen loses work or waits for ever. */
#include "base/calendar.h"
#include "core/core.h"
#include "core/policy.h"
#include "tests/lib/test.h"
#include "tests/lib/world.h"

#define SEEDS 300
#define JOBS 50
#define DAY_MS (86400 * INT64_C(1000))
#define SUBMIT_MS (3 * DAY_MS)
#define END_MS (60 * DAY_MS)
#define START_MS 5000

/* In January, and just before Europe's clocks are changed. */
static const int64_t begin_day[] = { 0, 86, 296 };

enum phase {
    WAITS,
    STARTS,
    RUNS,
    FREEZES,
    ENDED
};

struct life {
    enum phase phase;
    int64_t next_ms;             /* when the phase ends */
    int64_t work_ms, left_ms;    /* run time it needs */
    int64_t done_ms;             /* that it has had */
    int64_t placed_ms, since_ms; /* of this stint; since: it runs */
    int64_t held_ms, limit_ms;   /* in former stints; what its limit counts against */
    uint32_t thaw_cost_ms;
    bool saves;
};

struct show {
    struct core *c;
    struct world w;
    struct arena a;
    struct life life[JOBS + 1]; /* by id */
    struct calendar calendar[8];
    bool lent[8];
    uint64_t freezes, takes;
    int64_t begin_ms, submit_ms;
};

static void apply(struct show *s, struct event ev)
{
    struct err e;
    ev.t_ms = s->w.now_ms;
    if (core_apply(s->c, &ev, &e) < 0)
        test_fail(__FILE__, __LINE__, "refused: %s", e.msg);
}

static void build(struct show *s, uint64_t seed)
{
    struct event ev[64], p = { .kind = EVENT_POLICY, .policy = policy_default() };
    struct err e;
    world_init(&s->w, seed);
    s->w.now_ms += begin_day[seed % ARRAY_LEN(begin_day)] * DAY_MS;
    s->begin_ms = s->w.now_ms;
    s->w.pools = 1 + (uint32_t)(seed % 3);
    s->w.limits = s->w.faults = s->w.rules = false; /* all that can be frozen ends */
    s->w.freezes = true;
    p.policy.review_ms = 3600000; /* else most passes would be reviews */
    apply(s, p);
    size_t n = world_build(&s->w, ev, ARRAY_LEN(ev));
    for (size_t i = 0, pools = 0; i < n; i++) {
        apply(s, ev[i]);
        if (ev[i].kind != EVENT_POOL)
            continue;
        s->lent[pools] = ev[i].pool.calendar.n > 0;
        CHECK(!s->lent[pools] ||
              calendar_parse(ev[i].pool.calendar, NULL, NULL, &s->calendar[pools], &e) == 0);
        pools++;
    }
    s->submit_ms = s->w.now_ms;
}

static void submit(struct show *s)
{
    struct event ev = world_submit(&s->w);
    struct err e;
    ev.submit.begin_ms = 0;
    ev.submit.afters = 0;
    ev.submit.held = false;
    ev.submit.traits = STR("");     /* no machine that could run it may ever be of its classes */
    ev.submit.request.replicas = 1; /* machines of different windows may never be open together */
    ev.submit.request.scope = ev.submit.request.layout = 0;
    s->submit_ms = s->w.now_ms + rng_below(&s->w.rng, 2 * SUBMIT_MS / JOBS);
    if (core_apply(s->c, &ev, &e) < 0)
        return;
    world_accepted(&s->w, &ev);
    struct life *l = &s->life[ev.submit.id.v];
    l->work_ms = l->left_ms = rng_between(&s->w.rng, 1000, 9 * 3600000);
    l->limit_ms = ev.submit.limit_ms;
    l->thaw_cost_ms = ev.submit.thaw_cost_ms;
    l->saves = ev.submit.thaw_cost_ms && !ev.submit.restarts;
}

static void job_event(struct show *s, uint64_t id, enum job_event what)
{
    apply(s, (struct event){ .kind = EVENT_JOB, .job = { { id }, what } });
}

/* Its phase is over. */
static void move_on(struct show *s, uint64_t id)
{
    struct life *l = &s->life[id];
    int64_t now_ms = s->w.now_ms;
    switch (l->phase) {
    case STARTS:
        job_event(s, id, JOB_EV_STARTED);
        l->phase = RUNS;
        l->since_ms = now_ms;
        l->next_ms = now_ms + l->left_ms;
        if (l->limit_ms)
            l->next_ms = MIN(l->next_ms, l->placed_ms + l->limit_ms - l->held_ms);
        l->next_ms = MAX(l->next_ms, now_ms);
        break;
    case RUNS:
        job_event(s, id, JOB_EV_EXITED_OK);
        l->done_ms += now_ms - l->since_ms;
        l->phase = ENDED;
        break;
    case FREEZES:
        job_event(s, id, JOB_EV_FROZE);
        l->held_ms += now_ms - l->placed_ms;
        l->phase = WAITS;
        s->freezes++;
        break;
    case WAITS:
    case ENDED: break;
    }
}

static void obey(struct show *s, const struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct life *l = &s->life[p->action[i].job.v];
        int64_t now_ms = s->w.now_ms;
        if (p->action[i].kind == ACT_START || p->action[i].kind == ACT_THAW) {
            l->phase = STARTS;
            l->placed_ms = now_ms;
            l->next_ms = now_ms + rng_below(&s->w.rng, START_MS);
        } else if (p->action[i].kind == ACT_TAKE) {
            l->phase = FREEZES;
            l->done_ms += now_ms - l->since_ms;
            l->left_ms = l->saves ? l->left_ms - (now_ms - l->since_ms) : l->work_ms;
            l->next_ms = now_ms + rng_below(&s->w.rng, l->thaw_cost_ms);
            s->takes += p->action[i].by.v == 0;
        }
    }
}

/* Asked of the calendars, not of the core. */
static bool all_are_inside(const struct show *s)
{
    struct job_view j;
    struct node_view n;
    for (uint64_t id = 1; id <= s->w.last_job; id++) {
        if (!core_job(s->c, (job_id){ id }, &j))
            continue;
        for (uint32_t i = 0; i < j.n; i++) {
            if (!core_node(s->c, (node_id){ j.slots[i].node }, &n))
                return false;
            uint32_t pool = n.pool[0] ? (uint32_t)(n.pool[1] - '0') : NONE;
            if (pool != NONE && s->lent[pool] && !calendar_is_open(&s->calendar[pool], s->w.now_ms))
                return false;
        }
    }
    return true;
}

static bool more_come(const struct show *s)
{
    return s->w.last_job < JOBS && s->submit_ms < s->begin_ms + SUBMIT_MS;
}

static int64_t next_ms(const struct show *s)
{
    bool busy = more_come(s);
    int64_t at_ms = busy ? s->submit_ms : INT64_MAX;
    for (uint64_t id = 1; id <= s->w.last_job; id++) {
        enum phase p = s->life[id].phase;
        if (p != WAITS && p != ENDED)
            at_ms = MIN(at_ms, s->life[id].next_ms);
        busy = busy || p != ENDED;
    }
    if (!busy)
        return INT64_MAX;
    int64_t wake_ms = core_wake_ms(s->c);
    return MIN(at_ms, wake_ms);
}

static void play(struct show *s, uint64_t seed)
{
    struct err e;
    struct plan p;
    for (int64_t t; (t = next_ms(s)) <= s->begin_ms + END_MS;) {
        CHECK_AT(seed, t >= s->w.now_ms);
        s->w.now_ms = t;
        for (uint64_t id = 1; id <= s->w.last_job; id++)
            if (s->life[id].next_ms <= t)
                move_on(s, id);
        if (s->submit_ms <= t && more_come(s))
            submit(s);
        CHECK_AT(seed, all_are_inside(s));
        core_pass(s->c, t, &s->a, &p);
        obey(s, &p);
        CHECK_AT(seed, all_are_inside(s) && core_totals(s->c).overstays == 0);
        CHECK_AT(seed, core_audit(s->c, &e) == 0);
        arena_reset(&s->a);
    }
}

static void no_job_holds_a_machine_outside_its_window_and_none_is_lost(void)
{
    uint64_t freezes = 0, takes = 0, ended = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        static struct show s;
        s = (struct show){ .c = c };
        build(&s, seed);
        play(&s, seed);
        for (uint64_t id = 1; id <= s.w.last_job; id++) {
            const struct life *l = &s.life[id];
            struct job_view j;
            ended += l->phase == ENDED;
            CHECK_AT(seed, l->phase == ENDED || (l->phase == WAITS && !l->saves));
            CHECK_AT(seed, core_job(c, (job_id){ id }, &j) == (l->phase != ENDED));
            CHECK_AT(seed, !l->saves || l->limit_ms || l->done_ms == l->work_ms);
        }
        freezes += s.freezes;
        takes += s.takes;
        arena_free(&s.a);
        world_free(&s.w);
    }
    CHECK(ended > SEEDS * JOBS / 3 && takes > SEEDS && freezes >= takes); /* worth looking at */
}

static const struct test tests[] = {
    { "no job holds a machine outside its window, and none is lost",
      no_job_holds_a_machine_outside_its_window_and_none_is_lost },
};
TEST_CASES(tests)
