/* told - what a replay tells the core from outside, in order: steps and submits of a trace.
 *
 * A journal brings its own steps.  For any other trace they are made here: the policy, tenants,
 * windows and machines, all there when the first job comes.  For replay_own.c only.
 */
#ifndef NS_SIMULATE_TOLD_H
#define NS_SIMULATE_TOLD_H

#include "base/map.h"
#include "simulate/replay.h"

struct telling {
    struct trace_mark at;
    uint32_t index; /* of a step, or of a job of the part */
    uint32_t ghost; /* of a step that submits a job that never ran: its number; else NONE */
    bool is_step;
};

struct told {
    const struct trace_step *step;
    struct trace_step *made; /* owned; NULL: the steps are the trace's */
    struct telling *at;
    uint32_t n, next;
    uint32_t ghosts;
    struct map by_id; /* the journal's id of a job, to its index; ghosts follow the part's jobs */
};

void told_begin(const struct part *p, struct told *out);
void told_free(struct told *t);

#endif
