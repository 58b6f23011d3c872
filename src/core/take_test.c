#include "core/state.h"
#include "tests/lib/small.h"

/* A lab of `nodes` machines with `gpus` GPUs each; tenants a and b of equal weight, c of half. */
static struct small lab(uint32_t nodes, uint32_t gpus)
{
    static const char *const names[] = { "n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7" };
    struct small s = small_new();
    struct event p = { .kind = EVENT_POLICY, .policy = policy_default() };
    p.policy.cpu_cost_milli = 0;
    p.policy.past_milli = 0;
    small_apply(&s, p);
    small_apply(&s, tenant_event("a", "", 2));
    small_apply(&s, tenant_event("b", "", 2));
    small_apply(&s, tenant_event("c", "", 1));
    for (uint32_t i = 0; i < nodes; i++)
        small_apply(&s, node_event(names[i], "x", gpus));
    return s;
}

struct wish {
    const char *tenant, *devices; /* devices NULL: none */
    uint16_t gpus;
    uint32_t cpus;
    uint32_t replicas; /* 0: one */
    enum priority priority;
    bool stays; /* it cannot be frozen */
    bool restarts;
};

static uint64_t submit(struct small *s, struct wish w)
{
    struct event ev = { .kind = EVENT_SUBMIT };
    ev.submit = (struct event_submit){
        .id = { ++s->last },
        .tenant = str_of(w.tenant),
        .user = STR("u"),
        .devices = str_of(w.devices ? w.devices : ""),
        .request = { .replicas = MAX(w.replicas, 1u), .gpus = w.gpus, .cpu_milli = w.cpus * 1000 },
        .priority = w.priority ? w.priority : PRIO_NORMAL,
        .thaw_cost_ms = w.stays ? 0 : 30000,
        .restarts = w.restarts,
    };
    small_apply(s, ev);
    return s->last;
}

static void step(struct small *s, uint64_t job, enum job_event what)
{
    struct event ev = { .kind = EVENT_JOB };
    ev.job = (struct event_job){ { job }, what };
    small_apply(s, ev);
}

static enum job_state state(const struct small *s, uint64_t job)
{
    struct job_view v;
    return core_job(s->c, (job_id){ job }, &v) ? v.state : JOB_STATE_COUNT;
}

/* Passes until nothing more is decided; freezing takes no time.  How many were taken back. */
static uint32_t settle(struct small *s)
{
    uint32_t taken = 0;
    for (bool more = true; more;) {
        small_pass(s);
        more = false;
        for (size_t i = 0; i < s->plan.n; i++) {
            const struct action *a = &s->plan.action[i];
            if (a->kind == ACT_START || a->kind == ACT_THAW)
                step(s, a->job.v, JOB_EV_STARTED);
            if (a->kind == ACT_TAKE)
                step(s, a->job.v, JOB_EV_FROZE);
            taken += a->kind == ACT_TAKE;
            more = more || a->kind == ACT_TAKE;
        }
    }
    return taken;
}

static uint32_t running(const struct small *s, uint64_t from, uint64_t to)
{
    uint32_t n = 0;
    for (uint64_t job = from; job <= to; job++)
        n += state(s, job) == JOB_RUNNING;
    return n;
}

static void fill(struct small *s, const char *tenant, uint32_t jobs, uint16_t gpus)
{
    for (uint32_t i = 0; i < jobs; i++)
        submit(s, (struct wish){ .tenant = tenant, .gpus = gpus });
}

/* ---- whose turn ---- */

/* Slices of GPUs are taken back like GPUs, as far as they are worth something. */
static void slices_are_shared_like_gpus(void)
{
    AUTO(small_free) struct small s = lab(0, 0);
    struct event n = node_event("m", "x", 1);
    n.node.devices = STR("x/mig-1g=8@125");
    small_apply(&s, n);
    for (int i = 0; i < 16; i++)
        submit(&s, (struct wish){ .tenant = "a", .devices = "x/mig-1g=1" });
    CHECK_INT(settle(&s), 0);
    CHECK_INT(running(&s, 1, 16), 8);
    s.now_ms += HOUR_MS;
    for (int i = 0; i < 16; i++)
        submit(&s, (struct wish){ .tenant = "b", .devices = "x/mig-1g=1" });
    settle(&s);
    CHECK_INT(running(&s, 1, 16), 4); /* equal weights: half each */
    CHECK_INT(running(&s, 17, 32), 4);
    for (int hour = 0; hour < 5; hour++) { /* and there it stays */
        s.now_ms += HOUR_MS;
        CHECK_INT(settle(&s), 0);
    }
}

static void a_tenant_gets_its_share_back_and_not_more(void)
{
    AUTO(small_free) struct small s = lab(2, 8);
    fill(&s, "a", 32, 1);
    CHECK_INT(settle(&s), 0);
    CHECK_INT(running(&s, 1, 32), 16);
    s.now_ms += HOUR_MS;
    fill(&s, "b", 32, 1);
    settle(&s);
    CHECK_INT(running(&s, 1, 32), 8); /* equal weights: half each */
    CHECK_INT(running(&s, 33, 64), 8);
    for (int hour = 0; hour < 10; hour++) { /* and there it stays */
        s.now_ms += HOUR_MS;
        CHECK_INT(settle(&s), 0);
    }
}

static void it_comes_from_the_one_most_above(void)
{
    AUTO(small_free) struct small s = lab(2, 8);
    fill(&s, "a", 12, 1);
    fill(&s, "b", 4, 1);
    settle(&s);
    CHECK_INT(running(&s, 1, 16), 16);
    s.now_ms += HOUR_MS;
    fill(&s, "c", 16, 1);
    settle(&s);
    CHECK_INT(running(&s, 13, 16), 4); /* b has less than its share: it keeps all */
    CHECK(running(&s, 17, 32) >= 3);
}

static void nobody_is_taken_below_a_guarantee(void)
{
    AUTO(small_free) struct small s = lab(1, 8);
    struct event t = tenant_event("a", "", 2);
    t.tenant.guarantee_milli = 6000;
    small_apply(&s, t);
    fill(&s, "a", 8, 1);
    settle(&s);
    s.now_ms += HOUR_MS;
    fill(&s, "b", 8, 1);
    settle(&s);
    CHECK(running(&s, 1, 8) >= 6);
    CHECK(running(&s, 9, 16) >= 1);
    for (int hour = 0; hour < 30; hour++) { /* nor by those that have waited too long */
        s.now_ms += HOUR_MS;
        settle(&s);
        CHECK(running(&s, 1, 8) >= 6);
    }
}

static void what_cannot_be_frozen_is_left_alone(void)
{
    AUTO(small_free) struct small s = lab(1, 8);
    for (int i = 0; i < 8; i++)
        submit(&s, (struct wish){ .tenant = "a", .gpus = 1, .stays = true });
    settle(&s);
    s.now_ms += 24 * HOUR_MS;
    fill(&s, "b", 8, 1);
    CHECK_INT(settle(&s), 0);
    CHECK_INT(running(&s, 1, 8), 8);
}

static void a_job_that_would_lose_its_work_goes_last(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    uint64_t loses = submit(&s, (struct wish){ .tenant = "a", .gpus = 1, .restarts = true });
    uint64_t saves = submit(&s, (struct wish){ .tenant = "a", .gpus = 1 });
    settle(&s);
    s.now_ms += 3 * HOUR_MS;
    uint64_t job = submit(&s, (struct wish){ .tenant = "b", .gpus = 1 });
    CHECK_INT(settle(&s), 1);
    CHECK_INT(state(&s, job), JOB_RUNNING);
    CHECK_INT(state(&s, loses), JOB_RUNNING);
    CHECK_INT(state(&s, saves), JOB_FROZEN);
}

/* ---- inside one user ---- */

static void a_higher_class_takes_from_a_lower_one(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    fill(&s, "a", 2, 1);
    settle(&s);
    s.now_ms += HOUR_MS;
    uint64_t high = submit(&s, (struct wish){ .tenant = "a", .gpus = 1, .priority = PRIO_HIGH });
    CHECK_INT(settle(&s), 1);
    CHECK_INT(state(&s, high), JOB_RUNNING);
    s.now_ms += HOUR_MS;
    uint64_t low = submit(&s, (struct wish){ .tenant = "a", .gpus = 1, .priority = PRIO_LOW });
    CHECK_INT(settle(&s), 0);
    CHECK_INT(state(&s, low), JOB_QUEUED);
}

static void an_equal_job_does_not_take(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    fill(&s, "a", 2, 1);
    settle(&s);
    for (int minute = 0; minute < 10; minute++) {
        s.now_ms += MINUTE_MS;
        fill(&s, "a", 1, 1);
        CHECK_INT(settle(&s), 0);
    }
}

/* What jobs of this tenant usually do: most end within a few minutes. */
static void learn_short(struct small *s, uint32_t jobs)
{
    for (uint32_t i = 0; i < jobs; i++) {
        uint64_t job = submit(s, (struct wish){ .tenant = "a", .gpus = 1 });
        settle(s);
        s->now_ms += 2 * MINUTE_MS;
        step(s, job, JOB_EV_EXITED_OK);
    }
}

static void a_new_job_takes_from_one_that_has_run_for_days(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    learn_short(&s, 100);
    uint64_t old = submit(&s, (struct wish){ .tenant = "a", .gpus = 1 });
    fill(&s, "a", 1, 1);
    settle(&s);
    s.now_ms += 3 * 24 * HOUR_MS;
    uint64_t job = submit(&s, (struct wish){ .tenant = "a", .gpus = 1 });
    CHECK_INT(settle(&s), 1);
    CHECK_INT(state(&s, job), JOB_RUNNING);
    step(&s, job, JOB_EV_EXITED_OK);
    settle(&s);
    CHECK_INT(state(&s, old), JOB_RUNNING); /* and it goes on by itself */
}

/* ---- rest ---- */

static void a_job_that_has_just_started_is_left_alone(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    fill(&s, "a", 2, 1);
    settle(&s);
    s.now_ms += MINUTE_MS; /* less than min_run_ms */
    fill(&s, "b", 2, 1);
    CHECK_INT(settle(&s), 0);
    s.now_ms += 2 * MINUTE_MS;
    CHECK_INT(settle(&s), 1);
}

/* The worst that a user can do: a job of a higher class every ten minutes, each ending soon. */
static void a_job_is_frozen_a_bounded_number_of_times_a_day(void)
{
    AUTO(small_free) struct small s = lab(1, 1);
    uint64_t victim = submit(&s, (struct wish){ .tenant = "a", .gpus = 1 });
    uint32_t frozen[3] = { 0 };
    settle(&s);
    for (int minute = 0; minute < 3 * 24 * 60; minute++) {
        s.now_ms += MINUTE_MS;
        if (minute % 10 == 0)
            submit(&s, (struct wish){ .tenant = "a", .gpus = 1, .priority = PRIO_URGENT });
        for (uint64_t job = victim + 1; job <= s.last; job++)
            if (state(&s, job) == JOB_RUNNING)
                step(&s, job, JOB_EV_EXITED_OK);
        enum job_state before = state(&s, victim);
        settle(&s);
        if (before == JOB_RUNNING && state(&s, victim) == JOB_FROZEN)
            frozen[minute / (24 * 60)]++;
    }
    for (int day = 0; day < 3; day++)
        CHECK_AT(day, frozen[day] > 0 && frozen[day] <= (day ? 10 : 16));
}

/* ---- making it fit ---- */

static void a_large_job_fits_after_small_ones_moved(void)
{
    AUTO(small_free) struct small s = lab(4, 4);
    uint64_t first = s.last + 1;
    fill(&s, "a", 16, 1);
    settle(&s);
    for (uint64_t job = first; job < first + 16; job += 2) /* every other one ends: holes */
        step(&s, job, JOB_EV_EXITED_OK);
    s.now_ms += HOUR_MS;
    settle(&s);
    s.now_ms += MINUTE_MS;
    uint64_t large = submit(&s, (struct wish){ .tenant = "a", .gpus = 4 });
    settle(&s);
    CHECK_INT(state(&s, large), JOB_RUNNING);
    for (uint64_t job = first + 1; job < first + 16; job += 2)
        CHECK_INT(state(&s, job), JOB_RUNNING); /* moved or not, all run */
}

static void a_gang_gets_its_machines_from_several_jobs(void)
{
    AUTO(small_free) struct small s = lab(4, 4);
    fill(&s, "a", 16, 1);
    settle(&s);
    s.now_ms += HOUR_MS;
    uint64_t gang = submit(&s, (struct wish){ .tenant = "b", .gpus = 4, .replicas = 2 });
    CHECK_INT(settle(&s), 8);
    CHECK_INT(state(&s, gang), JOB_RUNNING);
    CHECK_INT(running(&s, 1, 16), 8);
}

/* ---- promises ---- */

static void room_that_is_being_cleared_is_nobody_elses(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    fill(&s, "a", 2, 1);
    settle(&s);
    s.now_ms += HOUR_MS;
    uint64_t job = submit(&s, (struct wish){ .tenant = "b", .gpus = 1 });
    small_pass(&s);
    CHECK_INT(s.plan.n, 2);
    CHECK(s.plan.action[0].kind == ACT_TAKE && s.plan.action[0].by.v == job);
    CHECK(s.plan.action[1].kind == ACT_PROMISE && s.plan.action[1].job.v == job);
    uint64_t victim = s.plan.action[0].job.v;
    submit(&s, (struct wish){ .tenant = "c", .gpus = 1, .priority = PRIO_URGENT });
    step(&s, victim, JOB_EV_FROZE);
    small_pass(&s);
    CHECK_INT(s.plan.n, 1);
    CHECK(s.plan.action[0].kind == ACT_START && s.plan.action[0].job.v == job);
}

static void a_freeze_that_fails_breaks_the_promise(void)
{
    AUTO(small_free) struct small s = lab(1, 1);
    learn_short(&s, 100);
    uint64_t victim = submit(&s, (struct wish){ .tenant = "a", .gpus = 1 });
    settle(&s);
    s.now_ms += 3 * 24 * HOUR_MS;
    uint64_t job = submit(&s, (struct wish){ .tenant = "a", .gpus = 1 });
    small_pass(&s);
    CHECK_INT(state(&s, victim), JOB_FREEZING);
    step(&s, victim, JOB_EV_STARTED); /* it could not be frozen */
    small_pass(&s);
    CHECK_INT(state(&s, job), JOB_QUEUED);
    CHECK(s.c->promises == 0 && s.c->cluster.node[0].promises == 0);
    step(&s, victim, JOB_EV_EXITED_OK);
    settle(&s);
    CHECK_INT(state(&s, job), JOB_RUNNING);
}

/* The GPU is free all the time, and the CPUs stay taken. */
static void so_does_one_of_a_job_that_holds_no_gpu(void)
{
    AUTO(small_free) struct small s = lab(1, 1);
    uint64_t victim = submit(&s, (struct wish){ .tenant = "a", .cpus = 16 });
    settle(&s);
    s.now_ms += HOUR_MS;
    uint64_t job =
        submit(&s, (struct wish){ .tenant = "b", .gpus = 1, .cpus = 8, .priority = PRIO_URGENT });
    small_pass(&s);
    CHECK_INT(state(&s, victim), JOB_FREEZING);
    CHECK_INT(s.c->promises, 1);
    step(&s, victim, JOB_EV_STARTED); /* it could not be frozen */
    uint64_t other = submit(&s, (struct wish){ .tenant = "c", .gpus = 1 });
    small_pass(&s);
    CHECK_INT(s.c->promises, 0);
    CHECK_INT(state(&s, job), JOB_QUEUED);
    CHECK_INT(state(&s, other), JOB_STARTING); /* nothing stands empty for it */
}

static void a_promise_ends_with_its_job(void)
{
    static const enum job_event ends[] = { JOB_EV_CANCEL, JOB_EV_HOLD };
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        AUTO(small_free) struct small s = lab(1, 1);
        struct err e;
        uint64_t victim = submit(&s, (struct wish){ .tenant = "a", .gpus = 1 });
        settle(&s);
        s.now_ms += HOUR_MS;
        uint64_t job = submit(&s, (struct wish){ .tenant = "a", .gpus = 1, .priority = PRIO_HIGH });
        small_pass(&s);
        step(&s, job, ends[i]);
        CHECK(s.c->promises == 0 && core_audit(s.c, &e) == 0);
        step(&s, victim, JOB_EV_FROZE);
        settle(&s);
        CHECK_INT(state(&s, victim), JOB_RUNNING);
    }
}

/* ---- nobody starves ---- */

/* Small jobs of others never stop coming; whoever has had less than its share starts in bounded
 * time: claim_after_ms, and the longest rest of those in its place. */
static void a_large_job_of_a_tenant_that_is_owed_starts_in_time(void)
{
    AUTO(small_free) struct small s = lab(2, 8);
    for (int minute = 0; minute < 26 * 60; minute++) {
        s.now_ms += MINUTE_MS;
        fill(&s, minute % 2 ? "a" : "c", 1, 1);
        if (minute == 60)
            submit(&s, (struct wish){ .tenant = "b", .gpus = 8 });
        settle(&s);
        for (uint64_t job = s.last > 40 ? s.last - 40 : 1; job + 24 < s.last; job++)
            if (state(&s, job) == JOB_RUNNING && job != 62)
                step(&s, job, JOB_EV_EXITED_OK);
        if (minute > 60 && state(&s, 62) == JOB_RUNNING) {
            CHECK(minute - 60 <= 12 * 60 + 144 + 5);
            return;
        }
    }
    test_fail(__FILE__, __LINE__, "it did not start in a day");
}

static const struct test tests[] = {
    { "slices are shared like GPUs", slices_are_shared_like_gpus },
    { "a tenant gets its share back, and not more", a_tenant_gets_its_share_back_and_not_more },
    { "it comes from the one most above", it_comes_from_the_one_most_above },
    { "nobody is taken below a guarantee", nobody_is_taken_below_a_guarantee },
    { "what cannot be frozen is left alone", what_cannot_be_frozen_is_left_alone },
    { "a job that would lose its work goes last", a_job_that_would_lose_its_work_goes_last },
    { "a higher class takes from a lower one", a_higher_class_takes_from_a_lower_one },
    { "an equal job does not take", an_equal_job_does_not_take },
    { "a new job takes from one that has run for days",
      a_new_job_takes_from_one_that_has_run_for_days },
    { "a job that has just started is left alone", a_job_that_has_just_started_is_left_alone },
    { "a job is frozen a bounded number of times a day",
      a_job_is_frozen_a_bounded_number_of_times_a_day },
    { "a large job fits after small ones moved", a_large_job_fits_after_small_ones_moved },
    { "a gang gets its machines from several jobs", a_gang_gets_its_machines_from_several_jobs },
    { "room that is being cleared is nobody else's", room_that_is_being_cleared_is_nobody_elses },
    { "a freeze that fails breaks the promise", a_freeze_that_fails_breaks_the_promise },
    { "so does one of a job that holds no GPU", so_does_one_of_a_job_that_holds_no_gpu },
    { "a promise ends with its job", a_promise_ends_with_its_job },
    { "a large job of a tenant that is owed starts in time",
      a_large_job_of_a_tenant_that_is_owed_starts_in_time },
};
TEST_CASES(tests)
