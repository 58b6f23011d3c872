/* choose - whole machines for so many GPUs.
 *
 * Machines that will be free in time come first; the others are taken only when those are not enough, and
 * then all of the first are.  Of what is left open, the choice has the fewest GPUs too many, then larger
 * machines before smaller ones, and of equal ones those that come first.  The same machines give the same choice.
 */
#ifndef NS_CONTROL_CHOOSE_H
#define NS_CONTROL_CHOOSE_H

#include "base/base.h"

struct choice {
    uint32_t node, gpus; /* gpus: 1 to GPUS_PER_NODE_MAX */
    bool busy;           /* something may still run there */
    bool chosen;         /* out */
};

/* How many GPUs were chosen; 0: there are not enough, and nothing is. */
uint64_t choose_machines(struct choice *at, size_t n, uint64_t want_gpus);

#endif
