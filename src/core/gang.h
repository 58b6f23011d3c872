/* gang - many replicas at once: all of them get a place, or none.
 *
 * Candidates (cells, or single nodes) say how many replicas each of their nodes can take; the fill
 * takes the largest first and closes with the tightest, which is the least number of nodes.  A gang
 * stays on one GPU model when any has room for all of it.
 */
#ifndef NS_CORE_GANG_H
#define NS_CORE_GANG_H

#include "core/cluster.h"

/* Working memory that one search leaves to the next. */
struct gang_scratch {
    struct candidate *cand;
    uint32_t cap;
    struct gain *gain; /* of shares, on the prices of one demand: see place.c */
};
void gang_scratch_free(struct gang_scratch *g);

/* Finds slots (r->replicas of them, in order of nodes); takes nothing.  false: no room. */
bool gang_find(const struct cluster *c, const struct request *r, struct gang_scratch *g,
               struct slot *out);

/* The same on these nodes only, whatever they are kept for. */
bool gang_find_on(const struct cluster *c, const struct request *r, const uint32_t *node,
                  uint32_t n, struct gang_scratch *g, struct slot *out);

/* Would it fit if nothing ran?  On the nodes that exist, whatever their state. */
bool gang_fits_idle(const struct cluster *c, const struct request *r);

#endif
