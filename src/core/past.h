/* past - what was before a journal begins, as values: see event.h. */
#ifndef NS_CORE_PAST_H
#define NS_CORE_PAST_H

#include "core/types.h"

struct event_past {
    struct str tenant, user; /* user empty: the tenant; both empty: everybody */
    int64_t past_cost_ms;    /* decayed cost × time */
    int64_t job_milli;       /* cost of one job, a mean */
    int64_t spent, late;     /* of its budget in the period, and after that: see core/rules.h */
};

struct event_demand {
    struct str models;
    uint32_t cpu_milli, mem_mib, count;
    uint16_t gpus, milli;
};

/* Jobs of one tenant (empty: of all) and one size that ran for so long: see core/history.h. */
struct event_runs {
    struct str tenant, user; /* of one user's family; user empty and family 0: of the tenant */
    uint32_t family;
    uint32_t size, bin; /* size HISTORY_SIZES: of every size */
    int64_t ended_milli, exposed_ms;
    int64_t works_milli, work_ms; /* of all: jobs that ended, and their GPU time */
};

/* Of older versions: read, and not used any more. */
struct event_wait {
    struct str tenant;
    uint32_t size;
    int64_t wait_ms;
};

struct event_times {
    uint32_t class;
    int64_t p50_milli, p90_milli;
};

/* Jobs of a tenant that began to wait in one hour; of none: what all statements taught.  See
 * core/forecast.h; thousandths. */
struct event_burst {
    struct str tenant;
    int64_t hour, jobs, sum_milli, squares_milli;
    int64_t p50_milli, p90_milli; /* without a tenant */
};

#endif
