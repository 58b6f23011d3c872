/* kept - what the store keeps of jobs that have ended, and letting go of it.
 *
 * Everything here is about jobs in a final state: a job that lives has no log to remove and no row to
 * lose, whatever is asked.  Each call writes or reads a bounded piece; whoever wants more comes again.
 * Sums of usage outlive the rows they were made from.
 */
#ifndef NS_STORE_KEPT_H
#define NS_STORE_KEPT_H

#include "store/store.h"

/* Why a log was removed; stored by number. */
#define STORE_LOG_WHYS(X)                                                                          \
    X(THERE) /* it is not */                                                                       \
    X(AGE)   /* it was kept long enough */                                                         \
    X(ROOM)  /* all logs together were too large, and it was the oldest of who had most */         \
    X(JOB)   /* with its job, which was kept long enough */
enum store_log_why {
#define X(id) LOG_##id,
    STORE_LOG_WHYS(X)
#undef X
    STORE_LOG_WHY_COUNT
};

struct store_log {
    bool measured;
    uint64_t bytes;
    int64_t removed_ms; /* 0: it is there */
    enum store_log_why why;
};
/* ERR_NOT_FOUND: it never ran, or has not ended. */
int store_log_get(struct store *s, uint64_t job, struct store_log *out, struct err *e) MUST_USE;

struct store_log_sum {
    uint64_t logs, bytes; /* those that are there; bytes of those that were measured */
};
int store_log_sum(struct store *s, struct store_log_sum *out, struct err *e) MUST_USE;

/* Those with most of it, the largest first. */
struct store_log_tenant {
    struct str tenant;
    uint64_t bytes;
};
struct store_log_tenants {
    struct store_log_tenant *v;
    size_t n;
};
int store_log_tenants(struct store *s, uint32_t limit, struct arena *a,
                      struct store_log_tenants *out, struct err *e) MUST_USE;

/* A job that has ended, and the tasks that its output lies with: runs 1 to `runs`, each replica. */
struct store_kept {
    uint64_t job, bytes;
    uint32_t runs, replicas;
    int64_t ended_ms;
};
struct store_kepts {
    struct store_kept *v;
    size_t n;
};
/* Where a walk from the oldest end on is; zeroed at its beginning. */
struct store_walk {
    int64_t ended_ms;
    uint64_t job;
};

int store_logs_unmeasured(struct store *s, uint32_t limit, struct arena *a, struct store_kepts *out,
                          struct err *e) MUST_USE;
/* The oldest after `after` that ended before before_ms: those whose log is there; all jobs. */
struct store_kept_query {
    struct store_walk after;
    int64_t before_ms;
    uint32_t limit;
    struct str tenant; /* logs: of this one only; empty: of all */
};
int store_logs_kept(struct store *s, const struct store_kept_query *which, struct arena *a,
                    struct store_kepts *out, struct err *e) MUST_USE;
int store_jobs_old(struct store *s, const struct store_kept_query *which, struct arena *a,
                   struct store_kepts *out, struct err *e) MUST_USE;

void store_size_log(struct store_batch *b, uint64_t job, uint64_t bytes);
void store_remove_log(struct store_batch *b, uint64_t job, int64_t t_ms, enum store_log_why why);
/* Its row, spec and runs.  Not while its log is there, not the newest of all jobs, and not the first
 * of an array before the others: those stay until the next time. */
void store_remove_job(struct store_batch *b, uint64_t job);

/* Days before this one are counted whole from now on: their runs are going. */
void store_usage_whole_days(struct store_batch *b, int64_t before_ms);

/* What else grows: lines of dropped segments, events beyond `keep_events`, answers before a time,
 * runs carried over midnights that are counted whole.  A piece of each. */
struct store_trim {
    uint64_t keep_events;
    int64_t answers_before_ms, whole_days_before_ms;
};
void store_trim(struct store_batch *b, const struct store_trim *t);
/* Is there more than that? */
int store_trim_left(struct store *s, const struct store_trim *t, bool *out, struct err *e) MUST_USE;

#endif
