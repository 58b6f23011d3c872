#include "sys/clock.h"

#include <unistd.h>

#include "tests/lib/test.h"

static void a_manual_clock_shows_what_it_is_told(void)
{
    int64_t now_ms = 5;
    struct clock c = clock_manual(&now_ms);
    CHECK_INT(clock_now_ms(&c), 5);
    now_ms += 1000;
    CHECK_INT(clock_now_ms(&c), 1005);
}

/* Whatever time goes by between the looks. */
static void check_ahead(const struct clock *c, const struct clock *wall, int64_t ms)
{
    int64_t before = clock_now_ms(wall), now = clock_now_ms(c), after = clock_now_ms(wall);
    CHECK(before + ms <= now && now <= after + ms);
}

static void a_shifted_clock_goes_as_far_ahead_as_its_file_says(void)
{
    char path[] = "/tmp/nightshift-clock-XXXXXX";
    int fd = mkstemp(path);
    struct clock wall = clock_wall(), c;
    struct clock_shift shift;
    c = clock_shifted(&shift, wall, path);
    CHECK(fd >= 0);
    check_ahead(&c, &wall, 0);
    CHECK(write(fd, "3600000\n", 8) == 8);
    check_ahead(&c, &wall, 3600000);
    CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, "=1700000000123", 14, 0) == 14);
    CHECK_INT(clock_now_ms(&c), 1700000000123);
    close(fd);
    unlink(path);
    check_ahead(&c, &wall, 0);
}

static void real_clocks_run(void)
{
    struct clock c = clock_wall();
    CHECK(clock_now_ms(&c) > INT64_C(1700000000000));
    int64_t a = clock_mono_ns(), b = clock_mono_ns();
    CHECK(a > 0 && b >= a);
    int64_t began = clock_cpu_ns();
    while (clock_cpu_ns() == began)
        ;
    CHECK(began > 0 && clock_cpu_ns() > began);
}

static const struct test tests[] = {
    { "a manual clock shows what it is told", a_manual_clock_shows_what_it_is_told },
    { "a shifted clock goes as far ahead as its file says, or stands where it says",
      a_shifted_clock_goes_as_far_ahead_as_its_file_says },
    { "the real clocks run, the monotonic one never back", real_clocks_run },
};
TEST_CASES(tests)
