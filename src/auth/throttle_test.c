#include "auth/throttle.h"

#include "tests/lib/test.h"

static const struct attempt ana_here = { .user = 1, .place = 100 };

static void a_few_mistakes_cost_nothing_then_each_costs_twice_as_long(void)
{
    AUTO(throttle_free_p) struct throttle *t = throttle_new(1024);
    int64_t now = 1000000;
    for (int i = 0; i < THROTTLE_PAIR_FREE; i++) {
        CHECK(throttle_wait_ms(t, &ana_here, now) == 0);
        throttle_failed(t, &ana_here, now);
    }
    CHECK(throttle_wait_ms(t, &ana_here, now) == 1000);
    CHECK(throttle_wait_ms(t, &ana_here, now + 999) == 1);
    CHECK(throttle_wait_ms(t, &ana_here, now + 1000) == 0);
    throttle_failed(t, &ana_here, now);
    CHECK(throttle_wait_ms(t, &ana_here, now) == 2000);
    for (int i = 0; i < 40; i++)
        throttle_failed(t, &ana_here, now);
    CHECK(throttle_wait_ms(t, &ana_here, now) == THROTTLE_PAIR_MAX_MS);
    throttle_passed(t, &ana_here);
    CHECK(throttle_wait_ms(t, &ana_here, now) == 0);
}

static void counts_fade(void)
{
    AUTO(throttle_free_p) struct throttle *t = throttle_new(1024);
    for (int i = 0; i < 30; i++)
        throttle_failed(t, &ana_here, 1000);
    CHECK(throttle_wait_ms(t, &ana_here, 1000) > 0);
    CHECK(throttle_wait_ms(t, &ana_here, 1000 + 3 * THROTTLE_FADES_MS) == 0);
}

static void an_attack_from_one_place_does_not_keep_the_victim_out(void)
{
    AUTO(throttle_free_p) struct throttle *t = throttle_new(1024);
    struct attempt home = { .user = 1, .place = 7 };
    for (int i = 0; i < 90; i++)
        throttle_failed(t, &ana_here, 5000);
    CHECK(throttle_wait_ms(t, &ana_here, 5000) == THROTTLE_PAIR_MAX_MS);
    CHECK(throttle_wait_ms(t, &home, 5000) == 0);
}

static void an_attack_from_everywhere_costs_the_victim_a_minute_at_most_and_a_known_browser_nothing(
    void)
{
    AUTO(throttle_free_p) struct throttle *t = throttle_new(1024);
    struct attempt home = { .user = 1, .place = 7 },
                   known = { .user = 1, .place = 9, .known = true };
    for (uint64_t i = 0; i < 5000; i++)
        throttle_failed(t, &(struct attempt){ .user = 1, .place = 1000 + i }, 5000);
    CHECK(throttle_wait_ms(t, &home, 5000) == THROTTLE_USER_MAX_MS);
    CHECK(throttle_wait_ms(t, &known, 5000) == 0);
    for (int i = 0; i < 20; i++) /* a stolen browser does not guess faster than others */
        throttle_failed(t, &known, 5000);
    CHECK(throttle_wait_ms(t, &known, 5000) > 0);
}

static void a_place_that_tries_many_names_is_slowed(void)
{
    AUTO(throttle_free_p) struct throttle *t = throttle_new(1024);
    for (uint64_t i = 0; i < THROTTLE_PLACE_FREE + 5; i++)
        throttle_failed(t, &(struct attempt){ .user = 50 + i, .place = 3 }, 5000);
    CHECK(throttle_wait_ms(t, &(struct attempt){ .user = 999, .place = 3 }, 5000) == 32000);
    CHECK(throttle_wait_ms(t, &(struct attempt){ .user = 999, .place = 4 }, 5000) == 0);
}

static void a_flood_of_names_does_not_wash_away_the_guilty(void)
{
    AUTO(throttle_free_p) struct throttle *t = throttle_new(64);
    for (int i = 0; i < 60; i++)
        throttle_failed(t, &ana_here, 5000);
    for (uint64_t i = 0; i < 100000; i++)
        throttle_failed(t, &(struct attempt){ .user = i + 10, .place = i + 1000 }, 5001);
    CHECK(throttle_wait_ms(t, &ana_here, 5002) > 0);
}

static void an_attempt_that_was_counted_is_taken_back(void)
{
    AUTO(throttle_free_p) struct throttle *t = throttle_new(64);
    struct attempt a = { .user = 1, .place = 2 };
    for (int i = 0; i < THROTTLE_PAIR_FREE; i++)
        throttle_failed(t, &a, 0);
    CHECK(throttle_wait_ms(t, &a, 0) > 0);
    throttle_undo(t, &a);
    CHECK_INT(throttle_wait_ms(t, &a, 0), 0);
    for (int i = 0; i < 3 * THROTTLE_USER_FREE; i++) { /* whoever is right is never in the way */
        throttle_failed(t, &a, 0);
        throttle_undo(t, &a);
    }
    CHECK_INT(throttle_wait_ms(t, &a, 0), 0);
    throttle_undo(t, &(struct attempt){ .user = 7, .place = 8 });
}

static const struct test tests[] = {
    { "a few mistakes cost nothing, then each costs twice as long",
      a_few_mistakes_cost_nothing_then_each_costs_twice_as_long },
    { "counts fade", counts_fade },
    { "an attack from one place does not keep the victim out",
      an_attack_from_one_place_does_not_keep_the_victim_out },
    { "an attack from everywhere costs the victim a minute at most, and a known browser nothing",
      an_attack_from_everywhere_costs_the_victim_a_minute_at_most_and_a_known_browser_nothing },
    { "a place that tries many names is slowed", a_place_that_tries_many_names_is_slowed },
    { "a flood of names does not wash away the guilty",
      a_flood_of_names_does_not_wash_away_the_guilty },
    { "an attempt that was counted is taken back", an_attempt_that_was_counted_is_taken_back },
};
TEST_CASES(tests)
