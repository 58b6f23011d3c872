/* ear - whoever wants to know what happens, told inside the turn in which it does.
 *
 * What it adds to the batch is in the same commit as what it hears of.  It changes nothing else.
 */
#ifndef NS_CONTROL_EAR_H
#define NS_CONTROL_EAR_H

#include "store/store.h"

/* So much of a tenant's GPU-hours is used; told once for each step and period, after a restart perhaps again. */
struct control_budget {
    struct str tenant;
    uint32_t percent;
    int64_t used_gpu_milli_ms, gpu_milli_ms, from_ms, until_ms;
};

/* Each may be NULL. */
struct control_ear {
    void (*job)(void *ctx, struct store_batch *b,
                const struct store_job *j); /* ended, frozen, paused */
    void (*budget)(void *ctx, struct store_batch *b, const struct control_budget *v);
    void (*closing)(void *ctx, struct store_batch *b); /* the turn is about to be written */
    void (*durable)(void *ctx); /* it is on the disk; before it is acted on */
    void *ctx;
};

#endif
