#include "control/pool.h"

#include "tests/lib/test.h"

#define HOUR_MS INT64_C(3600000)
#define MIN_MS INT64_C(60000)
#define NOON_MS (INT64_C(1794528000000) + 12 * HOUR_MS) /* 2026-11-13, a Friday */

static const char *text(const struct calendar *c, struct buf *out)
{
    buf_truncate(out, 0);
    calendar_format(c, out);
    return buf_str(out).p;
}

static void a_place_is_kept_as_its_rule(void)
{
    AUTO(buf_free) struct buf b = BUF(CALENDAR_TEXT_MAX);
    struct calendar c;
    struct err e = { 0 };
    CHECK(pool_read_window(STR("zone=UTC; Mon-Fri 20:00-08:00"), NOON_MS, &c, &e) == 0);
    CHECK_STR(text(&c, &b), "zone=UTC0; Mon-Fri 20:00-08:00");
    CHECK(pool_read_window(STR(""), NOON_MS, &c, &e) == 0 && calendar_is_open(&c, NOON_MS));
    CHECK(pool_read_window(STR("zone=Europe/Atlantis; Mon 20:00-08:00"), NOON_MS, &c, &e) < 0);
    CHECK(strstr(e.msg, "part 1") && strstr(e.msg, "Europe/Atlantis"));
    CHECK(pool_read_window(STR("Mon 20:00-08:00; Tues 1-2"), NOON_MS, &c, &e) < 0);
    CHECK(strstr(e.msg, "part 2") && strstr(e.msg, "Tues 1-2"));
}

static void names_are_bounded_and_plain(void)
{
    struct err e = { 0 };
    CHECK(pool_check_name("pool", STR("desks-2.b_C"), &e) == 0);
    CHECK(pool_check_name("pool", STR(""), &e) < 0 && pool_check_name("pool", STR(".x"), &e) < 0);
    CHECK(pool_check_name("pool", STR("a/b"), &e) < 0 &&
          pool_check_name("pool", STR("..\x01"), &e) < 0);
    char longest[POOL_NAME_MAX + 2];
    memset(longest, 'a', sizeof longest);
    CHECK(pool_check_name("pool", (struct str){ longest, POOL_NAME_MAX }, &e) == 0);
    CHECK(pool_check_name("pool", (struct str){ longest, POOL_NAME_MAX + 1 }, &e) < 0);
}

static void a_machine_is_named_once(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    const char **names = NULL;
    size_t n = 9;
    struct err e = { 0 };
    CHECK(pool_read_nodes(STR(""), &a, &names, &n, &e) == 0 && n == 0);
    CHECK(pool_read_nodes(STR("pc[1-2],srv"), &a, &names, &n, &e) == 0 && n == 3);
    CHECK_STR(names[2], "srv");
    CHECK(pool_read_nodes(STR("pc[1-2],pc2"), &a, &names, &n, &e) < 0);
    CHECK_STR(e.msg, "'pc2' is named twice");
    CHECK(pool_read_nodes(STR("pc[1-5000]"), &a, &names, &n, &e) < 0);
}

/* Is it open then, with one exception on top of the window? */
static bool open_at(const char *window, struct pool_except x, int64_t t_ms)
{
    struct calendar w, c, extra = calendar_always();
    struct err e = { 0 };
    CHECK(pool_read_window(str_of(window), NOON_MS, &w, &e) == 0);
    CHECK(pool_add_exception(&extra, &x, x.from_ms, &e) == 0);
    CHECK(pool_merge(&w, &extra, &c, &e) == 0);
    CHECK_STR(e.msg, "");
    return calendar_is_open(&c, t_ms);
}

#define BERLIN "zone=CET-1CEST,M3.5.0,M10.5.0/3; "

static void an_exception_is_of_instants_in_every_zone(void)
{
    struct pool_except shut = { false, NOON_MS, NOON_MS + 2 * HOUR_MS };
    static const char *const zones[] = { "zone=UTC0", "zone=CET-1CEST,M3.5.0,M10.5.0/3",
                                         "zone=<+0330>-3:30", "zone=EST5EDT,M3.2.0,M11.1.0" };
    for (size_t i = 0; i < ARRAY_LEN(zones); i++) {
        CHECK(open_at(zones[i], shut, NOON_MS - 1));
        CHECK(!open_at(zones[i], shut, NOON_MS));
        CHECK(!open_at(zones[i], shut, NOON_MS + 2 * HOUR_MS - 1));
        CHECK(open_at(zones[i], shut, NOON_MS + 2 * HOUR_MS));
    }
    struct pool_except lend = { true, NOON_MS, NOON_MS + HOUR_MS };
    CHECK(open_at(BERLIN "Mon-Fri 20:00-08:00", lend, NOON_MS + 1));
    CHECK(!open_at(BERLIN "Mon-Fri 20:00-08:00", lend, NOON_MS + HOUR_MS));
}

static void minutes_are_taken_whole_around_it(void)
{
    struct pool_except x = { false, NOON_MS + 30000, NOON_MS + 5 * MIN_MS + 1 };
    CHECK(!open_at("", x, NOON_MS) && !open_at("", x, NOON_MS + 6 * MIN_MS - 1));
    CHECK(open_at("", x, NOON_MS + 6 * MIN_MS));
}

static void in_the_hour_that_comes_twice_it_is_never_too_short(void)
{
    int64_t back_ms = INT64_C(1792890000000); /* 2026-10-25 01:00 UTC: 03:00 becomes 02:00 */
    for (int from = -90; from < 90; from += 10)
        for (int len = 1; len < 150; len += 7) {
            struct pool_except x = { false, back_ms + from * MIN_MS,
                                     back_ms + (from + len) * MIN_MS };
            for (int64_t t_ms = x.from_ms; t_ms < x.until_ms; t_ms += MIN_MS)
                CHECK(!open_at("zone=CET-1CEST,M3.5.0,M10.5.0/3", x, t_ms));
        }
}

static void what_is_over_or_covered_is_dropped_and_there_is_a_bound(void)
{
    struct calendar c = calendar_always(), w = calendar_always(), all;
    struct err e = { 0 };
    struct pool_except x = { false, NOON_MS, NOON_MS + MIN_MS };
    CHECK(pool_add_exception(&c, &x, NOON_MS, &e) == 0 && c.exceptions == 1);
    x = (struct pool_except){ true, NOON_MS + HOUR_MS, NOON_MS + 2 * HOUR_MS };
    CHECK(pool_add_exception(&c, &x, NOON_MS + HOUR_MS, &e) == 0 && c.exceptions == 1);
    x = (struct pool_except){ false, NOON_MS + HOUR_MS, NOON_MS + 3 * HOUR_MS };
    CHECK(pool_add_exception(&c, &x, NOON_MS + HOUR_MS, &e) == 0 && c.exceptions == 1);
    CHECK(!c.exception[0].open);
    for (int i = 0; i < CALENDAR_EXCEPTIONS_MAX - 1; i++) {
        x = (struct pool_except){ true, NOON_MS + (10 + 2 * i) * HOUR_MS,
                                  NOON_MS + (11 + 2 * i) * HOUR_MS };
        CHECK(pool_add_exception(&c, &x, NOON_MS, &e) == 0);
    }
    struct calendar before = c;
    x = (struct pool_except){ true, NOON_MS + 900 * HOUR_MS, NOON_MS + 901 * HOUR_MS };
    CHECK(pool_add_exception(&c, &x, NOON_MS, &e) < 0 && calendar_equal(&c, &before));
    CHECK(pool_read_window(STR("closed 2026-12-24"), NOON_MS, &w, &e) == 0);
    CHECK(pool_merge(&w, &c, &all, &e) < 0 && strstr(e.hint, "regular"));
    x = (struct pool_except){ true, NOON_MS, NOON_MS };
    CHECK(pool_add_exception(&c, &x, NOON_MS, &e) < 0);
    x = (struct pool_except){ true, NOON_MS - HOUR_MS, NOON_MS - MIN_MS };
    CHECK(pool_add_exception(&c, &x, NOON_MS, &e) < 0);
    x = (struct pool_except){ true, NOON_MS, INT64_MAX };
    CHECK(pool_add_exception(&c, &x, NOON_MS, &e) < 0);
}

static const struct test tests[] = {
    { "a place is kept as its rule", a_place_is_kept_as_its_rule },
    { "names are bounded and plain", names_are_bounded_and_plain },
    { "a machine is named once", a_machine_is_named_once },
    { "an exception is of instants in every zone", an_exception_is_of_instants_in_every_zone },
    { "minutes are taken whole around it", minutes_are_taken_whole_around_it },
    { "in the hour that comes twice it is never too short",
      in_the_hour_that_comes_twice_it_is_never_too_short },
    { "what is over or covered is dropped and there is a bound",
      what_is_over_or_covered_is_dropped_and_there_is_a_bound },
};
TEST_CASES(tests)
