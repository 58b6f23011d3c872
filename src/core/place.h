/* place - where a job goes: the packing rule.
 *
 * One replica looks at cells and takes the one that spoils least; many replicas are gang.h's business.
 * Nothing is taken here: the caller takes what was found.
 */
#ifndef NS_CORE_PLACE_H
#define NS_CORE_PLACE_H

#include "core/gang.h"

/* Finds r->replicas slots in order of nodes.  false: no room now. */
bool place_find(const struct cluster *c, const struct request *r, struct gang_scratch *g,
                struct slot *out);

/* Could the job start on an idle cluster?  ERR_INVALID says what is missing. */
int place_check_possible(const struct cluster *c, const struct request *r, struct err *e) MUST_USE;

#endif
