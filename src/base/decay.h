/* decay - how much of a past amount still counts: powers of two in plain arithmetic.
 *
 * Only IEEE additions, multiplications and divisions in a fixed order, never libm: two machines,
 * compilers or C libraries give the same bits, so a journal replays exactly.  (The build forbids
 * fused multiply-adds, which would make the last bit depend on the processor.)
 */
#ifndef NS_BASE_DECAY_H
#define NS_BASE_DECAY_H

#include "base/base.h"

/* 2^x for x in [-1074, 1023], within 2 units in the last place; exact for whole x.  Below that
 * range it gives 0, above it infinity. */
double decay_pow2(double x);

/* The exponent of 2 that gives x, for x > 0; within 1e-14 of it.  Of anything else: 0. */
double decay_log2(double x);

/* 2^(-dt/half_life).  1 when no time has passed (or the clock went back) and when there is no
 * half-life (<= 0): what is never forgotten. */
double decay_factor(int64_t dt_ms, int64_t half_life_ms);

#endif
