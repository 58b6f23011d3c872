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
    static const char *const bad[] = { "", "yesterday", "2026-13-01", "25:00", "2026-03-01x" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t got = 5;
        struct err e;
        CHECK(when_parse(bad[i], NOW, &got, &e) == -1);
        CHECK(e.code == ERR_INVALID && strstr(e.hint, "2026-03-01"));
    }
}

static const struct test tests[] = {
    { "points in time are read", points_in_time_are_read },
    { "what is none is refused", what_is_none_is_refused },
};
TEST_MAIN(tests)
