/* gen_trace - small valid traces in the published formats, made from a seed: what tests read
 * instead of the real ones, which are not part of the project. */
#ifndef NS_TESTS_LIB_GEN_TRACE_H
#define NS_TESTS_LIB_GEN_TRACE_H

#include "base/buf.h"

#define GEN_OPENB_NODES 24
#define GEN_OPENB_PODS 120
#define GEN_OPENB_SEEDS 3
#define GEN_PHILLY_JOBS 200
#define GEN_SWF_JOBS 150 /* besides those that never ran */
#define GEN_SHOCKWAVE_JOBS 60

struct gen_openb {
    struct buf nodes, pods, seq, ranks, published; /* of the workload "default" */
};
void gen_openb(uint64_t seed, struct gen_openb *out);
void gen_openb_free(struct gen_openb *g);

struct gen_philly {
    struct buf vcs, jobs;
};
void gen_philly(uint64_t seed, struct gen_philly *out);
void gen_philly_free(struct gen_philly *g);

void gen_swf(uint64_t seed, struct buf *out);
void gen_shockwave(uint64_t seed, struct buf *out);

#endif
