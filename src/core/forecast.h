/* forecast - when waiting jobs will start, as intervals that keep what they say; see forecast.c. */
#ifndef NS_CORE_FORECAST_H
#define NS_CORE_FORECAST_H

#include "base/heap.h"
#include "core/history.h"

#define SHORT_MS (60 * INT64_C(1000)) /* what starts within a minute did not wait */
#define FORECAST_BURSTS 256u          /* the latest that are kept, */
#define FORECAST_RECENT 16u           /* and those that count */
#define FORECAST_SHIFT_MAX 2.0        /* of the correction, in spreads */
#define AHEAD_GROUPS 4096u            /* groups of one user that are looked at */

/* A time at which a job is said to have started. */
struct due {
    int64_t at_ms;
    uint64_t job;
    uint32_t unused;
    uint8_t which; /* 0: P50, 1: P90 */
};

/* Jobs of one tenant that began to wait in the same hour: they stand or fall together. */
struct burst {
    uint32_t tenant;
    int64_t hour;
    double jobs, sum, squares; /* of their waits: see forecast.c */
};

struct forecast {
    struct burst burst[FORECAST_BURSTS]; /* the nth at n % FORECAST_BURSTS */
    uint64_t bursts;                     /* in all */
    double shift[2];                     /* of P50 and P90, in spreads: what was learnt */
    uint64_t *fresh;                     /* jobs that came and have no statement yet */
    size_t first, n, cap;                /* from `first` on */
    struct due *due;
    uint32_t dues, due_cap, due_unused, *due_pos;
    struct heap next;
};

void forecast_init(struct forecast *f);
void forecast_free(struct forecast *f);
void forecast_learn(struct forecast *f, const struct burst *seen); /* jobs of a burst */

#endif
