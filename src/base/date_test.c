#include "base/date.h"

#include <stdio.h>
#include <time.h>

#include "tests/lib/test.h"

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
        int64_t ms = day * 86400000 + day * 7919 % 86400 * 1000;
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

static const struct test tests[] = {
    { "a time is read in its zone", a_time_is_read_in_its_zone },
    { "what is not a time is refused", what_is_not_a_time_is_refused },
    { "every day is written as the system does and read back",
      every_day_is_written_as_the_system_does_and_read_back },
    { "milliseconds are written where there are any",
      milliseconds_are_written_where_there_are_any },
};
TEST_MAIN(tests)
