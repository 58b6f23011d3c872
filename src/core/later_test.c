#include "core/later.h"

#include "core/state.h"
#include "tests/lib/test.h"

/* One machine with four GPUs, one tenant, and jobs of one GPU each. */
struct here {
    struct core *c;
    struct arena a;
    int64_t now_ms;
    uint64_t last;
    struct err e;
};

static struct here begin(void)
{
    struct here h = { .c = core_new(), .now_ms = 1000 };
    struct event ev = { .t_ms = h.now_ms, .kind = EVENT_TENANT };
    ev.tenant = (struct event_tenant){ .name = STR("t"),
                                       .weight_milli = 1000,
                                       .limit = AMOUNTS_NO_LIMIT,
                                       .user_limit = AMOUNTS_NO_LIMIT };
    CHECK(core_apply(h.c, &ev, &h.e) == 0);
    ev = (struct event){ .t_ms = h.now_ms, .kind = EVENT_NODE };
    ev.node = (struct event_node){
        .name = STR("n"), .model = STR("m"), .gpus = 4, .cpu_milli = 8000, .mem_mib = 8000
    };
    CHECK(core_apply(h.c, &ev, &h.e) == 0);
    return h;
}

static void end(struct here *h)
{
    CHECK(core_audit(h->c, &h->e) == 0);
    core_free(h->c);
    arena_free(&h->a);
}

static int submit_as(struct here *h, struct event_submit with)
{
    struct event ev = { .t_ms = h->now_ms, .kind = EVENT_SUBMIT, .submit = with };
    ev.submit.id.v = h->last + 1;
    ev.submit.tenant = STR("t");
    ev.submit.user = STR("u");
    ev.submit.request = (struct request){ .replicas = 1, .gpus = 1 };
    ev.submit.priority = PRIO_NORMAL;
    if (core_apply(h->c, &ev, &h->e) < 0)
        return -1;
    h->last++;
    return 0;
}

static uint64_t submit(struct here *h, struct event_submit with)
{
    CHECK(submit_as(h, with) == 0);
    return h->last;
}

static uint64_t submit_after(struct here *h, uint64_t first, uint32_t n, enum after_when when)
{
    struct after a = { { first }, n, (uint8_t)when };
    return submit(h, (struct event_submit){ .after = &a, .afters = 1 });
}

static void step(struct here *h, uint64_t job, enum job_event what)
{
    struct event ev = { .t_ms = h->now_ms, .kind = EVENT_JOB, .job = { { job }, what } };
    CHECK(core_apply(h->c, &ev, &h->e) == 0);
}

static void pass(struct here *h)
{
    struct plan p;
    core_pass(h->c, h->now_ms, &h->a, &p);
    for (size_t i = 0; i < p.n; i++)
        step(h, p.action[i].job.v, JOB_EV_STARTED);
}

static const char *state(struct here *h, uint64_t job)
{
    struct job_view v;
    if (!core_job(h->c, (job_id){ job }, &v))
        return "ended";
    return v.state == JOB_QUEUED ? reason_slug(v.why) : job_state_name(v.state);
}

static uint64_t never(struct here *h)
{
    struct never n;
    return core_never(h->c, &n) ? n.job.v : 0;
}

static void a_job_begins_when_its_time_has_come(void)
{
    struct here h = begin();
    uint64_t job = submit(&h, (struct event_submit){ .begin_ms = 5000 });
    pass(&h);
    CHECK_STR(state(&h, job), "begin");
    CHECK(core_wake_ms(h.c) == 5000 && core_totals(h.c).waiting == 0);
    h.now_ms = 4999;
    pass(&h);
    CHECK_STR(state(&h, job), "begin");
    h.now_ms = 5000;
    pass(&h);
    CHECK_STR(state(&h, job), "running");
    CHECK(core_wake_ms(h.c) == INT64_MAX);
    end(&h);
}

static void the_next_to_begin_is_the_one_to_wake_for(void)
{
    struct here h = begin();
    submit(&h, (struct event_submit){ .begin_ms = 9000 });
    uint64_t soon = submit(&h, (struct event_submit){ .begin_ms = 7000 });
    submit(&h, (struct event_submit){ .begin_ms = 8000 });
    CHECK(core_wake_ms(h.c) == 7000);
    step(&h, soon, JOB_EV_CANCEL);
    CHECK(core_wake_ms(h.c) == 8000);
    end(&h);
}

static void a_time_that_is_over_keeps_nothing(void)
{
    struct here h = begin();
    uint64_t job = submit(&h, (struct event_submit){ .begin_ms = 10 });
    CHECK(core_wake_ms(h.c) == INT64_MAX);
    pass(&h);
    CHECK_STR(state(&h, job), "running");
    end(&h);
}

static void begin_follows_a_clock_that_was_set_back(void)
{
    struct here h = begin();
    h.now_ms = 100000;
    pass(&h);
    h.now_ms = 2000; /* the core's own time stays where it was */
    uint64_t job = submit(&h, (struct event_submit){ .begin_ms = 3000 });
    pass(&h);
    CHECK_STR(state(&h, job), "begin");
    h.now_ms = 3000;
    pass(&h);
    CHECK_STR(state(&h, job), "running");
    end(&h);
}

static void again(void *ctx, const struct event *ev)
{
    struct err e;
    CHECK(core_apply(ctx, ev, &e) == 0);
}

/* Its submit is then dated by the core's own time, after its begin. */
static void a_snapshot_keeps_it_though_the_clock_was_set_back(void)
{
    struct here h = begin();
    struct job_view v;
    h.now_ms = 100000;
    pass(&h);
    h.now_ms = 2000;
    uint64_t job = submit(&h, (struct event_submit){ .begin_ms = 3000 });
    struct core *copy = core_new();
    core_snapshot(h.c, again, copy);
    CHECK(core_wake_ms(copy) == 3000 && core_job(copy, (job_id){ job }, &v));
    CHECK(v.begin_ms == 3000 && v.why == WHY_BEGIN);
    core_free(copy);
    end(&h);
}

static void the_wait_counts_from_when_nothing_kept_it(void)
{
    struct here h = begin();
    struct job_view v;
    uint64_t first = submit(&h, (struct event_submit){ 0 });
    uint64_t other = submit_after(&h, first, 1, AFTER_ANY);
    uint64_t timed = submit(&h, (struct event_submit){ .begin_ms = 5000 });
    pass(&h);
    h.now_ms = 6000;
    step(&h, first, JOB_EV_EXITED_OK);
    CHECK(core_job(h.c, (job_id){ other }, &v) && v.since_ms == 6000 && v.submit_ms == 1000);
    pass(&h);
    CHECK(core_job(h.c, (job_id){ timed }, &v) && v.since_ms == 5000 && v.submit_ms == 1000);
    end(&h);
}

/* Asking early for a late start must not gain anything: neither age nor room kept. */
static void room_is_kept_for_it_after_a_wait_of_its_own(void)
{
    struct here h = begin();
    const int64_t wait_ms = policy_default().claim_after_ms, at_ms = h.now_ms + 10 * wait_ms;
    for (int i = 0; i < 4; i++)
        submit(&h, (struct event_submit){ 0 });
    pass(&h);
    submit(&h, (struct event_submit){ .begin_ms = at_ms });
    h.now_ms = at_ms + wait_ms - 1;
    pass(&h);
    CHECK_INT(core_totals(h.c).kept_nodes, 0);
    h.now_ms = at_ms + 2 * wait_ms;
    pass(&h);
    CHECK_INT(core_totals(h.c).kept_nodes, 1);
    end(&h);
}

/* How the first one ends, what the second one waits for, and what becomes of that. */
static void a_job_starts_after_another_has_ended_as_it_asks(void)
{
    static const struct {
        enum job_event ends;
        enum after_when when;
        const char *then;
    } cases[] = {
        { JOB_EV_EXITED_OK, AFTER_OK, "running" },   { JOB_EV_EXITED_OK, AFTER_ANY, "running" },
        { JOB_EV_EXITED_OK, AFTER_BAD, "after" },    { JOB_EV_EXITED_BAD, AFTER_OK, "after" },
        { JOB_EV_EXITED_BAD, AFTER_ANY, "running" }, { JOB_EV_EXITED_BAD, AFTER_BAD, "running" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct here h = begin();
        uint64_t first = submit(&h, (struct event_submit){ 0 });
        uint64_t job = submit_after(&h, first, 1, cases[i].when);
        pass(&h);
        CHECK_STR(state(&h, job), "after");
        step(&h, first, cases[i].ends);
        pass(&h);
        CHECK_STR(state(&h, job), cases[i].then);
        CHECK_AT(i, never(&h) == (strcmp(cases[i].then, "after") == 0 ? job : 0));
        end(&h);
    }
}

static void a_cancelled_job_has_not_succeeded(void)
{
    struct here h = begin();
    uint64_t first = submit(&h, (struct event_submit){ .held = true });
    uint64_t ok = submit_after(&h, first, 1, AFTER_OK);
    uint64_t bad = submit_after(&h, first, 1, AFTER_BAD);
    step(&h, first, JOB_EV_CANCEL);
    pass(&h);
    CHECK(never(&h) == ok);
    CHECK_STR(state(&h, bad), "running");
    end(&h);
}

static void what_can_never_start_is_told_in_order_and_brings_others_with_it(void)
{
    struct here h = begin();
    struct never n;
    uint64_t first = submit(&h, (struct event_submit){ 0 });
    uint64_t second = submit_after(&h, first, 1, AFTER_OK);
    uint64_t third = submit_after(&h, second, 1, AFTER_OK);
    uint64_t fourth = submit_after(&h, first, 1, AFTER_OK);
    uint64_t last = submit_after(&h, third, 1, AFTER_BAD);
    pass(&h);
    step(&h, first, JOB_EV_EXITED_BAD);
    CHECK(core_never(h.c, &n) && n.job.v == second && n.by.v == first);
    CHECK(n.after.first.v == first && n.after.n == 1 && n.after.when == AFTER_OK);
    step(&h, second, JOB_EV_CANCEL);
    CHECK(never(&h) == third);
    step(&h, third, JOB_EV_CANCEL);
    CHECK(never(&h) == fourth);
    step(&h, fourth, JOB_EV_CANCEL);
    CHECK(never(&h) == 0);
    pass(&h);
    CHECK_STR(state(&h, last), "running");
    end(&h);
}

static void an_array_is_over_when_all_its_jobs_are(void)
{
    struct here h = begin();
    uint64_t a = submit(&h, (struct event_submit){ 0 });
    submit(&h, (struct event_submit){ 0 });
    submit(&h, (struct event_submit){ 0 });
    uint64_t ok = submit_after(&h, a, 3, AFTER_OK);
    uint64_t bad = submit_after(&h, a, 3, AFTER_BAD);
    uint64_t any = submit_after(&h, a, 3, AFTER_ANY);
    pass(&h);
    step(&h, a + 1, JOB_EV_EXITED_OK);
    CHECK(never(&h) == 0);
    step(&h, a, JOB_EV_EXITED_BAD);
    CHECK(never(&h) == ok); /* no need to wait for the others */
    step(&h, ok, JOB_EV_CANCEL);
    pass(&h);
    CHECK_STR(state(&h, bad), "after");
    CHECK_STR(state(&h, any), "after");
    step(&h, a + 2, JOB_EV_EXITED_OK);
    pass(&h);
    CHECK_STR(state(&h, bad), "running");
    CHECK_STR(state(&h, any), "running");
    end(&h);
}

static void an_array_without_failure_is_not_bad(void)
{
    struct here h = begin();
    uint64_t a = submit(&h, (struct event_submit){ 0 });
    submit(&h, (struct event_submit){ 0 });
    uint64_t bad = submit_after(&h, a, 2, AFTER_BAD);
    uint64_t one = submit_after(&h, a, 1, AFTER_OK); /* the first of them alone */
    pass(&h);
    step(&h, a, JOB_EV_EXITED_OK);
    CHECK(never(&h) == 0);
    pass(&h);
    CHECK_STR(state(&h, one), "running");
    step(&h, a + 1, JOB_EV_EXITED_OK);
    CHECK(never(&h) == bad);
    end(&h);
}

static void all_that_it_waits_for_has_to_be_over(void)
{
    struct here h = begin();
    uint64_t a = submit(&h, (struct event_submit){ 0 });
    uint64_t b = submit(&h, (struct event_submit){ 0 });
    struct after both[] = { { { a }, 1, AFTER_OK }, { { b }, 1, AFTER_ANY } }, open[AFTER_MAX];
    uint64_t job =
        submit(&h, (struct event_submit){ .begin_ms = 5000, .after = both, .afters = 2 });
    pass(&h);
    CHECK(core_job_after(h.c, (job_id){ job }, open) == 2 && open[0].first.v == a);
    step(&h, a, JOB_EV_EXITED_OK);
    CHECK(core_job_after(h.c, (job_id){ job }, open) == 1 && open[0].first.v == b);
    h.now_ms = 6000;
    pass(&h);
    CHECK_STR(state(&h, job), "after");
    step(&h, b, JOB_EV_EXITED_BAD);
    pass(&h);
    CHECK_STR(state(&h, job), "running");
    end(&h);
}

static void a_hold_is_one_thing_and_these_are_another(void)
{
    struct here h = begin();
    uint64_t first = submit(&h, (struct event_submit){ 0 });
    uint64_t job = submit_after(&h, first, 1, AFTER_OK);
    step(&h, job, JOB_EV_HOLD);
    CHECK_STR(state(&h, job), "held");
    pass(&h);
    step(&h, first, JOB_EV_EXITED_OK);
    pass(&h);
    CHECK_STR(state(&h, job), "held"); /* nothing but the hold */
    step(&h, job, JOB_EV_RELEASE);
    pass(&h);
    CHECK_STR(state(&h, job), "running");
    uint64_t timed = submit(&h, (struct event_submit){ .begin_ms = 5000, .held = true });
    step(&h, timed, JOB_EV_RELEASE);
    pass(&h);
    CHECK_STR(state(&h, timed), "begin");
    end(&h);
}

static void a_job_that_was_cancelled_is_waited_for_by_nothing(void)
{
    struct here h = begin();
    uint64_t first = submit(&h, (struct event_submit){ 0 });
    for (int i = 0; i < 5; i++)
        step(&h, submit_after(&h, first, 1, AFTER_OK), JOB_EV_CANCEL);
    uint64_t job = submit_after(&h, first, 1, AFTER_OK);
    CHECK(core_audit(h.c, &h.e) == 0);
    pass(&h);
    step(&h, first, JOB_EV_EXITED_OK);
    pass(&h);
    CHECK_STR(state(&h, job), "running");
    CHECK(h.c->laters.by_job.n == 0 && h.c->laters.member_by_job.n == 0);
    end(&h);
}

static void refused(struct here *h, struct event_submit s, const char *says)
{
    struct core_totals before = core_totals(h->c);
    CHECK(submit_as(h, s) < 0);
    if (!strstr(h->e.msg, says))
        test_fail(__FILE__, __LINE__, "'%s' does not say '%s'", h->e.msg, says);
    CHECK(core_totals(h->c).waiting == before.waiting && core_audit(h->c, &h->e) == 0);
}

static void what_makes_no_sense_is_refused(void)
{
    struct here h = begin();
    uint64_t job = submit(&h, (struct event_submit){ 0 });
    struct after a[AFTER_MAX + 1] = { { { 99 }, 1, AFTER_OK } };
    refused(&h, (struct event_submit){ .begin_ms = -1 }, "not a time");
    refused(&h, (struct event_submit){ .begin_ms = TIME_MAX_MS + 1 }, "not a time");
    refused(&h, (struct event_submit){ .after = a, .afters = 1 }, "there is no job 99");
    CHECK_STR(h.e.field, "after");
    a[0] = (struct after){ { job }, 2, AFTER_OK };
    refused(&h, (struct event_submit){ .after = a, .afters = 1 }, "there is no job 2");
    a[0] = (struct after){ { job }, 0, AFTER_OK };
    refused(&h, (struct event_submit){ .after = a, .afters = 1 }, "0 jobs from 1 on");
    a[0] = (struct after){ { job }, 1, AFTER_COUNT };
    refused(&h, (struct event_submit){ .after = a, .afters = 1 }, "unknown way to end");
    refused(&h, (struct event_submit){ .after = a, .afters = AFTER_MAX + 1 }, "at most 64");
    refused(&h, (struct event_submit){ .begin_ms = 5000, .frozen = 1 }, "frozen");
    step(&h, job, JOB_EV_CANCEL);
    a[0] = (struct after){ { job }, 1, AFTER_OK };
    refused(&h, (struct event_submit){ .after = a, .afters = 1 }, "job 1 has ended");
    end(&h);
}

static void says(struct here *h, uint64_t job, size_t line, const char *text)
{
    struct explanation x;
    CHECK(core_explain(h->c, (job_id){ job }, h->now_ms, &x, &h->e) == 0);
    CHECK_AT(job, line < x.n);
    CHECK_STR(x.line[line].text, text);
}

static void why_is_told_with_figures(void)
{
    struct here h = begin();
    uint64_t a = submit(&h, (struct event_submit){ 0 });
    submit(&h, (struct event_submit){ 0 });
    pass(&h);
    uint64_t timed = submit(&h, (struct event_submit){ .begin_ms = 3601000, .held = true });
    says(&h, timed, 0, "it is held: it waits until someone releases it");
    says(&h, timed, 1, "it begins not before 1970-01-01T01:00:01Z, in 1h");
    step(&h, timed, JOB_EV_RELEASE);
    h.now_ms = 3601000;
    says(&h, timed, 0, "there is room: the next pass starts it");
    says(&h, submit_after(&h, a, 1, AFTER_OK), 0, "it starts after job 1 has succeeded");
    says(&h, submit_after(&h, a, 1, AFTER_BAD), 0, "it starts after job 1 has failed");
    says(&h, submit_after(&h, a, 2, AFTER_ANY), 0,
         "it starts after jobs 1 to 2 have all ended: 2 have not ended");
    struct after many[6];
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = (struct after){ { a }, 1, AFTER_ANY };
    says(&h, submit(&h, (struct event_submit){ .after = many, .afters = 6 }), 3,
         "it starts after job 1 has ended, and after 2 more");
    step(&h, a, JOB_EV_EXITED_BAD);
    says(&h, never(&h), 0,
         "it can never start: it was to start after job 1, which ended otherwise");
    while (never(&h))
        step(&h, never(&h), JOB_EV_CANCEL);
    end(&h);
}

/* What a hundred thousand cost: an array after an array. */
static void an_array_after_an_array_costs_what_it_sets_free(void)
{
    enum {
        MANY = 20000
    };
    struct here h = begin();
    for (int i = 0; i < MANY; i++)
        submit(&h, (struct event_submit){ .held = true });
    for (int i = 0; i < MANY; i++)
        submit_after(&h, 1, MANY, i % 2 ? AFTER_BAD : AFTER_ANY);
    const struct laters *l = &h.c->laters;
    CHECK(l->watches == 1 && l->members == MANY);
    /* Set free in the order they came, each joins the end of the queue; else each would walk it. */
    for (uint32_t k = l->watch[0].links, n = 1; k != NONE; k = l->link[k].next, n++)
        CHECK_AT(n, l->at[l->link[k].later].job == MANY + n);
    for (uint64_t id = 1; id < MANY; id++)
        step(&h, id, JOB_EV_CANCEL);
    CHECK(core_totals(h.c).waiting == 0);
    step(&h, MANY, JOB_EV_CANCEL);
    CHECK(core_totals(h.c).waiting == MANY);
    end(&h);
}

static const struct test tests[] = {
    { "a job begins when its time has come", a_job_begins_when_its_time_has_come },
    { "the next to begin is the one to wake for", the_next_to_begin_is_the_one_to_wake_for },
    { "a time that is over keeps nothing", a_time_that_is_over_keeps_nothing },
    { "begin follows a clock that was set back", begin_follows_a_clock_that_was_set_back },
    { "a snapshot keeps it though the clock was set back",
      a_snapshot_keeps_it_though_the_clock_was_set_back },
    { "the wait counts from when nothing kept it", the_wait_counts_from_when_nothing_kept_it },
    { "room is kept for it after a wait of its own", room_is_kept_for_it_after_a_wait_of_its_own },
    { "a job starts after another has ended as it asks",
      a_job_starts_after_another_has_ended_as_it_asks },
    { "a cancelled job has not succeeded", a_cancelled_job_has_not_succeeded },
    { "what can never start is told in order and brings others with it",
      what_can_never_start_is_told_in_order_and_brings_others_with_it },
    { "an array is over when all its jobs are", an_array_is_over_when_all_its_jobs_are },
    { "an array without failure is not bad", an_array_without_failure_is_not_bad },
    { "all that it waits for has to be over", all_that_it_waits_for_has_to_be_over },
    { "a hold is one thing and these are another", a_hold_is_one_thing_and_these_are_another },
    { "a job that was cancelled is waited for by nothing",
      a_job_that_was_cancelled_is_waited_for_by_nothing },
    { "what makes no sense is refused", what_makes_no_sense_is_refused },
    { "why is told with figures", why_is_told_with_figures },
    { "an array after an array costs what it sets free",
      an_array_after_an_array_costs_what_it_sets_free },
};
TEST_CASES(tests)
