/* rules - what a tenant has beyond weight, guarantee and plain limits: limits by GPU model, the pools
 * it may use, the end of its time, a budget of GPU-hours.  All of it holds for everything below it.
 *
 * Most tenants have none of it, and pay nothing for it: `shares.ruled` counts those that have.
 * What is used and spent is counted where a rule needs it; a rule that comes later finds it by
 * counting what is held then.
 */
#ifndef NS_CORE_RULES_H
#define NS_CORE_RULES_H

#include "core/event.h"

#define TENANT_POOLS_MAX 64   /* named for one tenant */
#define TENANT_TEXT_MAX 4096u /* bytes of such a list */
#define BUDGET_MAX (INT64_MAX / 4)

/* At most so much of GPUs of these models together. */
struct model_cap {
    char *names;     /* as they were said: "A100|H100" */
    uint64_t models; /* the same as bits */
    uint64_t limit_milli, used_milli;
};

/* GPUs held × time, in thousandths × ms; shares count as the part they are. */
struct budget {
    int64_t most; /* 0: there is none */
    int64_t from_ms, until_ms;
    int64_t spent, late; /* up to at_ms: in the period, and after it (the next begins with that) */
    int64_t at_ms;
};

struct rules {
    struct model_cap cap[MODEL_LIMITS_MAX];
    uint32_t caps;
    char *pools;      /* "a|b"; NULL: every machine */
    int64_t until_ms; /* 0: for ever */
    struct budget budget;
    uint64_t held_milli; /* GPUs held now */
};

struct rules *rules_free(struct rules *r); /* NULL ok; returns NULL */

/* Spent in the period if it goes on as it is until now_ms. */
int64_t rules_spent(const struct rules *r, int64_t now_ms);
int64_t rules_late(const struct rules *r, int64_t now_ms); /* and after it */

/* Is its time over; is its budget spent, in its period? */
bool rules_are_over(const struct rules *r, int64_t wall_ms);
bool rules_are_spent(const struct rules *r, int64_t now_ms, int64_t wall_ms);

#endif
