/* taker - a waiting job that looks for room which others hold; only take.c and take_rights.c. */
#ifndef NS_CORE_TAKER_H
#define NS_CORE_TAKER_H

#include "core/state.h"

#define TRIES_MAX 6     /* nodes that could not be cleared before the search gives up */
#define FREEZE_HARM 0.5 /* of each job that is frozen, in GPUs */

struct taker {
    struct core *c;
    struct take_scratch *s;
    const struct job *j;
    const struct request *r;
    uint32_t rank;
    double worth;
    bool express;                  /* it will probably have ended soon */
    bool overdue;                  /* it has waited too long */
    bool moves;                    /* jobs that stay may be moved */
    uint32_t bad[TRIES_MAX], bads; /* nodes that could not be cleared */
};

/* Is there anything at all that it may take?  The cheap way to say no; taker_may_take needs it. */
bool taker_has_rights(struct taker *t);
bool taker_can_freeze(const struct taker *t, uint32_t job); /* it runs and has rested enough */
bool taker_may_take(const struct taker *t, const struct job *v);

double taker_gpus_of(const struct held *h);
double taker_harm_of(const struct taker *t, const struct job *v); /* of freezing it, in GPUs */

#endif
