#include "core/state.h"
#include "tests/lib/small.h"

enum {
    QUICK = 1,
    LONG = 2
}; /* families */

/* One machine with one GPU; what runs is left alone. */
static struct small lab(void)
{
    struct small s = small_new();
    struct event p = { .kind = EVENT_POLICY, .policy = policy_default() };
    p.policy.take_back = 0;
    small_apply(&s, p);
    small_tenant(&s, "a");
    small_node(&s, "n0", 1);
    return s;
}

static uint64_t submit(struct small *s, uint32_t family, int64_t limit_ms)
{
    struct event ev = submit_event(s, "a", (struct request){ .replicas = 1, .gpus = 1 });
    ev.submit.family = family;
    ev.submit.limit_ms = limit_ms;
    small_apply(s, ev);
    return ++s->last;
}

static void run(struct small *s, uint32_t family, int64_t ms)
{
    uint64_t job = submit(s, family, 0);
    small_pass(s);
    CHECK(small_started(s, job));
    small_job(s, job, JOB_EV_STARTED);
    s->now_ms += ms;
    small_job(s, job, JOB_EV_EXITED_OK);
}

/* Ten runs of each sort; what was learnt is derived with the next pass. */
static void learn(struct small *s)
{
    for (int i = 0; i < 10; i++) {
        run(s, QUICK, 2 * MINUTE_MS);
        run(s, LONG, 5 * HOUR_MS);
    }
    small_pass(s);
}

static int64_t expected_ms(const struct core *c, uint64_t job)
{
    const struct job *j = &c->queue.job[queue_find(&c->queue, job)];
    return core_end_ms(c, j, EXPECTED) - c->now_ms;
}

static void a_users_quick_work_goes_before_his_long_work(void)
{
    AUTO(small_free) struct small s = lab();
    learn(&s);
    uint64_t runs = submit(&s, LONG, 0);
    CHECK(small_pass(&s) == 1);
    small_job(&s, runs, JOB_EV_STARTED);
    uint64_t slow = submit(&s, LONG, 0), quick = submit(&s, QUICK, 0);
    small_job(&s, runs, JOB_EV_EXITED_OK);
    CHECK(small_pass(&s) == 1 && small_started(&s, quick));
    CHECK(expected_ms(s.c, quick) < 10 * MINUTE_MS && expected_ms(s.c, slow) > 2 * HOUR_MS);
}

static void a_stated_limit_bounds_what_is_expected_and_never_lengthens_it(void)
{
    AUTO(small_free) struct small s = lab();
    learn(&s);
    uint64_t cut = submit(&s, LONG, HOUR_MS), free = submit(&s, QUICK, 0);
    uint64_t wide = submit(&s, QUICK, 500 * HOUR_MS), fresh = submit(&s, 77, 60000);
    CHECK_INT(expected_ms(s.c, cut), HOUR_MS);
    CHECK_INT(expected_ms(s.c, wide), expected_ms(s.c, free));
    CHECK_INT(expected_ms(s.c, fresh), 60000);
}

static void an_express_job_is_one_that_its_limit_makes_short(void)
{
    AUTO(small_free) struct small s = lab();
    for (int i = 0; i < 30; i++)
        run(&s, LONG, 50 * HOUR_MS);
    for (int i = 0; i < 300; i++)
        run(&s, QUICK, 2 * MINUTE_MS);
    small_pass(&s);
    const struct queue *q = &s.c->queue;
    uint64_t plain = submit(&s, LONG, 0), cut = submit(&s, LONG, 10 * MINUTE_MS);
    CHECK(!core_is_express(s.c, &q->job[queue_find(q, plain)]));
    CHECK(core_is_express(s.c, &q->job[queue_find(q, cut)]));
}

static void again(void *ctx, const struct event *ev)
{
    struct err e;
    CHECK(core_apply(ctx, ev, &e) == 0);
}

static void a_snapshot_keeps_what_was_learnt_of_families(void)
{
    AUTO(small_free) struct small s = lab();
    AUTO(core_free_p) struct core *copy = core_new();
    AUTO(arena_free) struct arena a = { 0 };
    struct plan p;
    learn(&s);
    uint64_t quick = submit(&s, QUICK, 0), slow = submit(&s, LONG, 0);
    core_snapshot(s.c, again, copy);
    s.now_ms += HOUR_MS; /* both derive anew */
    small_pass(&s);
    core_pass(copy, s.now_ms, &a, &p);
    CHECK_INT(copy->history.families, 2);
    for (uint64_t job = quick; job <= slow; job++) {
        int64_t live_ms = expected_ms(s.c, job), off_ms = expected_ms(copy, job) - live_ms;
        CHECK(off_ms < live_ms / 100 && -off_ms < live_ms / 100);
    }
}

static void what_is_said_of_a_family_is_checked(void)
{
    AUTO(small_free) struct small s = lab();
    struct err e;
    struct event ev = { .kind = EVENT_RUNS, .runs = { .tenant = STR("a"), .user = STR("u") } };
    ev.runs.family = QUICK;
    CHECK(small_try(&s, ev, &e) < 0 && strstr(e.msg, "no 'u' of tenant 'a'"));
    submit(&s, QUICK, 0);
    CHECK(small_try(&s, ev, &e) == 0);
    ev.runs.family = 0;
    CHECK(small_try(&s, ev, &e) < 0 && strstr(e.msg, "a family is a user's"));
    ev.runs = (struct event_runs){ .tenant = STR("a"), .family = QUICK };
    CHECK(small_try(&s, ev, &e) < 0 && strstr(e.msg, "a family is a user's"));
}

static const struct test tests[] = {
    { "a user's quick work goes before his long work",
      a_users_quick_work_goes_before_his_long_work },
    { "a stated limit bounds what is expected and never lengthens it",
      a_stated_limit_bounds_what_is_expected_and_never_lengthens_it },
    { "an express job is one that its limit makes short",
      an_express_job_is_one_that_its_limit_makes_short },
    { "a snapshot keeps what was learnt of families",
      a_snapshot_keeps_what_was_learnt_of_families },
    { "what is said of a family is checked", what_is_said_of_a_family_is_checked },
};
TEST_CASES(tests)
