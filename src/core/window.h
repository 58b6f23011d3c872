/* window - when machines may work: what a job needs of a window before it may start in it.
 *
 * A node ends as a resource when its pool's window ends.  What a waiting job needs of the time left
 * is a class, so that jobs which need alike stay one shape:
 *
 * - one that cannot be frozen has to end in time, by its own limit; without a limit it starts only
 *   where machines never close.
 * - one that a freeze throws back to its start has to end in time by its limit, or by what jobs
 *   like it did in nine of ten cases; if it does not, it is frozen all the same.
 * - one that can be frozen needs the policy's lead, and twice what its freeze costs; less if it
 *   surely ends before.
 *
 * The time is left over for a freeze or a stop: see window_leave_ms.
 */
#ifndef NS_CORE_WINDOW_H
#define NS_CORE_WINDOW_H

#include "core/cluster.h"

int64_t window_stay_ms(uint8_t stay); /* time that has to be left; INT64_MAX: all the time */
uint8_t window_stay_of(int64_t ms);   /* the class that needs this or a little more */
uint8_t window_stay_in(int64_t ms);   /* the class that needs this or a little less; 0: none does */
#define WINDOW_BACK_MS (30 * INT64_C(1000)) /* the least that is left for a freeze or a stop */
#define WINDOW_SPARE_MS (5 * INT64_C(1000)) /* for ending what does not save itself in time */

/* Could one start there at some time, as far as windows go? */
bool window_ever_takes(const struct cluster *c, const struct kind *k, const struct request *r);
/* Could one start on this kind in so many ms, in the window that is open now? */
bool window_takes_in(const struct kind *k, const struct request *r, int64_t ms);

#endif
