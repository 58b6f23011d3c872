#include "base/date.h"

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

static const struct test tests[] = {
    { "known days have their numbers", known_days },
    { "leap years have 366 days", leap_years_have_366_days },
    { "every day of 9,999 years is the C library's", every_day_is_the_c_librarys },
    { "division rounds down", division_rounds_down },
};
TEST_MAIN(tests)
