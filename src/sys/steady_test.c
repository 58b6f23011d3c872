/* Time that goes on evenly, on clocks that are turned by hand. */
#include "sys/steady.h"

#include <stdio.h>

#include "tests/lib/test.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)
#define T0 (INT64_C(20000) * DAY_MS)

struct turned {
    int64_t wall_ms, boot_ms;
    struct steady s;
    char mark[128];
};

static void begin(struct turned *t, const char *boot_id)
{
    struct steady_config c = { clock_manual(&t->wall_ms), clock_manual(&t->boot_ms), boot_id };
    steady_begin(&t->s, &c, str_of(t->mark));
}

static struct turned first(void)
{
    return (struct turned){ .wall_ms = T0, .boot_ms = 50000 };
}

static void pass(struct turned *t, int64_t ms)
{
    t->wall_ms += ms;
    t->boot_ms += ms;
}

static void keep_mark(struct turned *t)
{
    AUTO(buf_free) struct buf b = BUF(100);
    steady_mark(&t->s, &b);
    snprintf(t->mark, sizeof t->mark, "%s", b.p);
}

static int64_t held_by(struct turned *t)
{
    int64_t ms;
    return steady_holds(&t->s, &ms) ? ms : 0;
}

static void corrections_pass_and_jumps_do_not(void)
{
    struct turned t = first();
    begin(&t, "a");
    CHECK(steady_now_ms(&t.s) == T0);
    pass(&t, HOUR_MS);
    t.wall_ms += 4000;
    CHECK(steady_now_ms(&t.s) == T0 + HOUR_MS + 4000);
    CHECK(held_by(&t) == 0);
    t.wall_ms += 400 * DAY_MS;
    CHECK(steady_now_ms(&t.s) == T0 + HOUR_MS + 4000);
    CHECK(held_by(&t) == 400 * DAY_MS);
    pass(&t, 11000);
    CHECK(steady_now_ms(&t.s) == T0 + HOUR_MS + 15000);
    CHECK(steady_wants(&t.s, false) == 0);
    t.wall_ms -= 400 * DAY_MS; /* and it is back */
    CHECK(steady_now_ms(&t.s) == T0 + HOUR_MS + 15000 && held_by(&t) == 0);
}

static void many_corrections_are_a_jump(void)
{
    struct turned t = first();
    begin(&t, "a");
    for (int i = 0; i < 100; i++) {
        t.wall_ms += 4000;
        CHECK(steady_now_ms(&t.s) <= T0 + 2 * STEADY_SMALL_MS);
    }
    CHECK(held_by(&t) > 300000);
}

static void a_step_of_hours_settles_and_one_of_weeks_is_confirmed(void)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        struct turned t = first();
        begin(&t, "a");
        t.wall_ms += sign * 3 * HOUR_MS;
        CHECK(steady_wants(&t.s, false) == 0);
        pass(&t, STEADY_SETTLE_MS / 2);
        t.wall_ms += sign * HOUR_MS; /* it moves still */
        CHECK(steady_wants(&t.s, false) == 0);
        pass(&t, STEADY_SETTLE_MS - 1);
        CHECK(steady_wants(&t.s, false) == 0);
        pass(&t, 1);
        CHECK(steady_wants(&t.s, false) == sign * 4 * HOUR_MS);
        steady_step(&t.s, sign * 4 * HOUR_MS);
        CHECK(steady_now_ms(&t.s) == t.wall_ms && held_by(&t) == 0);
        t.wall_ms += sign * 30 * DAY_MS;
        CHECK(steady_wants(&t.s, false) == 0);
        pass(&t, 5 * DAY_MS);
        CHECK(steady_wants(&t.s, false) == 0 && held_by(&t) == sign * 30 * DAY_MS);
        CHECK(steady_wants(&t.s, true) == sign * 30 * DAY_MS);
    }
}

static void in_the_same_boot_a_restart_does_not_hide_a_jump(void)
{
    struct turned t = first();
    begin(&t, "a");
    pass(&t, HOUR_MS);
    keep_mark(&t);
    pass(&t, 100 * DAY_MS); /* suspended, or only stopped: that time has passed */
    begin(&t, "a");
    CHECK(steady_now_ms(&t.s) == T0 + HOUR_MS + 100 * DAY_MS && held_by(&t) == 0);
    keep_mark(&t);
    t.wall_ms += 400 * DAY_MS;
    begin(&t, "a");
    CHECK(steady_now_ms(&t.s) == T0 + HOUR_MS + 100 * DAY_MS && held_by(&t) == 400 * DAY_MS);
}

static void after_another_boot_weeks_are_doubted_and_days_are_not(void)
{
    struct turned t = first();
    begin(&t, "a");
    keep_mark(&t);
    t.boot_ms = 10;
    t.wall_ms += 3 * DAY_MS;
    begin(&t, "b");
    CHECK(steady_now_ms(&t.s) == t.wall_ms && held_by(&t) == 0);
    keep_mark(&t);
    t.boot_ms = 20;
    t.wall_ms += 400 * DAY_MS;
    begin(&t, "c");
    CHECK(steady_now_ms(&t.s) == t.wall_ms); /* nothing is refused */
    CHECK(held_by(&t) == 400 * DAY_MS);
    pass(&t, DAY_MS);
    CHECK(steady_wants(&t.s, false) == 0 && held_by(&t) == 400 * DAY_MS);
    CHECK(steady_wants(&t.s, true) == 0 && held_by(&t) == 0);
}

static void a_clock_that_begins_in_the_past_is_waited_for(void)
{
    struct turned t = first();
    begin(&t, "a");
    keep_mark(&t);
    t.boot_ms = 10;
    t.wall_ms = 1000; /* 1970: a machine without a battery */
    begin(&t, "b");
    CHECK(steady_now_ms(&t.s) == T0);
    CHECK(held_by(&t) == 1000 - T0);
    pass(&t, 5000);
    t.wall_ms = T0 + 2 * HOUR_MS + 5000; /* the network has told it */
    CHECK(steady_wants(&t.s, false) == 2 * HOUR_MS);
    steady_step(&t.s, 2 * HOUR_MS);
    CHECK(steady_now_ms(&t.s) == t.wall_ms && held_by(&t) == 0);
}

static void a_mark_that_makes_no_sense_is_none(void)
{
    static const char *const bad[] = {
        "", "x", "5", "-1 5 a", "5 x a", "99999999999999999999 1 a"
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct turned t = first();
        snprintf(t.mark, sizeof t.mark, "%s", bad[i]);
        begin(&t, "a");
        CHECK(steady_now_ms(&t.s) == T0 && held_by(&t) == 0);
    }
}

static const struct test tests[] = {
    { "corrections pass, and jumps do not", corrections_pass_and_jumps_do_not },
    { "many corrections are a jump", many_corrections_are_a_jump },
    { "a step of hours settles, and one of weeks is confirmed",
      a_step_of_hours_settles_and_one_of_weeks_is_confirmed },
    { "in the same boot a restart does not hide a jump",
      in_the_same_boot_a_restart_does_not_hide_a_jump },
    { "after another boot weeks are doubted, and days are not",
      after_another_boot_weeks_are_doubted_and_days_are_not },
    { "a clock that begins in the past is waited for",
      a_clock_that_begins_in_the_past_is_waited_for },
    { "a mark that makes no sense is none", a_mark_that_makes_no_sense_is_none },
};
TEST_CASES(tests)
