/* demand - what jobs have asked for so far, and what that says about a machine's room.
 *
 * Learnt from the jobs that were submitted, nothing else.  Three prices come of it, all in
 * thousandths of a GPU that a placement would make unusable:
 *   device    a free part of a GPU that the usual shares do not fill: waste[model][free];
 *   block     whole free GPUs on one node that jobs of several GPUs would have wanted together;
 *   strand    free GPUs that the free CPUs and memory of their node cannot feed, judged by four
 *             groups of jobs from frugal to hungry;
 * and a model costs its `price` for each part taken: how much of what is left of it is asked for by
 * jobs that cannot run elsewhere.
 */
#ifndef NS_CORE_DEMAND_H
#define NS_CORE_DEMAND_H

#include "core/cluster.h"

#define DEMAND_STEPS 100 /* of free parts of a GPU: ten thousandths each */

/* Four numbers that are computed with at once. */
typedef float vec4 __attribute__((vector_size(16)));
typedef int32_t mask4 __attribute__((vector_size(16)));

struct demand_kind {
    uint64_t models;
    uint32_t cpu_milli, mem_mib;
    uint16_t gpus, milli; /* milli of each GPU; 0 with gpus 0: no GPU at all */
    uint32_t count;
};

struct demand {
    struct demand_kind *kind;
    uint32_t kinds, kind_cap;
    struct map kind_by_hash;
    uint32_t *bound; /* kinds that name their models */
    uint32_t bounds, bound_cap;
    double asked;                      /* GPU thousandths, of all kinds */
    uint64_t seen, learn_at, price_at; /* replicas seen; when to derive what stands below again */
    uint32_t epoch;                    /* grows with each derivation */

    float waste[MODELS_MAX][DEMAND_STEPS + 1];
    bool models_differ; /* some job named its models: else their wastes are all alike */
    float block[GPUS_PER_NODE_MAX + 1]; /* value of so many whole free GPUs on a node, below zero */
    float price[MODELS_MAX];
    vec4 per_cpu, per_mem; /* GPU thousandths that one CPU thousandth, one MiB feeds */
};

void demand_init(struct demand *d);
void demand_free(struct demand *d);
void demand_learn(struct demand *d, const struct cluster *c, const struct request *r);
void demand_add(struct demand *d, const struct cluster *c, const struct demand_kind *k);

/* GPU thousandths in this room that its CPUs and memory cannot feed. */
static inline float demand_stranded(const struct demand *d, float gpu_milli, float cpu_milli,
                                    float mem_mib)
{
    vec4 cpu = d->per_cpu * cpu_milli, mem = d->per_mem * mem_mib, zero = { 0 };
    mask4 less = cpu < mem; /* C has no ?: for vectors: masks choose the lesser of the two */
    vec4 left = gpu_milli - (vec4)((less & (mask4)cpu) | (~less & (mask4)mem));
    left = (vec4)((left > zero) & (mask4)left);
    return ((left[0] + left[1]) + (left[2] + left[3])) * 0.25f;
}

#endif
