#include "base/calendar.h"

#include <time.h>

#include "tests/lib/test.h"

#define BERLIN "zone=CET-1CEST,M3.5.0,M10.5.0/3; "
#define NIGHTS "Mon-Fri 20:00-08:00; Sat,Sun 00:00-24:00"
#define NEVER INT64_MAX

static struct calendar cal(const char *text)
{
    struct calendar c;
    struct err e = { 0 };
    if (calendar_parse(str_of(text), NULL, NULL, &c, &e) < 0)
        test_fail(__FILE__, __LINE__, "%s", e.msg);
    return c;
}

/* An instant, in UTC; NULL is never. */
static int64_t at(const char *text)
{
    struct tm tm = { 0 };
    if (!text)
        return NEVER;
    const char *end = strptime(text, "%Y-%m-%d %H:%M", &tm);
    CHECK(end && !*end);
    return (int64_t)timegm(&tm) * 1000;
}

/* What holds at `now`, and until when (UTC). */
struct row {
    const char *now;
    bool open;
    const char *until;
};

static void check_rows(const char *text, const struct row *rows, size_t n)
{
    struct calendar c = cal(text);
    for (size_t i = 0; i < n; i++) {
        int64_t now = at(rows[i].now), until = at(rows[i].until);
        if (calendar_is_open(&c, now) != rows[i].open)
            test_fail(__FILE__, __LINE__, "%s at %s", text, rows[i].now);
        if (calendar_next_change(&c, now) != until)
            test_fail(__FILE__, __LINE__, "%s at %s: until %lld", text, rows[i].now,
                      (long long)calendar_next_change(&c, now));
        CHECK_INT(calendar_closes_ms(&c, now), rows[i].open ? until : now);
        CHECK_INT(calendar_opens_ms(&c, now), rows[i].open ? now : until);
        if (until != NEVER) { /* the edge belongs to what begins there */
            CHECK(calendar_is_open(&c, until) != rows[i].open);
            CHECK(calendar_is_open(&c, until - 1) == rows[i].open);
            CHECK(calendar_next_change(&c, until - 1) == until);
        }
    }
}
#define ROWS(text, ...)                                                                            \
    check_rows(text, (const struct row[]){ __VA_ARGS__ },                                          \
               ARRAY_LEN(((const struct row[]){ __VA_ARGS__ })))

/* 2026-11-16 is a Monday; Berlin is an hour ahead. */
static void nights_and_weekends_are_open(void)
{
    ROWS(BERLIN NIGHTS, { "2026-11-16 12:00", false, "2026-11-16 19:00" },
         { "2026-11-16 19:00", true, "2026-11-17 07:00" },
         { "2026-11-16 23:30", true, "2026-11-17 07:00" },
         { "2026-11-17 06:59", true, "2026-11-17 07:00" },
         { "2026-11-17 07:00", false, "2026-11-17 19:00" },
         /* Friday night, the weekend; Sunday ends at midnight, and Sunday has no night span */
         { "2026-11-20 19:00", true, "2026-11-22 23:00" },
         { "2026-11-22 23:00", false, "2026-11-23 19:00" });
}

static void without_spans_it_is_always_open(void)
{
    struct calendar c = calendar_always();
    CHECK(calendar_is_open(&c, 0) && calendar_is_open(&c, INT64_MIN));
    CHECK(calendar_is_open(&c, INT64_MAX));
    ROWS("", { "2026-11-16 12:00", true, NULL });
    ROWS(BERLIN, { "2026-11-16 12:00", true, NULL });
    ROWS("Mon-Sun 00:00-24:00", { "2026-11-16 12:00", true, NULL });
    ROWS("Mon-Sun 00:00-12:00; Mon-Sun 12:00-24:00", { "2026-11-16 12:00", true, NULL });
    ROWS("Mon-Sun 13:00-12:30; Mon-Sun 12:00-14:00", { "2026-11-16 12:00", true, NULL });
}

static void spans_that_touch_or_overlap_are_one_stretch(void)
{
    ROWS("Mon 08:00-12:00; Mon 12:00-14:00; Mon 13:00-13:30; Tue 00:00-01:00; Mon 22:00-24:00",
         { "2026-11-16 08:00", true, "2026-11-16 14:00" },
         { "2026-11-16 13:10", true, "2026-11-16 14:00" },
         { "2026-11-16 14:00", false, "2026-11-16 22:00" },
         { "2026-11-16 22:00", true, "2026-11-17 01:00" },
         { "2026-11-17 01:00", false, "2026-11-23 08:00" });
    /* over the end of the week */
    ROWS("Sun 22:00-06:00; Mon 06:00-07:00", { "2026-11-22 22:00", true, "2026-11-23 07:00" },
         { "2026-11-23 03:00", true, "2026-11-23 07:00" },
         { "2026-11-23 07:00", false, "2026-11-29 22:00" });
}

static void exceptions_win_over_the_week_and_later_over_earlier(void)
{
    ROWS(BERLIN NIGHTS "; closed 2026-12-24..2026-12-26; closed 2026-11-21 18:00-24:00"
                       "; open 2026-12-31",
         { "2026-11-20 20:00", true, "2026-11-21 17:00" },
         { "2026-11-21 17:00", false, "2026-11-21 23:00" },
         { "2026-11-21 23:00", true, "2026-11-22 23:00" },
         { "2026-12-23 19:00", true, "2026-12-23 23:00" }, /* a Wednesday night, cut off */
         { "2026-12-23 23:00", false, "2026-12-26 23:00" },
         { "2026-12-26 23:00", true, "2026-12-27 23:00" },
         { "2026-12-30 20:00", true, "2027-01-01 07:00" });
    ROWS("closed 2026-12-01..2026-12-31; open 2026-12-10; closed 2026-12-10 12:00-13:00",
         { "2026-11-30 00:00", true, "2026-12-01 00:00" },
         { "2026-12-01 00:00", false, "2026-12-10 00:00" },
         { "2026-12-10 00:00", true, "2026-12-10 12:00" },
         { "2026-12-10 12:00", false, "2026-12-10 13:00" },
         { "2026-12-10 13:00", true, "2026-12-11 00:00" },
         { "2026-12-11 00:00", false, "2027-01-01 00:00" }, { "2027-01-01 00:00", true, NULL });
    /* written the other way round the long one hides the short ones */
    ROWS("open 2026-12-10; closed 2026-12-01..2026-12-31",
         { "2026-12-01 00:00", false, "2027-01-01 00:00" });
    /* exceptions that change nothing are no change */
    ROWS("open 2026-12-10; open 2026-12-10..2026-12-12", { "2026-12-01 00:00", true, NULL });
}

static void a_change_may_be_far_away(void)
{
    ROWS("closed 2199-12-31..2200-12-30", { "1970-01-01 00:00", true, "2199-12-31 00:00" },
         { "2200-01-01 00:00", false, "2200-12-31 00:00" }, { "2200-12-31 00:00", true, NULL });
    ROWS("closed 1970-01-01..2200-12-31", { "1970-01-01 00:00", false, NULL });
    ROWS("Mon 08:00-09:00; closed 2026-01-01..2099-12-31",
         { "2026-11-16 08:30", false, "2100-01-04 08:00" });
    struct calendar c = cal("Mon-Sun 12:00-13:00");
    CHECK_INT(calendar_next_change(&c, INT64_MIN), 12 * 3600000);
    CHECK(!calendar_is_open(&c, INT64_MIN) && !calendar_is_open(&c, INT64_MAX));
    CHECK_INT(calendar_next_change(&c, INT64_MAX), NEVER);
    CHECK_INT(calendar_next_change(&c, at("2200-12-31 13:00")), NEVER);
}

/* 02:00 to 03:00 is left out on 2026-03-29, at 01:00 UTC. */
static void where_the_clock_jumps_an_edge_left_out_is_the_jump(void)
{
    ROWS(BERLIN "Sun 02:30-06:00", { "2026-03-28 12:00", false, "2026-03-29 01:00" },
         { "2026-03-29 01:00", true, "2026-03-29 04:00" });
    ROWS(BERLIN "Sun 00:00-02:30", { "2026-03-28 23:00", true, "2026-03-29 01:00" },
         { "2026-03-29 01:00", false, "2026-04-04 22:00" });
    /* the clock jumps over all of it: a week later, in summer time */
    ROWS(BERLIN "Sun 02:00-03:00", { "2026-03-22 02:00", false, "2026-04-05 00:00" },
         { "2026-03-29 01:00", false, "2026-04-05 00:00" });
    /* what lay between is gone, so the two are one */
    ROWS(BERLIN "Sun 00:00-02:15; Sun 02:45-06:00",
         { "2026-03-28 23:00", true, "2026-03-29 04:00" });
    ROWS(BERLIN "closed 2026-03-29 02:10-02:50", { "2026-03-01 00:00", true, NULL });
    ROWS(BERLIN "Sun 02:00-06:00", { "2026-03-28 12:00", false, "2026-03-29 01:00" });
    /* a night is an hour shorter, and ends by the clock */
    ROWS(BERLIN "Sat 20:00-08:00", { "2026-03-28 19:00", true, "2026-03-29 06:00" });
}

/* 02:00 to 03:00 is shown twice on 2026-10-25, from 00:00 and from 01:00 UTC. */
static void where_the_clock_is_set_back_it_begins_first_and_ends_last(void)
{
    ROWS(BERLIN "Sun 02:30-06:00", { "2026-10-24 12:00", false, "2026-10-25 00:30" },
         { "2026-10-25 00:30", true, "2026-10-25 05:00" },
         { "2026-10-25 01:15", true, "2026-10-25 05:00" });
    ROWS(BERLIN "Sun 00:00-02:30", { "2026-10-24 22:00", true, "2026-10-25 01:30" },
         { "2026-10-25 00:45", true, "2026-10-25 01:30" },
         { "2026-10-25 01:30", false, "2026-10-31 23:00" });
    ROWS(BERLIN "Sun 02:20-02:40", { "2026-10-25 00:00", false, "2026-10-25 00:20" },
         { "2026-10-25 00:50", true, "2026-10-25 01:40" });
    ROWS(BERLIN "Sun 02:10-02:20; Sun 02:30-02:40", /* in one another's way */
         { "2026-10-25 00:10", true, "2026-10-25 01:40" });
    ROWS(BERLIN "Sun 00:00-02:00", { "2026-10-24 22:00", true, "2026-10-25 00:00" },
         { "2026-10-25 01:00", false, "2026-10-31 23:00" });
    ROWS(BERLIN "Sun 03:00-04:00", { "2026-10-25 01:59", false, "2026-10-25 02:00" });
    ROWS(BERLIN "closed 2026-10-25 02:10-02:30", { "2026-10-25 00:00", true, "2026-10-25 00:10" },
         { "2026-10-25 00:10", false, "2026-10-25 01:30" });
    ROWS(BERLIN "Sat 20:00-08:00", { "2026-10-24 18:00", true, "2026-10-25 07:00" });
}

static void equal_calendars_are_equal(void)
{
    struct calendar a = cal(BERLIN NIGHTS "; closed 2026-12-24"), b = a;
    CHECK(calendar_equal(&a, &b));
    b = cal(BERLIN "Mon,Tue-Fri 20:00-08:00;Sat-Sun 00:00-24:00 ;closed 2026-12-24 00:00-24:00;");
    CHECK(calendar_equal(&a, &b));
    b.exception[0].open = true;
    CHECK(!calendar_equal(&a, &b));
}

static const struct test tests[] = {
    { "nights and weekends are open", nights_and_weekends_are_open },
    { "without spans it is always open, and so when they cover the week",
      without_spans_it_is_always_open },
    { "spans that touch or overlap are one stretch", spans_that_touch_or_overlap_are_one_stretch },
    { "exceptions win over the week, later ones over earlier ones",
      exceptions_win_over_the_week_and_later_over_earlier },
    { "a change may be far away, or never come", a_change_may_be_far_away },
    { "where the clock jumps ahead, an edge left out is the jump",
      where_the_clock_jumps_an_edge_left_out_is_the_jump },
    { "where the clock is set back, it begins the first time and ends the last",
      where_the_clock_is_set_back_it_begins_first_and_ends_last },
    { "equal calendars are equal", equal_calendars_are_equal },
};
TEST_CASES(tests)
