/* forecast - when waiting jobs will start, as intervals that keep what they say; see forecast.c. */
#ifndef NS_CORE_FORECAST_H
#define NS_CORE_FORECAST_H

#include "base/heap.h"
#include "core/history.h"

#define SHORT_MS (60 * INT64_C(1000)) /* what starts within a minute did not wait */
#define FORECAST_WAITS 31u            /* the latest waits that count */
#define FORECAST_FEW 3u               /* fewer say nothing */
#define FORECAST_CLASSES 4u           /* by the GPUs that stand before a job: 2, 8, 32, more */
#define AHEAD_GROUPS 4096u            /* groups of one user that are looked at */

/* A time at which a job is said to have started. */
struct due {
    int64_t at_ms;
    uint64_t job;
    uint32_t unused;
    uint8_t which; /* 0: P50, 1: P90 */
};

struct forecast_row {
    uint32_t tenant, size;
    uint32_t n;                      /* seen in all */
    int64_t wait_ms[FORECAST_WAITS]; /* by the root of the GPUs before it */
};

struct forecast {
    struct forecast_row all, by_size[HISTORY_SIZES], *row;
    uint32_t rows, row_cap;
    struct map row_by_key;
    double times[FORECAST_CLASSES][2]; /* the usual wait times this is the stated one */
    uint64_t *fresh;                   /* jobs that came and have no statement yet */
    size_t first, n, cap;              /* from `first` on */
    struct due *due;
    uint32_t dues, due_cap, due_unused, *due_pos;
    struct heap next;
};

void forecast_init(struct forecast *f);
void forecast_free(struct forecast *f);
void forecast_learn(struct forecast *f, uint32_t tenant, uint32_t size, int64_t wait_ms);

#endif
