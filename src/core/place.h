/* place - where a job goes: the packing rule.
 *
 * One replica goes where it makes the least GPU unusable for the jobs that usually come (demand.h):
 * cells of one row differ only in what CPUs and memory would strand, and a row that cannot beat the
 * best so far is not looked at.  Of a long row a spread of cells is looked at, from the fewest free
 * CPUs to the most; if none of those fits, all are.  So the cost does not grow with the cluster,
 * and "no room" is never said wrongly.  Many replicas are gang.h's business.  Nothing is taken
 * here.
 */
#ifndef NS_CORE_PLACE_H
#define NS_CORE_PLACE_H

#include "core/demand.h"
#include "core/gang.h"

/* Finds r->replicas slots in order of nodes.  false: no room now. */
bool place_find(struct cluster *c, const struct demand *d, const struct request *r,
                struct gang_scratch *g, struct slot *out);

/* Could the job start on an idle cluster?  ERR_INVALID says what is missing. */
int place_check_possible(const struct cluster *c, const struct request *r, struct err *e) MUST_USE;

#endif
