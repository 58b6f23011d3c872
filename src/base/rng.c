#include "base/rng.h"

#include <assert.h>
#include <string.h>

uint64_t rng_u64(struct rng *r)
{
    uint64_t z = r->s += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The high half of a product is uniform once the few low halves that would favour some numbers
 * are drawn again. */
uint32_t rng_below(struct rng *r, uint32_t n)
{
    assert(n > 0);
    uint32_t skip = (uint32_t)-n % n;
    for (;;) {
        uint64_t product = (rng_u64(r) >> 32) * n;
        if ((uint32_t)product >= skip)
            return (uint32_t)(product >> 32);
    }
}

uint32_t rng_between(struct rng *r, uint32_t lo, uint32_t hi)
{
    assert(lo <= hi);
    uint32_t span = hi - lo + 1;
    return span ? lo + rng_below(r, span) : (uint32_t)(rng_u64(r) >> 32);
}

double rng_unit(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

/* ln(x) for a normal x > 0, without libm: x = m * 2^k with m near 1, then the series of
 * ln((1+s)/(1-s)), whose next term is below 2^-55 for |s| < 0.172. */
static double ln(double x)
{
    const double ln2 = 0.69314718055994530942;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int k = (int)(bits >> 52) - 1023;
    bits = (bits & (UINT64_MAX >> 12)) | UINT64_C(1023) << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        k++;
    }
    double s = (m - 1.0) / (m + 1.0), s2 = s * s, sum = 0;
    for (int odd = 21; odd >= 1; odd -= 2)
        sum = sum * s2 + 1.0 / (double)odd;
    return (double)k * ln2 + 2.0 * s * sum;
}

/* sqrt(x) for a normal x > 0 by Newton's steps from a guess with half the exponent. */
static double root(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits >> 1) + (UINT64_C(1023) << 51);
    double y;
    memcpy(&y, &bits, sizeof y);
    for (int i = 0; i < 5; i++)
        y = 0.5 * (y + x / y);
    return y;
}

double rng_exp(struct rng *r, double mean)
{
    return -mean * ln(1.0 - rng_unit(r)); /* 1 - [0, 1) is never 0 */
}

/* The polar method.  The second value of each pair is dropped, so that the state stays one
 * word. */
double rng_normal(struct rng *r)
{
    for (;;) {
        double u = 2.0 * rng_unit(r) - 1.0, v = 2.0 * rng_unit(r) - 1.0;
        double q = u * u + v * v;
        if (q > 0.0 && q < 1.0)
            return u * root(-2.0 * ln(q) / q);
    }
}
