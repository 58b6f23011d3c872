#include "http/rate.h"

#include "tests/lib/test.h"

static void a_burst_then_a_steady_flow(void)
{
    AUTO(rate_free_p) struct rate *r = rate_new(10, 3, 100);
    for (int i = 0; i < 3; i++)
        CHECK_INT(rate_take(r, 1, 5000), 0);
    CHECK_INT(rate_take(r, 1, 5000), 100); /* ten a second: the next is due in 100 ms */
    CHECK_INT(rate_take(r, 1, 5060), 40);
    CHECK_INT(rate_take(r, 1, 5100), 0);
    CHECK_INT(rate_take(r, 1, 5100), 100);
}

static void a_rest_never_saves_more_than_a_burst(void)
{
    AUTO(rate_free_p) struct rate *r = rate_new(1000, 2, 100);
    CHECK_INT(rate_take(r, 1, 0), 0);
    for (int i = 0; i < 2; i++)
        CHECK_INT(rate_take(r, 1, INT64_MAX), 0);
    CHECK(rate_take(r, 1, INT64_MAX) > 0);
}

static void peers_do_not_take_each_others_tokens(void)
{
    AUTO(rate_free_p) struct rate *r = rate_new(1, 1, 1000);
    for (uint64_t peer = 0; peer < 100; peer++) /* far fewer than there is room for */
        CHECK_INT(rate_take(r, peer << 32, 0), 0);
    CHECK_INT(rate_take(r, UINT64_C(7) << 32, 0), 1000);
    CHECK_INT(rate_take(r, UINT64_C(7) << 32, 1000), 0);
}

static void a_clock_that_goes_back_gives_nothing(void)
{
    AUTO(rate_free_p) struct rate *r = rate_new(1, 1, 10);
    CHECK_INT(rate_take(r, 1, 10000), 0);
    CHECK_INT(rate_take(r, 1, 2000), 1000);
}

static void new_names_bring_no_new_tokens(void)
{
    AUTO(rate_free_p) struct rate *r = rate_new(1, 2, 8);
    int allowed = 0;
    for (uint64_t peer = 0; peer < 10000; peer++)
        allowed += rate_take(r, peer, 0) == 0;
    CHECK_INT(allowed, 16); /* eight buckets of two */
}

static void a_peer_that_rested_makes_room(void)
{
    AUTO(rate_free_p) struct rate *r = rate_new(1, 1, 8);
    for (uint64_t peer = 0; peer < 8; peer++)
        CHECK_INT(rate_take(r, peer, 0), 0);
    CHECK(rate_take(r, 100, 0) > 0);
    CHECK_INT(rate_take(r, 101, 1000), 0); /* theirs are full again: nobody loses any */
}

static const struct test tests[] = {
    { "a burst is let through, then a steady flow", a_burst_then_a_steady_flow },
    { "a rest never saves up more than a burst", a_rest_never_saves_more_than_a_burst },
    { "peers do not take each other's tokens", peers_do_not_take_each_others_tokens },
    { "a clock that goes back gives nothing", a_clock_that_goes_back_gives_nothing },
    { "ever new names bring no new tokens", new_names_bring_no_new_tokens },
    { "a peer that has rested makes room for another", a_peer_that_rested_makes_room },
};
TEST_CASES(tests)
