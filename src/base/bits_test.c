#include "base/bits.h"

#include "base/rng.h"
#include "tests/lib/test.h"

#define SPAN 70000u

static uint32_t naive_next(const bool *in, uint32_t n, uint32_t from)
{
    for (uint32_t i = from; i < n; i++)
        if (in[i])
            return i;
    return BITS_NONE;
}

static void agrees_with_an_array(void)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        AUTO(bits_free) struct bits b = { 0 };
        AUTO(free_p) bool *in = xcalloc(SPAN, sizeof *in);
        struct rng r = { seed };
        uint32_t span = 1 + rng_below(&r, seed % 2 ? 300 : SPAN), n = 0;
        for (int step = 0; step < 2000; step++) {
            uint32_t x = rng_below(&r, span);
            if (rng_below(&r, 2)) {
                n += !in[x];
                in[x] = true;
                bits_add(&b, x);
            } else {
                /* Mostly a member, so that sets run empty again. */
                uint32_t y = naive_next(in, span, x);
                x = y == BITS_NONE ? x : y;
                n -= in[x];
                in[x] = false;
                bits_remove(&b, x);
            }
            CHECK_AT(seed, b.n == n && bits_has(&b, x) == in[x]);
            CHECK_AT(seed, bits_first(&b) == naive_next(in, span, 0));
            x = rng_below(&r, span + 10);
            CHECK_AT(seed, bits_next(&b, x) == naive_next(in, span, x));
        }
    }
}

static void an_empty_set_has_nothing(void)
{
    struct bits b = { 0 };
    CHECK(bits_first(&b) == BITS_NONE && bits_next(&b, UINT32_MAX) == BITS_NONE);
    CHECK(!bits_has(&b, 0) && !bits_has(&b, UINT32_MAX));
    bits_remove(&b, 9);
    CHECK(b.n == 0);
}

static void the_largest_number_fits(void)
{
    AUTO(bits_free) struct bits b = { 0 };
    bits_add(&b, BITS_MAX - 1);
    bits_add(&b, 0);
    bits_add(&b, 0);
    CHECK(b.n == 2 && bits_next(&b, 1) == BITS_MAX - 1);
    CHECK(bits_next(&b, BITS_MAX) == BITS_NONE);
    bits_remove(&b, 0);
    CHECK(bits_first(&b) == BITS_MAX - 1);
}

static void walking_visits_each_once(void)
{
    AUTO(bits_free) struct bits b = { 0 };
    for (uint32_t x = 0; x < 200000; x += 37)
        bits_add(&b, x);
    uint32_t want = 0;
    for (uint32_t x = bits_first(&b); x != BITS_NONE; x = bits_next(&b, x + 1), want += 37)
        CHECK(x == want);
    CHECK(want >= 200000);
}

static const struct test tests[] = {
    { "a set agrees with an array on random operations", agrees_with_an_array },
    { "an empty set has no member, wherever one asks", an_empty_set_has_nothing },
    { "the largest number fits beside the smallest", the_largest_number_fits },
    { "walking visits each member once, in order", walking_visits_each_once },
};
TEST_MAIN(tests)
