/* rng - a small seeded generator (splitmix64): the same seed gives the same world everywhere, on
 * any machine, compiler and C library; so nothing here calls libm.
 */
#ifndef NS_BASE_RNG_H
#define NS_BASE_RNG_H

#include "base/base.h"

struct rng {
    uint64_t s;
};

uint64_t rng_u64(struct rng *r);
uint32_t rng_below(struct rng *r, uint32_t n);                 /* 0 … n-1; n > 0 */
uint32_t rng_between(struct rng *r, uint32_t lo, uint32_t hi); /* both ends included */
double rng_unit(struct rng *r);                                /* [0, 1) */
double rng_exp(struct rng *r, double mean);
double rng_normal(struct rng *r); /* mean 0, deviation 1 */

#endif
