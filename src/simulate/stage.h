/* stage - the machines of one part of a trace, and what its jobs hold on them.
 *
 * What the reference policies share: a job is checked when it arrives, takes a place when its
 * policy lets it, and gives it back when it ends or is preempted.  The policies are in
 * replay_reference.c and replay_preempt.c; the stage knows neither time nor order.
 */
#ifndef NS_SIMULATE_STAGE_H
#define NS_SIMULATE_STAGE_H

#include "simulate/packer.h"
#include "simulate/replay.h"

/* Instead of a packer: the tightest node; a job of more GPUs than a node has on whole nodes, its
 * rest on the emptiest. */
#define STAGE_CONSOLIDATE "consolidate"

struct stage {
    const struct part *p;
    struct cluster c;
    struct packer packer;
    struct gang_scratch scratch;
    bool consolidate;
    struct request *request; /* with models resolved */
    struct held {
        struct slot *slots;
        uint32_t n;
    } * held;
    struct slot *found; /* scratch */
};

/* A stage that was zeroed may be closed whether it was opened or not.  Jobs are named by their index
 * in the part. */
int stage_open(struct stage *s, const struct part *p, const char *packing, struct err *e) MUST_USE;
void stage_close(struct stage *s);

static inline const struct trace_job *stage_job(const struct stage *s, uint32_t i)
{
    return &s->p->t->job[s->p->job[i]];
}

/* The job came; an error when it could not even run on idle machines. */
int stage_admit(struct stage *s, uint32_t i, struct err *e) MUST_USE;

/* Gives the job a place.  false: there is none now. */
bool stage_take(struct stage *s, uint32_t i);
void stage_give(struct stage *s, uint32_t i);

double stage_gpus(const struct stage *s, uint32_t i); /* that it holds */

/* Thousandths of a GPU: what there is, and what an admitted job asks for.  A share by memory counts
 * by the machines on which it is largest, but as no more than there is. */
uint64_t stage_total_milli(const struct stage *s);
uint64_t stage_wants_milli(const struct stage *s, uint32_t i);

#endif
