#include "base/decay.h"

#include "base/rng.h"
#include "tests/lib/test.h"

/* Distance in units of the last place; both positive. */
static uint64_t ulps(double a, double b)
{
    union {
        double d;
        uint64_t u;
    } x = { a }, y = { b };
    return x.u > y.u ? x.u - y.u : y.u - x.u;
}

static void whole_powers_are_exact(void)
{
    double want = 1.0;
    for (int n = 0; n <= 1023; n++, want *= 2)
        CHECK_AT(n, decay_pow2(n) == want);
    want = 1.0;
    for (int n = 0; n <= 1074; n++, want *= 0.5)
        CHECK_AT(n, decay_pow2(-n) == want);
}

/* Known digits, rounded once by the compiler. */
static void known_values_are_met(void)
{
    static const struct {
        double x, want;
    } known[] = {
        { 0.5, 1.4142135623730950488 },   { -0.5, 0.70710678118654752440 },
        { 0.25, 1.1892071150027210667 },  { 0.1, 1.07177346253629316834 },
        { -0.1, 0.93303299153680741239 }, { 3.3, 9.84915530675932906329 },
        { 0.49, 1.40444487573799717343 }, { -0.49, 0.71202509779853587376 },
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        CHECK_AT(i, ulps(decay_pow2(known[i].x), known[i].want) <= 2);
}

static void squares_agree(void)
{
    struct rng r = { 1 };
    for (int i = 0; i < 100000; i++) {
        /* 2^-30 steps, so that 2x is exact and only the power is in question. */
        double x = (double)(int64_t)rng_below(&r, 1u << 30) * 0x1p-30 - 0.5;
        double p = decay_pow2(x);
        CHECK_AT(i, ulps(p * p, decay_pow2(2 * x)) <= 6);
        CHECK_AT(i, p >= 0.70710678118654746 && p < 1.4142135623730954);
    }
}

static void outside_it_saturates(void)
{
    double inf = (double)__builtin_inf();
    CHECK(decay_pow2(-2000) == 0 && decay_pow2(-inf) == 0);
    CHECK(decay_pow2(1024) == inf && decay_pow2(inf) == inf);
    double none = decay_pow2((double)__builtin_nan(""));
    CHECK(none != none);
    CHECK(decay_pow2(1023.5) > 0x1p1023 && decay_pow2(1023.5) < inf);
}

static void factor_halves_each_half_life(void)
{
    int64_t week = 7 * 86400000LL;
    CHECK(decay_factor(0, week) == 1.0 && decay_factor(-5, week) == 1.0);
    CHECK(decay_factor(5, 0) == 1.0);
    CHECK(decay_factor(week, week) == 0.5 && decay_factor(40 * week, week) == 0x1p-40);
    CHECK(ulps(decay_factor(week / 2, week), 0.70710678118654752440) <= 1);
    CHECK(decay_factor(INT64_MAX, 1) == 0.0 && decay_factor(INT64_MAX, INT64_MAX) == 0.5);
}

static void factor_never_grows_with_time(void)
{
    double last = 1.0;
    for (int64_t t = 0; t < 200000; t += 7) {
        double f = decay_factor(t, 10007);
        CHECK_AT(t, f <= last && f > 0);
        last = f;
    }
}

/* Pinned: two builds that disagree here would replay a journal differently. */
static void the_bits_are_the_same_everywhere(void)
{
    uint64_t sum = 0;
    for (int64_t t = 1; t < 100000; t += 13) {
        union {
            double d;
            uint64_t u;
        } f = { decay_factor(t, 7919) };
        sum = sum * 31 + f.u;
    }
    CHECK(sum == UINT64_C(0xdd201116bdc68049));
}

static void a_logarithm_undoes_a_power(void)
{
    struct rng r = { 11 };
    for (int i = 0; i < 100000; i++) {
        double x = (rng_unit(&r) - 0.5) * 1900;
        double back = decay_log2(decay_pow2(x)), off = back > x ? back - x : x - back;
        CHECK_AT(i, off < 1e-12 * (x > 1 ? x : x < -1 ? -x : 1));
    }
    for (int n = -1074; n <= 990; n++)
        CHECK_AT(n, decay_log2(decay_pow2(n)) == n);
    CHECK(decay_log2(0) == 0 && decay_log2(-1) == 0);
}

static const struct test tests[] = {
    { "a logarithm undoes a power", a_logarithm_undoes_a_power },
    { "whole powers of two are exact, down to the smallest number", whole_powers_are_exact },
    { "known values are met to the last places", known_values_are_met },
    { "the square of a power is the power of the double", squares_agree },
    { "outside the range it gives 0, infinity or NaN", outside_it_saturates },
    { "a half-life halves; no time and no half-life change nothing", factor_halves_each_half_life },
    { "what is left never grows with time", factor_never_grows_with_time },
    { "the bits are the same on every machine", the_bits_are_the_same_everywhere },
};
TEST_CASES(tests)
