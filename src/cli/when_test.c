#include "cli/when.h"

#include <string.h>
#include <time.h>

#include "tests/lib/test.h"

#define NOW INT64_C(1772368200000) /* 2026-03-01T12:30:00Z */

static void points_in_time_are_read(void)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        { "now", NOW },
        { "2026-03-01T12:30:00", NOW },
        { "2026-03-01 12:30", NOW },
        { "2026-03-01", NOW - 45000000 },
        { "12:00", NOW - 1800000 },
        { "3d", NOW - 259200000 },
        { "now-1h", NOW - 3600000 },
        { "2h ago", NOW - 7200000 },
        { "1h30m ago", NOW - 5400000 },
        { "yesterday", NOW - 45000000 - 86400000 },
        { "yesterday 14:00", NOW - 86400000 + 5400000 },
        { "yesterday 12:30:07", NOW - 86400000 + 7000 },
        { "2026-03-01T12:30:00Z", NOW },
        { "2026-03-01T13:30:00+01:00", NOW },
    };
    setenv("TZ", "UTC", 1);
    tzset();
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        int64_t got = 0;
        struct err e;
        CHECK(when_parse(good[i].text, NOW, &got, &e) == 0);
        CHECK_INT(got, good[i].ms);
    }
}

static void what_is_none_is_refused(void)
{
    static const char *const bad[] = {
        "", "yesterday ", "2026-13-01", "25:00", "2026-03-01x", " ago", "yesterday 25:00"
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t got = 5;
        struct err e;
        CHECK(when_parse(bad[i], NOW, &got, &e) == -1);
        CHECK(e.code == ERR_INVALID && strstr(e.hint, "2026-03-01"));
    }
}

static void a_job_begins_at_a_time_of_here_or_with_its_zone(void)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        { "2026-03-01T12:30:00Z", INT64_C(1772368200000) },
        { "2026-03-01T12:30:00+05:30", INT64_C(1772348400000) },
        { "2026-03-01 13:30", INT64_C(1772368200000) },
        { "2026-03-01T13:30", INT64_C(1772368200000) },
        { "2026-03-01T13:30:07", INT64_C(1772368207000) },
        { "2026-07-01 14:30", INT64_C(1782909000000) }, /* summer time */
        { "2026-03-01", INT64_C(1772319600000) },
        { "now", NOW },
        { "now+2h", NOW + 7200000 },
        { "now+90", NOW + 90000 },
        { "now+1hour", NOW + 3600000 },
        { "now+30minutes", NOW + 1800000 },
        { "now+2weeks", NOW + 1209600000 },
    };
    static const char *const bad[] = {
        "",
        "tomorrow",
        "22:00",
        "+2h",
        "now+",
        "now+2parsecs",
        "2026-02-30",
        "2026-02-30 12:00",
        "2026-03-01 25:00",
        "1969-12-31 12:00",
        "now-1h",
    };
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        int64_t got = 0;
        struct err e;
        CHECK_AT(i, when_begin(good[i].text, NOW, &got, &e) == 0);
        CHECK_INT(got, good[i].ms);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t got;
        struct err e;
        CHECK_AT(i, when_begin(bad[i], NOW, &got, &e) < 0 && e.hint[0]);
    }
}

static void the_next_time_of_a_clock_is_today_or_tomorrow(void)
{
    int64_t got = 0;
    setenv("TZ", "UTC", 1);
    tzset();
    CHECK(when_next("12:31", NOW, &got) && got == NOW + 60000);
    CHECK(when_next("12:30", NOW, &got) && got == NOW + 86400000);
    CHECK(when_next("00:00:30", NOW, &got) && got == NOW + 41430000);
    CHECK(!when_next("24:30", NOW, &got) && !when_next("noon", NOW, &got));
}

/* NOW is a Sunday, half past twelve. */
static void a_weekday_is_the_next_such_day(void)
{
    static const struct {
        const char *text;
        int64_t in_min;
    } rows[] = {
        { "tue 10:00", 2 * 1440 - 150 }, { "Tuesday  10:00", 2 * 1440 - 150 }, { "SUN 12:31", 1 },
        { "sun 12:30", 7 * 1440 },       { "sat 12:30:00", 6 * 1440 },         { "mon 00:00", 690 },
    };
    static const char *const bad[] = { "tue",        "tue 25:00", "tu 10:00",
                                       "tues 10:00", "tue10:00",  "10:00 tue" };
    int64_t got = 0;
    setenv("TZ", "UTC", 1);
    tzset();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_AT(i, when_next(rows[i].text, NOW, &got) && got == NOW + rows[i].in_min * 60000);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_AT(i, !when_next(bad[i], NOW, &got));
}

static void a_time_to_come_is_an_hour_after_another_or_any_that_begins(void)
{
    struct err e;
    int64_t from = 0, got = 0;
    setenv("TZ", "UTC", 1);
    tzset();
    CHECK(when_coming("tue 10:00", NOW, NOW, &from, &e) == 0);
    CHECK(when_coming("12:00", NOW, from, &got, &e) == 0 && got == from + 2 * 3600000);
    CHECK(when_coming("now+2h", NOW, from, &got, &e) == 0 && got == NOW + 2 * 3600000);
    CHECK(when_coming("soon", NOW, from, &got, &e) < 0 && strstr(e.hint, "'tue 10:00'"));
}

static const struct test tests[] = {
    { "points in time are read", points_in_time_are_read },
    { "what is none is refused", what_is_none_is_refused },
    { "a job begins at a time of here or with its zone",
      a_job_begins_at_a_time_of_here_or_with_its_zone },
    { "the next time of a clock is today or tomorrow",
      the_next_time_of_a_clock_is_today_or_tomorrow },
    { "a weekday is the next such day", a_weekday_is_the_next_such_day },
    { "a time to come is an hour after another, or any that begins",
      a_time_to_come_is_an_hour_after_another_or_any_that_begins },
};
TEST_CASES(tests)
