/* shape - equal requests are one shape: what fits and what does not is found out once for all. */
#ifndef NS_CORE_SHAPE_H
#define NS_CORE_SHAPE_H

#include "base/map.h"
#include "core/history.h"

struct shape {
    struct request request;
    uint32_t size; /* class by GPUs, and what a large job's worth is less: see history.h */
    double weight;
    uint32_t refs;   /* jobs of this shape that have not ended */
    uint32_t next;   /* same hash, or the next unused one */
    uint32_t groups; /* first group of waiting jobs; see queue.h */
    uint32_t open;   /* its groups that do not wait for a limit */
    uint64_t woken;  /* the pass in which room for it came, on the nodes that were freed then */
};

struct shapes {
    struct shape *at;
    bool *no_room; /* of each: known not to fit since room was last freed for it */
    uint32_t n, cap, unused;
    struct map by_hash;
};

void shapes_init(struct shapes *s);
void shapes_free(struct shapes *s);
uint32_t shapes_ref(struct shapes *s,
                    const struct request *r); /* finds or makes it, counts one more */
void shapes_unref(struct shapes *s, uint32_t shape);

/* What a job of this shape counts against limits; share_milli: what a sharing replica counts. */
struct amounts request_amounts(const struct request *r, uint32_t share_milli);

#endif
