#include "sys/clock.h"

#include "tests/lib/test.h"

static void a_manual_clock_shows_what_it_is_told(void)
{
    int64_t now_ms = 5;
    struct clock c = clock_manual(&now_ms);
    CHECK_INT(clock_now_ms(&c), 5);
    now_ms += 1000;
    CHECK_INT(clock_now_ms(&c), 1005);
}

static void real_clocks_run(void)
{
    struct clock c = clock_wall();
    CHECK(clock_now_ms(&c) > INT64_C(1700000000000));
    int64_t a = clock_mono_ns(), b = clock_mono_ns();
    CHECK(a > 0 && b >= a);
}

static void time_is_printed_in_utc(void)
{
    char text[32];
    CHECK_STR(clock_format(0, text), "1970-01-01T00:00:00.000Z");
    CHECK_STR(clock_format(INT64_C(1772368200250), text), "2026-03-01T12:30:00.250Z");
    CHECK_STR(clock_format(-1, text), "1969-12-31T23:59:59.999Z");
    CHECK(clock_format(INT64_MAX, text)[0] && clock_format(INT64_MIN + 1000, text)[0]);
}

static const struct test tests[] = {
    { "a manual clock shows what it is told", a_manual_clock_shows_what_it_is_told },
    { "the real clocks run, the monotonic one never back", real_clocks_run },
    { "a time is printed as RFC 3339 in UTC", time_is_printed_in_utc },
};
TEST_MAIN(tests)
