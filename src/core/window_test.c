/* Windows: when machines may work, who starts in what is left of one, who leaves at its end. */
#include "core/window.h"

#include "tests/lib/small.h"

#define NIGHT "Mon-Sun 20:00-08:00"
#define DAY_MS (24 * HOUR_MS)
#define SECOND_MS INT64_C(1000)

static void pool(struct small *s, const char *name, const char *calendar)
{
    small_apply(s,
                (struct event){ .kind = EVENT_POOL, .pool = { str_of(name), str_of(calendar) } });
}

static void lent_node(struct small *s, const char *name, uint32_t gpus, const char *of)
{
    struct event ev = node_event(name, "m", gpus);
    ev.node.pool = str_of(of);
    small_apply(s, ev);
}

/* A lab with one desk of two GPUs that is lent at night. */
static struct small night_new(void)
{
    struct small s = small_new();
    small_tenant(&s, "a");
    pool(&s, "desks", NIGHT);
    lent_node(&s, "desk", 2, "desks");
    return s;
}

struct life {
    int64_t limit_ms;
    uint32_t thaw_cost_ms;
    bool restarts;
};

static uint64_t submit(struct small *s, uint32_t replicas, uint16_t gpus, struct life l)
{
    struct event ev = submit_event(s, "a", (struct request){ .replicas = replicas, .gpus = gpus });
    ev.submit.limit_ms = l.limit_ms;
    ev.submit.thaw_cost_ms = l.thaw_cost_ms;
    ev.submit.restarts = l.restarts;
    small_apply(s, ev);
    return ++s->last;
}

static const struct life saves = { .thaw_cost_ms = 10000 };

static void a_class_holds_what_it_is_for_and_not_much_more(void)
{
    CHECK(window_stay_of(INT64_MAX) == 0 && window_stay_ms(0) == INT64_MAX);
    CHECK(window_stay_of(30 * DAY_MS) == 0);
    for (int64_t ms = 1; ms <= 14 * DAY_MS; ms += ms / 7 + 1) {
        uint8_t stay = window_stay_of(ms);
        CHECK(stay && window_stay_ms(stay) >= ms);
        CHECK(window_stay_ms(stay) <= MAX(2 * ms, MINUTE_MS));
    }
}

static void a_closed_machine_takes_nothing_and_an_open_one_does(void)
{
    AUTO(small_free) struct small s = night_new();
    struct node_view v;
    uint64_t job = submit(&s, 1, 2, saves);
    CHECK(small_pass_at(&s, 9 * HOUR_MS) == 0);
    CHECK(core_totals(s.c).total.of[RES_GPU] == 0 && core_wake_ms(s.c) == 20 * HOUR_MS);
    CHECK(core_node(s.c, (node_id){ 0 }, &v) && !v.open && v.opens_ms == 20 * HOUR_MS);
    CHECK_STR(v.pool, "desks");
    CHECK(small_pass_at(&s, 20 * HOUR_MS - 1) == 0);
    CHECK(small_pass_at(&s, 20 * HOUR_MS) == 1 && small_started(&s, job));
    CHECK(core_totals(s.c).total.of[RES_GPU] == 2000);
    CHECK(core_node(s.c, (node_id){ 0 }, &v) && v.open && v.closes_ms == 32 * HOUR_MS);
}

static void no_start_is_forecast_while_all_machines_are_closed(void)
{
    AUTO(small_free) struct small s = night_new();
    uint64_t job = submit(&s, 1, 2, saves);
    struct eta eta;
    CHECK(small_pass_at(&s, 9 * HOUR_MS) == 0 && core_eta(s.c, (job_id){ job }, s.now_ms, &eta));
    CHECK(eta.p50_ms >= 20 * HOUR_MS && eta.p90_ms >= eta.p50_ms);
    uint64_t late = submit(&s, 1, 2, saves);
    CHECK(small_pass_at(&s, 20 * HOUR_MS) == 1 &&
          small_pass_at(&s, 32 * HOUR_MS - 10 * MINUTE_MS) == 0);
    CHECK(core_eta(s.c, (job_id){ late }, s.now_ms, &eta) && eta.p50_ms >= 44 * HOUR_MS);
    uint64_t endless = submit(&s, 1, 2, (struct life){ 0 });
    CHECK(small_pass_at(&s, 33 * HOUR_MS) == 0 &&
          !core_eta(s.c, (job_id){ endless }, s.now_ms, &eta));
}

static void what_cannot_be_frozen_starts_only_if_its_limit_fits(void)
{
    AUTO(small_free) struct small s = night_new();
    uint64_t endless = submit(&s, 1, 1, (struct life){ 0 });
    uint64_t longer = submit(&s, 1, 1, (struct life){ .limit_ms = 6 * HOUR_MS });
    uint64_t fits = submit(&s, 1, 1, (struct life){ .limit_ms = 100 * MINUTE_MS });
    CHECK(small_pass_at(&s, 30 * HOUR_MS) == 1 && small_started(&s, fits)); /* two hours are left */
    CHECK(small_pass_at(&s, 44 * HOUR_MS) == 1 && small_started(&s, longer));
    small_job(&s, fits, JOB_EV_STARTED);
    small_job(&s, fits, JOB_EV_EXITED_OK);
    CHECK(small_pass_at(&s, 44 * HOUR_MS + 1) == 0);
    small_node(&s, "server", 1);
    CHECK(small_pass_at(&s, 44 * HOUR_MS + 2) == 1 && small_started(&s, endless));
}

static void what_can_be_frozen_starts_until_the_lead_and_leaves_in_time(void)
{
    AUTO(small_free) struct small s = night_new();
    uint64_t first = submit(&s, 1, 1, saves);
    CHECK(small_pass_at(&s, 32 * HOUR_MS - 31 * MINUTE_MS) == 1);
    small_job(&s, first, JOB_EV_STARTED);
    CHECK(core_wake_ms(s.c) == 32 * HOUR_MS - 30 * MINUTE_MS); /* a look before the end */
    uint64_t late = submit(&s, 1, 1, saves);
    CHECK(small_pass_at(&s, 32 * HOUR_MS - 29 * MINUTE_MS) == 0);
    int64_t leave_ms = 32 * HOUR_MS - 30 * SECOND_MS;
    while (core_wake_ms(s.c) < leave_ms) /* only reviews */
        CHECK(small_pass_at(&s, core_wake_ms(s.c)) == 0);
    CHECK(core_wake_ms(s.c) == leave_ms && small_pass_at(&s, leave_ms) == 1);
    CHECK(s.plan.action[0].kind == ACT_TAKE && s.plan.action[0].by.v == 0);
    CHECK(small_state(&s, first) == JOB_FREEZING);
    s.now_ms += 5000;
    small_job(&s, first, JOB_EV_FROZE);
    CHECK(small_pass_at(&s, 32 * HOUR_MS) == 0 && core_totals(s.c).overstays == 0);
    CHECK(small_pass_at(&s, 44 * HOUR_MS) == 2);
    CHECK(small_state(&s, first) == JOB_THAWING && small_state(&s, late) == JOB_STARTING);
}

static void a_dear_freeze_begins_earlier_and_needs_a_longer_run(void)
{
    AUTO(small_free) struct small s = night_new();
    uint64_t job = submit(&s, 1, 1, (struct life){ .thaw_cost_ms = 600000 });
    CHECK(small_pass_at(&s, 32 * HOUR_MS - 35 * MINUTE_MS) == 0);
    CHECK(small_pass_at(&s, 44 * HOUR_MS) == 1);
    small_job(&s, job, JOB_EV_STARTED);
    int64_t leave_ms = 56 * HOUR_MS - 20 * MINUTE_MS - WINDOW_SPARE_MS;
    CHECK(small_pass_at(&s, leave_ms - 1) == 0);
    CHECK(small_pass_at(&s, leave_ms) == 1);
}

static struct leave leave_of(struct small *s, uint64_t job)
{
    struct leave l = { 0 };
    CHECK(core_leave(s->c, (job_id){ job }, LEAVE_BY_WINDOW, &l));
    return l;
}

static void what_holds_a_machine_is_known_to_leave_it(void)
{
    AUTO(small_free) struct small s = night_new();
    int64_t close_ms = 32 * HOUR_MS;
    struct leave l;
    uint64_t frozen = submit(&s, 1, 1, saves);
    CHECK(!core_leave(s.c, (job_id){ frozen }, LEAVE_BY_WINDOW, &l));
    uint64_t short_one = submit(&s, 1, 1, (struct life){ .limit_ms = HOUR_MS });
    CHECK(small_pass_at(&s, 20 * HOUR_MS) == 2);
    small_job(&s, frozen, JOB_EV_STARTED);
    small_job(&s, short_one, JOB_EV_STARTED);
    l = leave_of(&s, frozen);
    CHECK(l.how == LEAVE_FROZEN && l.at_ms == close_ms - 30 * SECOND_MS);
    l = leave_of(&s, short_one);
    CHECK(l.how == LEAVE_ENDS && l.at_ms == 21 * HOUR_MS);
    pool(&s, "desks", "Mon-Sun 20:00-20:30"); /* changed: its limit is too long now */
    small_pass_at(&s, 20 * HOUR_MS + MINUTE_MS);
    l = leave_of(&s, short_one);
    CHECK(l.how == LEAVE_STAYS && l.at_ms == 21 * HOUR_MS);
    pool(&s, "desks", "");
    small_pass_at(&s, 20 * HOUR_MS + 2 * MINUTE_MS);
    CHECK(leave_of(&s, frozen).how == LEAVE_NEVER);
}

static void what_a_freeze_throws_back_starts_if_such_jobs_end_in_time(void)
{
    AUTO(small_free) struct small s = night_new();
    const struct life restarts = { .thaw_cost_ms = 10000, .restarts = true };
    uint64_t job = submit(&s, 1, 1, restarts);
    CHECK(small_pass_at(&s, 20 * HOUR_MS) == 0); /* nothing is known yet */
    small_job(&s, job, JOB_EV_HOLD);
    small_node(&s, "server", 1);
    for (int i = 0; i < 400; i++) { /* all that run end after 90 seconds */
        uint64_t one = submit(&s, 1, 1, (struct life){ 0 });
        CHECK(small_pass_at(&s, 32 * HOUR_MS + i * 100 * SECOND_MS) == 1 && small_started(&s, one));
        small_job(&s, one, JOB_EV_STARTED);
        s.now_ms += 90 * SECOND_MS;
        small_job(&s, one, JOB_EV_EXITED_OK);
    }
    small_node_state(&s, "server", NODE_DOWN);
    small_job(&s, job, JOB_EV_RELEASE);
    CHECK(small_pass_at(&s, 44 * HOUR_MS) == 1 && small_started(&s, job));
}

static void a_gang_leaves_as_a_whole(void)
{
    AUTO(small_free) struct small s = night_new();
    small_node(&s, "server", 2);
    uint64_t gang = submit(&s, 2, 2, saves);
    CHECK(small_pass_at(&s, 20 * HOUR_MS) == 1);
    small_job(&s, gang, JOB_EV_STARTED);
    CHECK(small_pass_at(&s, 32 * HOUR_MS - 30 * SECOND_MS) == 1);
    CHECK(s.plan.action[0].kind == ACT_TAKE && small_state(&s, gang) == JOB_FREEZING);
    small_job(&s, gang, JOB_EV_FROZE);
    CHECK(small_pass_at(&s, 32 * HOUR_MS) == 0); /* the server alone does not hold it */
    CHECK(small_pass_at(&s, 44 * HOUR_MS) == 1);
}

static void a_window_that_ends_at_once_is_reported_and_nothing_is_killed(void)
{
    AUTO(small_free) struct small s = night_new();
    uint64_t stays = submit(&s, 1, 1, (struct life){ .limit_ms = 2 * HOUR_MS });
    uint64_t leaves = submit(&s, 1, 1, saves);
    CHECK(small_pass_at(&s, 20 * HOUR_MS) == 2);
    small_job(&s, stays, JOB_EV_STARTED);
    small_job(&s, leaves, JOB_EV_STARTED);
    s.now_ms = 21 * HOUR_MS;
    pool(&s, "desks", "closed 1970-01-01");
    CHECK(small_pass_at(&s, 21 * HOUR_MS) == 1 && s.plan.action[0].job.v == leaves);
    CHECK(core_totals(s.c).overstays == 2); /* one of them is on its way */
    small_job(&s, leaves, JOB_EV_FROZE);
    CHECK(core_totals(s.c).overstays == 1 && small_state(&s, stays) == JOB_RUNNING);
    small_job(&s, stays, JOB_EV_EXITED_OK);
    CHECK(core_totals(s.c).overstays == 0);
    CHECK(small_pass_at(&s, 24 * HOUR_MS) == 1 && small_state(&s, leaves) == JOB_THAWING);
}

static void a_pool_without_a_calendar_is_always_open(void)
{
    AUTO(small_free) struct small s = night_new();
    uint64_t job = submit(&s, 1, 2, (struct life){ 0 });
    CHECK(small_pass_at(&s, 21 * HOUR_MS) == 0);
    pool(&s, "desks", "");
    CHECK(small_pass_at(&s, 21 * HOUR_MS) == 1 && small_started(&s, job));
    CHECK(core_wake_ms(s.c) == INT64_MAX);
}

static void jobs_that_wait_already_are_asked_what_they_need(void)
{
    AUTO(small_free) struct small s = night_new();
    pool(&s, "desks", "");
    uint64_t runs = submit(&s, 1, 2, (struct life){ 0 }), waits = submit(&s, 1, 2, saves);
    CHECK(small_pass_at(&s, 21 * HOUR_MS) == 1 && small_started(&s, runs));
    small_job(&s, runs, JOB_EV_STARTED);
    pool(&s, "desks", NIGHT);
    small_job(&s, runs, JOB_EV_EXITED_OK);
    CHECK(small_pass_at(&s, 21 * HOUR_MS + 1) == 1 && small_started(&s, waits));
}

static void a_window_that_was_shut_between_two_passes_counts_anew(void)
{
    AUTO(small_free) struct small s = night_new();
    uint64_t job = submit(&s, 1, 2, saves);
    CHECK(small_pass_at(&s, 32 * HOUR_MS - MINUTE_MS) == 0);
    CHECK(small_pass_at(&s, 45 * HOUR_MS) == 1 && small_started(&s, job));
}

static void a_clock_that_is_set_back_opens_a_window_again(void)
{
    AUTO(small_free) struct small s = night_new();
    uint64_t job = submit(&s, 1, 2, saves);
    CHECK(small_pass_at(&s, 32 * HOUR_MS + 1) == 0);
    CHECK(small_pass_at(&s, 32 * HOUR_MS - MINUTE_MS) == 0); /* open, but not for long enough */
    CHECK(small_pass_at(&s, 31 * HOUR_MS) == 1 && small_started(&s, job));
}

static void move(struct small *s, const char *node, const char *to)
{
    struct event ev = { .kind = EVENT_NODE_POOL, .node_pool = { str_of(node), str_of(to) } };
    small_apply(s, ev);
}

static void a_machine_moves_into_a_pool_and_out_of_one_with_what_runs_there(void)
{
    AUTO(small_free) struct small s = night_new();
    struct node_view v;
    uint64_t frozen = submit(&s, 1, 1, saves), stays = submit(&s, 1, 1, (struct life){ 0 });
    move(&s, "desk", "");
    CHECK(small_pass_at(&s, 10 * HOUR_MS) == 2); /* by day, for it is in no pool */
    small_job(&s, frozen, JOB_EV_STARTED);
    small_job(&s, stays, JOB_EV_STARTED);
    move(&s, "desk", "desks");
    CHECK(core_node(s.c, (node_id){ 0 }, &v) && strcmp(v.pool, "desks") == 0 && !v.open);
    CHECK(small_pass_at(&s, 10 * HOUR_MS + 1) == 1 && s.plan.action[0].job.v == frozen);
    CHECK(core_totals(s.c).overstays == 2 && core_totals(s.c).total.of[RES_GPU] == 0);
    uint64_t waits = submit(&s, 1, 2, saves);
    struct job_view j;
    CHECK(small_pass_at(&s, 10 * HOUR_MS + 2) == 0 && core_job(s.c, (job_id){ waits }, &j));
    CHECK(j.why == WHY_WINDOW); /* what it was before it moved is no machine that has no room */
    move(&s, "desk", "attic");  /* nobody has spoken of it: always open */
    CHECK(core_node(s.c, (node_id){ 0 }, &v) && strcmp(v.pool, "attic") == 0 && v.open);
    CHECK(core_totals(s.c).overstays == 0 && core_totals(s.c).total.of[RES_GPU] == 2000);
    struct err e = { 0 };
    CHECK_STR(core_audit(s.c, &e) == 0 ? "" : e.msg, "");
    struct event ev = { .t_ms = s.now_ms, .kind = EVENT_NODE_POOL };
    ev.node_pool.name = STR("nobody");
    CHECK(core_apply(s.c, &ev, &e) < 0 && e.code == ERR_NOT_FOUND);
}

static void what_an_owner_holds_is_said_to_be_held_and_has_no_forecast(void)
{
    AUTO(small_free) struct small s = night_new();
    struct explanation x;
    struct err e;
    uint64_t job = submit(&s, 1, 1, saves);
    struct event ev = { .kind = EVENT_POOL };
    ev.pool = (struct event_pool){ STR(POOL_HELD), STR("closed 1970-01-01..2200-12-31") };
    small_apply(&s, ev);
    move(&s, "desk", POOL_HELD);
    small_pass_at(&s, 21 * HOUR_MS);
    CHECK(core_explain(s.c, (job_id){ job }, s.now_ms, &x, &e) == 0 && x.n == 1 && !x.has_eta);
    CHECK(x.line[0].why == WHY_WINDOW);
    CHECK_STR(x.line[0].text, "1 machine that could run it is held by its owner until released");
    move(&s, "desk", "desks");
    CHECK(small_pass_at(&s, 21 * HOUR_MS + 1) == 1 && small_started(&s, job));
}

static void what_is_wrong_is_refused_and_changes_nothing(void)
{
    AUTO(small_free) struct small s = night_new();
    struct err e;
    struct event ev = node_event("other", "m", 1);
    ev.node.pool = STR("nobodys");
    CHECK(small_try(&s, ev, &e) < 0 && e.code == ERR_NOT_FOUND && strstr(e.msg, "'nobodys'"));
    CHECK(core_totals(s.c).nodes == 1);
    ev = (struct event){ .kind = EVENT_POOL, .pool = { STR("desks"), STR("Mon 25:00-26:00") } };
    CHECK(small_try(&s, ev, &e) < 0 && e.code == ERR_INVALID && strstr(e.msg, "pool 'desks'"));
    ev.pool = (struct event_pool){ STR(""), STR("") };
    CHECK(small_try(&s, ev, &e) < 0 && e.code == ERR_INVALID);
    CHECK(small_pass_at(&s, 20 * HOUR_MS) == 0 && core_totals(s.c).total.of[RES_GPU] == 2000);
}

static void why_names_the_window(void)
{
    AUTO(small_free) struct small s = night_new();
    struct explanation x;
    struct job_view v;
    struct err e;
    uint64_t job = submit(&s, 1, 1, saves), endless = submit(&s, 1, 1, (struct life){ 0 });
    small_pass_at(&s, 9 * HOUR_MS);
    CHECK(core_explain(s.c, (job_id){ job }, s.now_ms, &x, &e) == 0 && x.n == 1);
    CHECK(x.line[0].why == WHY_WINDOW);
    CHECK_STR(x.line[0].text, "1 machine that could run it is lent from 1970-01-01T20:00:00Z on");
    CHECK(core_job(s.c, (job_id){ job }, &v) && v.why == WHY_WINDOW && v.request.stay == 0);
    small_pass_at(&s, 20 * HOUR_MS);
    CHECK(core_explain(s.c, (job_id){ endless }, s.now_ms, &x, &e) == 0 && x.n == 1);
    CHECK_STR(x.line[0].text, "1 machine that could run it is given back at 1970-01-02T08:00:00Z: "
                              "it has no time limit, and cannot be frozen");
}

static void what_lent_machines_cannot_run_goes_first_on_the_others(void)
{
    AUTO(small_free) struct small s = night_new();
    small_node(&s, "server", 4);
    uint64_t small = submit(&s, 1, 2, saves), large = submit(&s, 1, 4, saves);
    uint64_t more = submit(&s, 1, 2, saves);
    CHECK(small_pass_at(&s, 20 * HOUR_MS) == 2);
    CHECK(small_started(&s, large) && small_started(&s, small) && !small_started(&s, more));
}

static const struct test tests[] = {
    { "a class holds what it is for and not much more",
      a_class_holds_what_it_is_for_and_not_much_more },
    { "a closed machine takes nothing and an open one does",
      a_closed_machine_takes_nothing_and_an_open_one_does },
    { "no start is forecast while all machines are closed",
      no_start_is_forecast_while_all_machines_are_closed },
    { "what cannot be frozen starts only if its limit fits",
      what_cannot_be_frozen_starts_only_if_its_limit_fits },
    { "what can be frozen starts until the lead and leaves in time",
      what_can_be_frozen_starts_until_the_lead_and_leaves_in_time },
    { "a dear freeze begins earlier and needs a longer run",
      a_dear_freeze_begins_earlier_and_needs_a_longer_run },
    { "what holds a machine is known to leave it", what_holds_a_machine_is_known_to_leave_it },
    { "what a freeze throws back starts if such jobs end in time",
      what_a_freeze_throws_back_starts_if_such_jobs_end_in_time },
    { "a gang leaves as a whole", a_gang_leaves_as_a_whole },
    { "a window that ends at once is reported and nothing is killed",
      a_window_that_ends_at_once_is_reported_and_nothing_is_killed },
    { "a pool without a calendar is always open", a_pool_without_a_calendar_is_always_open },
    { "jobs that wait already are asked what they need",
      jobs_that_wait_already_are_asked_what_they_need },
    { "a window that was shut between two passes counts anew",
      a_window_that_was_shut_between_two_passes_counts_anew },
    { "a clock that is set back opens a window again",
      a_clock_that_is_set_back_opens_a_window_again },
    { "a machine moves into a pool and out of one, with what runs there",
      a_machine_moves_into_a_pool_and_out_of_one_with_what_runs_there },
    { "what is wrong is refused and changes nothing",
      what_is_wrong_is_refused_and_changes_nothing },
    { "why names the window", why_names_the_window },
    { "what an owner holds is said to be held and has no forecast",
      what_an_owner_holds_is_said_to_be_held_and_has_no_forecast },
    { "what lent machines cannot run goes first on the others",
      what_lent_machines_cannot_run_goes_first_on_the_others },
};
TEST_CASES(tests)
