/* bounds - how much of what there may be, and how long it is kept: settings of a site. */
#ifndef NS_CONTROL_BOUNDS_H
#define NS_CONTROL_BOUNDS_H

#include <stdint.h>

/* How long what is over is kept; 0: for ever, or without a bound. */
struct control_keep {
    int64_t logs_ms, jobs_ms; /* after a job's end */
    uint64_t logs_bytes;      /* of all logs together */
    int64_t audit_ms;         /* after a row was written */
    uint32_t daily_percent;   /* of what is kept may be removed in a day for its age; 0: all */
};

/* Jobs that have not ended, those aside that others made; 0: without a bound. */
struct control_bounds {
    uint64_t user_jobs, tenant_jobs; /* of each */
    uint64_t jobs;                   /* of all together */
};

#endif
