/* life - what happened to each job, from submit to end.
 *
 * A step is written with the change it tells of, in one batch: neither is there without the other.  Each job has
 * its first step and its newest ones, STORE_STEPS_MAX at most; they go with the job's row.  Readers pay for the
 * steps of that job, whatever else the store has.
 */
#ifndef NS_STORE_LIFE_H
#define NS_STORE_LIFE_H

#include "store/store.h"

#define STORE_STEPS_MAX 1000

struct store_step {
    uint64_t job, number; /* 1, 2, … of each job: given when it is written */
    int64_t t_ms;
    struct str what; /* a slug */
    enum job_state state;
    uint32_t run;
    struct str reason, who, note, where; /* each may be empty */
    int exit_code, exit_signal;
};
void store_add_step(struct store_batch *b, const struct store_step *s);
/* Why it waits, once that is known: of its last step, unless that says so. */
void store_step_reason(struct store_batch *b, uint64_t job, struct str reason);

struct store_steps {
    struct store_step *v;
    size_t n;
};
struct store_life {
    uint64_t job, after; /* steps after this number; 0: from the first */
    uint32_t limit;      /* 0 and above 1,000 mean 1,000 */
};
/* In order.  Unseen: none. */
int store_job_steps(struct store *s, const struct store_scope *who, const struct store_life *of,
                    struct arena *a, struct store_steps *out, struct err *e) MUST_USE;

/* Where its newest runs were, from when to when: the newest first. */
struct store_place {
    uint32_t run;
    int64_t from_ms, to_ms; /* to 0: it is there still */
    struct str where;       /* as in store_job_now */
};
struct store_places {
    struct store_place *v;
    size_t n;
};
int store_job_places(struct store *s, const struct store_scope *who, const struct store_life *of,
                     struct arena *a, struct store_places *out, struct err *e) MUST_USE;

#endif
