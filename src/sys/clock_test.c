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

static const struct test tests[] = {
    { "a manual clock shows what it is told", a_manual_clock_shows_what_it_is_told },
    { "the real clocks run, the monotonic one never back", real_clocks_run },
};
TEST_MAIN(tests)
