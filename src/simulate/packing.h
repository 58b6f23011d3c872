/* packing - the packing benchmark: pods arrive one by one, are placed at once or dropped, and
 * stay. */
#ifndef NS_SIMULATE_PACKING_H
#define NS_SIMULATE_PACKING_H

#include "base/buf.h"
#include "simulate/openb.h"

#define PACKING_PERCENT_MAX 400

struct packing_seed {
    uint64_t seed;
    /* Percent allocated at each percent of arrived demand; NAN: not known. */
    double alloc[PACKING_PERCENT_MAX];
    uint64_t placed, dropped;
    double ns_per_placement;
};

struct packing_result {
    const char *workload, *policy;
    struct packing_seed *seed; /* the caller frees */
    uint32_t seeds;
    double alloc_100, alloc_130, ns_per_placement; /* means over the seeds */
    double off_published; /* most off a published point of this policy; NAN: none is known */
};

/* prior_trace: the policy knows the whole pod list beforehand; else only what has arrived. */
int packing_run(const struct openb *o, const char *workload, const char *policy, bool prior_trace,
                struct packing_result *out, struct err *e) MUST_USE;
void packing_json(const struct packing_result *r, struct buf *out);

#endif
