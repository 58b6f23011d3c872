/* scale - how long one pass takes: a synthetic cluster, a long queue, and small changes to them.
 *
 * Times are of the processor, not of the clock on the wall: what others do on the machine is in them only by what it
 * takes of the caches.  The yardstick has its share of that too, so figures are compared in yardsticks.
 */
#ifndef NS_SIMULATE_SCALE_H
#define NS_SIMULATE_SCALE_H

#include "base/buf.h"
#include "base/err.h"

struct scale_result {
    uint32_t nodes, jobs;
    uint32_t cells, shapes; /* kinds of room and of requests there were */
    uint64_t considered, placed;
    double full_pass_ms, considered_per_s, placed_per_s;
    double submit_ms, submit_p99_ms, end_ms, end_p99_ms; /* one change and the pass after it */
    double why_ms;                                       /* the worst answer of a waiting job */
    double bytes_per_job;                                /* that waits */
    double rss_mib;                                      /* at its highest */
    double yardstick_ms;                                 /* scale_yardstick_ms, when it was asked */
};

#define SCALE_NODES_MAX 200000
#define SCALE_JOBS_MAX 5000000

int scale_run(uint32_t nodes, uint32_t jobs, uint64_t seed, struct scale_result *out, struct err *e)
    MUST_USE;
/* What the same work takes on this machine, just now: jumping about in 16 MiB, and sorting. */
double scale_yardstick_ms(void);
void scale_json(const struct scale_result *r, struct buf *out);

#endif
