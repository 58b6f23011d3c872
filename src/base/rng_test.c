#include "base/rng.h"

#include "tests/lib/test.h"

#define DRAWS 200000

/* Pinned: a recorded seed must give the same world on every machine and compiler. */
static void a_seed_gives_one_world(void)
{
    struct rng r = { 1 };
    CHECK(rng_u64(&r) == UINT64_C(0x910a2dec89025cc1));
    double sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += rng_exp(&r, 3.0) + rng_normal(&r);
    union {
        double d;
        uint64_t u;
    } bits = { sum };
    CHECK(bits.u == UINT64_C(0x40a6f65d6dc94a29));
    CHECK(rng_u64(&r) == UINT64_C(0xe87de9cb47418969));
}

static void below_is_even(void)
{
    struct rng r = { 2 };
    unsigned seen[7] = { 0 };
    for (int i = 0; i < DRAWS; i++)
        seen[rng_below(&r, 7)]++;
    for (int i = 0; i < 7; i++)
        CHECK(seen[i] > DRAWS / 7 * 97 / 100 && seen[i] < DRAWS / 7 * 103 / 100);
    CHECK(rng_below(&r, 1) == 0);
}

static void between_includes_both_ends(void)
{
    struct rng r = { 3 };
    bool lo = false, hi = false, high_half = false;
    for (int i = 0; i < 1000; i++) {
        uint32_t x = rng_between(&r, 5, 8);
        CHECK(x >= 5 && x <= 8);
        lo |= x == 5;
        hi |= x == 8;
        high_half |= rng_between(&r, 0, UINT32_MAX) > UINT32_MAX / 2;
    }
    CHECK(lo && hi && high_half);
    CHECK(rng_between(&r, 9, 9) == 9);
}

static void unit_lies_below_one(void)
{
    struct rng r = { 4 };
    double sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        double u = rng_unit(&r);
        CHECK(u >= 0 && u < 1);
        sum += u;
    }
    CHECK(sum / DRAWS > 0.497 && sum / DRAWS < 0.503);
}

static void exponential_has_its_mean(void)
{
    struct rng r = { 5 };
    double sum = 0;
    int above = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = rng_exp(&r, 10);
        CHECK(x >= 0 && x < 10 * 37);
        sum += x;
        above += x > 10;
    }
    CHECK(sum / DRAWS > 9.9 && sum / DRAWS < 10.1);
    CHECK(above > DRAWS * 0.364 && above < DRAWS * 0.372); /* 1/e */
}

static void normal_has_its_shape(void)
{
    struct rng r = { 6 };
    double sum = 0, squares = 0;
    int within = 0, far = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = rng_normal(&r);
        sum += x;
        squares += x * x;
        within += x > -1 && x < 1;
        far += x > 3 || x < -3;
    }
    CHECK(sum / DRAWS > -0.01 && sum / DRAWS < 0.01);
    CHECK(squares / DRAWS > 0.985 && squares / DRAWS < 1.015);
    CHECK(within > DRAWS * 0.679 && within < DRAWS * 0.687);
    CHECK(far > DRAWS * 0.0022 && far < DRAWS * 0.0032);
}

static const struct test tests[] = {
    { "a seed gives the same world everywhere", a_seed_gives_one_world },
    { "numbers below n come evenly", below_is_even },
    { "a range includes both its ends", between_includes_both_ends },
    { "the unit draw lies in [0, 1) with mean one half", unit_lies_below_one },
    { "the exponential draw has its mean and its tail", exponential_has_its_mean },
    { "the normal draw has its mean, deviation and tails", normal_has_its_shape },
};
TEST_CASES(tests)
