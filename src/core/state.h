/* state - what the core's own files share; nobody outside core/ includes it. */
#ifndef NS_CORE_STATE_H
#define NS_CORE_STATE_H

#include "core/core.h"
#include "core/later.h"
#include "core/place.h"
#include "core/policy.h"
#include "core/queue.h"

/* Room kept on nodes for a job that has waited too long; nothing else starts in it. */
struct claim {
    uint32_t job;
    uint32_t *node;
    uint32_t n;
    int64_t cost_milli; /* counts as held by the job's tenant while nodes are kept */
};

struct core {
    struct policy policy;
    struct cluster cluster;
    struct demand demand;
    struct shares shares;
    struct shapes shapes;
    struct queue queue;
    struct laters laters;
    struct claim *claim;
    uint32_t claims, claim_cap;
    int64_t claim_check_ms; /* when to look for the next claim */
    struct gang_scratch scratch;
    struct slot *slots; /* working memory for one placement */
    int64_t now_ms;     /* the latest time seen */
    uint64_t passes;    /* made so far */
    bool pass_open;     /* a journal's pass is being restored: its decisions may still follow */
    uint64_t last_job;  /* the largest job id seen */
};

/* What a job counts against limits now; for a share by memory a new kind of node may change it. */
static inline struct amounts core_amounts(const struct core *c, const struct request *r)
{
    return request_amounts(r, cluster_most_share_milli(&c->cluster, r));
}

/* What starting it would add to its tenant's cost, about: where it will run is not known yet. */
static inline int64_t core_next_cost_milli(const struct core *c, const struct request *r)
{
    struct amounts a = core_amounts(c, r);
    return (int64_t)a.of[RES_GPU] + (int64_t)a.of[RES_CPU] * c->policy.cpu_cost_milli / 1000;
}

/* core.c: what a pass and the journal's decisions have in common */
void core_close_pass(struct core *c); /* what a restored pass does after its decisions */
uint32_t core_over_limit(const struct core *c, const struct job *j, enum resource *out_which);
void core_place(struct core *c, uint32_t job, const struct slot *slots, uint32_t n, int64_t now_ms);

/* claim.c */
void claims_drop(struct core *c, uint32_t job); /* when the job no longer waits */
/* The first and the last thing that a pass does.  Both look at the state and at nothing else, so a
 * restored journal, which has a pass's decisions but not its claims, comes to the same ones. */
void claims_review(struct core *c); /* room that a job may not use is not kept for it */
void claims_make(struct core *c, int64_t now_ms);

#endif
