#include "base/decay.h"

#include <string.h>

/* 2^n for n in [-1022, 1023]. */
static double exact_pow2(int n)
{
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* e^t for |t| <= ln(2)/2: the Taylor series, whose next term is below 2^-57. */
static double small_exp(double t)
{
    static const double inverse_factorial[] = {
        1.0 / 6227020800.0,
        1.0 / 479001600.0,
        1.0 / 39916800.0,
        1.0 / 3628800.0,
        1.0 / 362880.0,
        1.0 / 40320.0,
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        1.0 / 2.0,
        1.0,
    };
    double sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(inverse_factorial); i++)
        sum = sum * t + inverse_factorial[i];
    return 1.0 + sum * t;
}

double decay_pow2(double x)
{
    const double ln2 = 0.69314718055994530942;
    if (!(x >= -1075.0))
        return x < -1075.0 ? 0.0 : x; /* a NaN stays one */
    if (x >= 1024.0)
        return (double)__builtin_inf();
    int n = (int)(x >= 0 ? x + 0.5 : x - 0.5);
    double near = small_exp((x - (double)n) * ln2);
    /* In two steps, so that neither power leaves the range and a tiny result rounds only once. */
    return near * exact_pow2(n / 2) * exact_pow2(n - n / 2);
}

double decay_log2(double x)
{
    const double ln2 = 0.69314718055994530942;
    uint64_t bits;
    int n = 0;
    if (!(x > 0) || x > 1e300)
        return 0;
    for (; x < 1e-300; n -= 64) /* the smallest have no exponent of their own */
        x *= exact_pow2(64);
    memcpy(&bits, &x, sizeof bits);
    n += (int)(bits >> 52) - 1023;
    double m = x / exact_pow2((int)(bits >> 52) - 1023); /* 1 to 2 */
    if (m > 1.4142135623730951) {
        m /= 2;
        n++;
    }
    double t = (m - 1) / (m + 1), square = t * t, sum = 0; /* ln m = 2 artanh t, |t| < 0.18 */
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return n + 2 * t * sum / ln2;
}

double decay_factor(int64_t dt_ms, int64_t half_life_ms)
{
    if (dt_ms <= 0 || half_life_ms <= 0)
        return 1.0;
    /* Whole half-lives apart: a quotient in a double would lose digits as it grows. */
    int64_t whole = dt_ms / half_life_ms, part = dt_ms % half_life_ms;
    if (whole > 1074)
        return 0.0;
    return decay_pow2(-(double)part / (double)half_life_ms) * decay_pow2(-(double)whole);
}
