#include "base/date.h"

#include <stdio.h>
#include <time.h>

#include "tests/lib/test.h"

static void known_days(void)
{
    static const struct {
        struct date date;
        int64_t days;
        int weekday;
    } rows[] = {
        { { 1970, 1, 1 }, 0, 4 },     { { 1969, 12, 31 }, -1, 3 },
        { { 1972, 2, 29 }, 789, 2 },  { { 2000, 2, 29 }, 11016, 2 },
        { { 2000, 3, 1 }, 11017, 3 }, { { 2026, 11, 16 }, 20773, 1 },
        { { 2100, 3, 1 }, 47541, 1 }, { { 2200, 12, 31 }, 84370, 3 },
        { { 1, 1, 1 }, -719162, 1 },  { { 9999, 12, 31 }, 2932896, 5 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct date d = date_of_days(rows[i].days);
        CHECK_INT(date_days(rows[i].date), rows[i].days);
        CHECK(d.year == rows[i].date.year && d.month == rows[i].date.month);
        CHECK_INT(d.day, rows[i].date.day);
        CHECK_INT(date_weekday(rows[i].days), rows[i].weekday);
    }
}

static void leap_years_have_366_days(void)
{
    CHECK(date_is_leap(2000) && date_is_leap(2024) && date_is_leap(2400));
    CHECK(!date_is_leap(1900) && !date_is_leap(2100) && !date_is_leap(2026));
    CHECK_INT(date_month_days(2024, 2), 29);
    CHECK_INT(date_month_days(2026, 2), 28);
    CHECK_INT(date_month_days(2026, 12), 31);
    CHECK_INT(date_year_days(2025) - date_year_days(2024), 366);
}

static void every_day_is_the_c_librarys(void)
{
    for (int64_t day = -719162; day <= 2932896; day++) {
        time_t t = (time_t)(day * 86400);
        struct tm tm;
        struct date d = date_of_days(day);
        CHECK_AT(day, gmtime_r(&t, &tm) && date_days(d) == day);
        CHECK_AT(day, d.year == tm.tm_year + 1900 && d.month == tm.tm_mon + 1);
        CHECK_AT(day, d.day == tm.tm_mday && date_weekday(day) == tm.tm_wday);
    }
}

static void division_rounds_down(void)
{
    CHECK_INT(floor_div(7, 7), 1);
    CHECK_INT(floor_div(6, 7), 0);
    CHECK_INT(floor_div(-1, 7), -1);
    CHECK_INT(floor_div(-7, 7), -1);
    CHECK_INT(floor_div(-8, 7), -2);
}

static void a_day_is_taken_off_the_front(void)
{
    static const char *const wrong[] = { "0000-01-01", "2026-02-29", "2026-1-02",  "2026-01-2",
                                         "2026/01/02", "2026-00-02", "2026-13-01", "2026-01" };
    struct str rest = STR("2024-02-29T12");
    struct date d = { 0 };
    CHECK(date_take(&rest, &d) && str_is(rest, "T12"));
    CHECK(d.year == 2024 && d.month == 2 && d.day == 29);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        rest = str_of(wrong[i]);
        CHECK_AT(i, !date_take(&rest, &d) && str_is(rest, wrong[i]));
    }
}

static int64_t ms_of(const char *text)
{
    int64_t ms = -1;
    struct err e;
    return date_parse(str_of(text), &ms, &e) == 0 ? ms : -1;
}

static void a_time_is_read_in_its_zone(void)
{
    CHECK(ms_of("1970-01-01T00:00:00Z") == 0);
    CHECK(ms_of("2026-03-01T12:30:00Z") == INT64_C(1772368200000));
    CHECK(ms_of("2026-03-01t12:30:00z") == INT64_C(1772368200000));
    CHECK(ms_of("2026-03-01 13:30:00+01:00") == INT64_C(1772368200000));
    CHECK(ms_of("2026-03-01T07:00:00-05:30") == INT64_C(1772368200000));
    CHECK(ms_of("2026-03-01T12:30:00.25Z") == INT64_C(1772368200250));
    CHECK(ms_of("2026-03-01T12:30:00.123456789Z") == INT64_C(1772368200123));
    CHECK(ms_of("2024-02-29T00:00:00Z") == INT64_C(1709164800000));
    CHECK(ms_of("1990-12-31T23:59:60Z") == INT64_C(662688000000)); /* a leap second */
}

static void what_is_not_a_time_is_refused(void)
{
    static const char *const wrong[] = {
        "",
        "tomorrow",
        "2026-03-01",
        "2026-03-01T12:30Z",
        "2026-03-01T12:30:00",
        "2026-3-1T12:30:00Z",
        "2026-02-30T00:00:00Z",
        "2025-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-03-01T24:00:00Z",
        "2026-03-01T12:60:00Z",
        "2026-03-01T12:30:61Z",
        "2026-03-01T12:30:00.Z",
        "2026-03-01T12:30:00+0100",
        "2026-03-01T12:30:00+24:00",
        "2026-03-01T12:30:00Z ",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "-026-03-01T12:30:00Z",
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        CHECK_AT(i, ms_of(wrong[i]) == -1);
}

static void every_day_is_written_as_the_system_does_and_read_back(void)
{
    for (int64_t day = 0; day < INT64_C(366) * 8000; day += 13) {
        char ours[32], theirs[40];
        int64_t ms = day * DAY_MS + day * 7919 % 86400 * 1000;
        time_t t = (time_t)(ms / 1000);
        struct tm tm;
        CHECK_AT(day, gmtime_r(&t, &tm) &&
                          strftime(theirs, sizeof theirs, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0);
        CHECK_STR(date_format(ms, ours), theirs);
        CHECK_AT(day, ms_of(ours) == ms);
    }
}

static void milliseconds_are_written_where_there_are_any(void)
{
    char text[32];
    CHECK_STR(date_format(INT64_C(1772368200007), text), "2026-03-01T12:30:00.007Z");
    CHECK_STR(date_format(INT64_C(253402300799999), text), "9999-12-31T23:59:59.999Z");
    CHECK_STR(date_format(INT64_C(253402300800000), text), "?");
    CHECK_STR(date_format(-1, text), "?");
}

static void a_stamp_has_milliseconds_always_and_any_year(void)
{
    char text[32];
    CHECK_STR(date_stamp(0, text), "1970-01-01T00:00:00.000Z");
    CHECK_STR(date_stamp(INT64_C(1772368200250), text), "2026-03-01T12:30:00.250Z");
    CHECK_STR(date_stamp(-1, text), "1969-12-31T23:59:59.999Z");
    CHECK_STR(date_stamp(INT64_C(-62135596800000), text), "0001-01-01T00:00:00.000Z");
    CHECK_STR(date_stamp(INT64_C(-62135596800001), text), "?");
    CHECK_STR(date_stamp(INT64_C(253402300799999), text), "9999-12-31T23:59:59.999Z");
    CHECK_STR(date_stamp(INT64_C(253402300800000), text), "?");
    CHECK_STR(date_stamp(INT64_MAX, text), "?");
    CHECK_STR(date_stamp(INT64_MIN, text), "?");
}

static const struct test tests[] = {
    { "known days have their numbers", known_days },
    { "leap years have 366 days", leap_years_have_366_days },
    { "every day of 9,999 years is the C library's", every_day_is_the_c_librarys },
    { "division rounds down", division_rounds_down },
    { "a day is taken off the front", a_day_is_taken_off_the_front },
    { "a time is read in its zone", a_time_is_read_in_its_zone },
    { "what is not a time is refused", what_is_not_a_time_is_refused },
    { "every day is written as the system does and read back",
      every_day_is_written_as_the_system_does_and_read_back },
    { "milliseconds are written where there are any",
      milliseconds_are_written_where_there_are_any },
    { "a stamp has milliseconds always, and any year",
      a_stamp_has_milliseconds_always_and_any_year },
};
TEST_CASES(tests)
