/* A wall clock that jumps below a control plane: nothing is removed, and nobody is billed. */
#include "control/state.h"
#include "store/usage.h"
#include "tests/lib/controlling.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)
#define LONG                                                                                       \
    "{\"command\":[\"x\"],\"resources\":{\"gpus\":2},\"env\":{\"SIM_RUN_MS\":\"900000000000\"}}"

struct jumpy {
    struct controlling t;
    struct steady steady;
    int64_t jump_ms;
};

static int64_t wall(void *self)
{
    struct jumpy *j = self;
    return j->t.now_ms + j->jump_ms;
}

static struct jumpy *begin(void)
{
    struct jumpy *j = xcalloc(1, sizeof *j);
    controlling_begin(&j->t, NULL);
    controlling_kill(&j->t);
    j->t.now_ms += 200 * DAY_MS;
    struct steady_config c = { { .now_ms = wall, .self = j }, clock_manual(&j->t.now_ms), "boot" };
    steady_begin(&j->steady, &c, STR(""));
    j->t.steady = &j->steady;
    controlling_boot(&j->t);
    return j;
}

static void end_p(struct jumpy **j)
{
    controlling_end(&(*j)->t);
    free(*j);
}

static int64_t gpu_ms(struct jumpy *j)
{
    struct store_usages u = { 0 };
    struct err e;
    int64_t now_ms = control_now_ms(j->t.c);
    struct store_span all = { 0, INT64_MAX / 4, now_ms, 0 };
    CHECK(store_usage(j->t.s.store, &storing_all, &all, &j->t.s.arena, &u, &e) == 0);
    return u.n ? (int64_t)u.v[0].gpu_ms : 0;
}

static int64_t share_ms(struct jumpy *j)
{
    struct share_view v;
    int64_t sum = 0;
    for (uint32_t i = 1;
         core_share(control_core(j->t.c), (share_id){ i }, control_now_ms(j->t.c), &v); i++)
        sum += v.is_user ? (int64_t)(v.past_milli) : 0;
    return sum;
}

static void step_bills_nobody(int64_t by_ms)
{
    AUTO(end_p) struct jumpy *j = begin();
    struct controlling *t = &j->t;
    uint64_t runs = controlling_submit(t, LONG), also = controlling_submit(t, LONG);
    uint64_t waits = controlling_submit(t, LONG);
    controlling_wait(t, 2 * HOUR_MS);
    int64_t used = gpu_ms(j), share = share_ms(j);
    CHECK(used > 7 * HOUR_MS && used <= 8 * HOUR_MS && share > 0);
    j->jump_ms = by_ms;
    CHECK(control_clock(t->c).holds);
    CHECK(gpu_ms(j) == used && share_ms(j) == share);
    control_clock_confirm(t->c);
    controlling_settle(t);
    CHECK(!control_clock(t->c).holds);
    CHECK_INT(control_now_ms(t->c), t->now_ms + by_ms);
    CHECK(gpu_ms(j) == used);
    CHECK(share_ms(j) >= share * 99 / 100 && share_ms(j) <= share * 101 / 100);
    CHECK_STR(controlling_journal_differs(t), "");
    CHECK_STR(controlling_state(t, waits), "queued");
    controlling_wait(t, HOUR_MS);
    CHECK(controlling_verb(t, runs, VERB_CANCEL) == 0 &&
          controlling_verb(t, also, VERB_CANCEL) == 0);
    controlling_wait(t, 60000);
    CHECK_STR(controlling_state(t, waits), "running");
    struct store_job ended = controlling_job(t, runs);
    int64_t ran_ms = ended.now.ended_ms - ended.now.started_ms;
    CHECK(ran_ms > 3 * HOUR_MS - 60000 && ran_ms < 3 * HOUR_MS + 120000);
    CHECK(gpu_ms(j) < 13 * HOUR_MS);
    controlling_kill(t);
    controlling_boot(t);
    CHECK_STR(controlling_state(t, waits), "running");
    CHECK_STR(controlling_journal_differs(t), "");
}

/* What a daemon that starts now would go by. */
static int64_t marked_ahead_ms(struct jumpy *j)
{
    struct steady next;
    struct str mark;
    struct err e;
    CHECK(store_meta(j->t.s.store, CONTROL_CLOCK_META, &j->t.s.arena, &mark, &e) == 0);
    steady_begin(&next, &j->steady.config, mark);
    return steady_now_ms(&next) - j->t.now_ms;
}

static void a_kill_does_not_undo_a_step(void)
{
    AUTO(end_p) struct jumpy *j = begin();
    controlling_real(&j->t, 50);
    j->jump_ms = -5 * HOUR_MS;
    CHECK(control_clock(j->t.c).holds);
    CHECK_INT(marked_ahead_ms(j), 0);
    control_clock_confirm(j->t.c);
    controlling_settle(&j->t);
    CHECK(!control_clock(j->t.c).holds);
    CHECK_INT(marked_ahead_ms(j), -5 * HOUR_MS);
}

static void a_step_ahead_bills_nobody(void)
{
    step_bills_nobody(400 * DAY_MS);
}

static void a_step_back_bills_nobody(void)
{
    step_bills_nobody(-5 * HOUR_MS);
    step_bills_nobody(-100 * DAY_MS);
}

static void a_jump_is_written_down_for_the_next_start(void)
{
    AUTO(end_p) struct jumpy *j = begin();
    struct str mark;
    struct err e;
    controlling_real(&j->t, 50);
    controlling_settle(&j->t);
    CHECK(store_meta(j->t.s.store, CONTROL_CLOCK_META, &j->t.s.arena, &mark, &e) == 0);
    CHECK(strstr(mark.p, " boot"));
}

static const struct test tests[] = {
    { "a step ahead bills nobody", a_step_ahead_bills_nobody },
    { "a step back bills nobody", a_step_back_bills_nobody },
    { "a kill does not undo a step", a_kill_does_not_undo_a_step },
    { "where time stood is written down for the next start",
      a_jump_is_written_down_for_the_next_start },
};
TEST_CASES(tests)
