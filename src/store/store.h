/* store - what must not be lost, in SQLite: jobs, runs, the journal, events, accounts, pools,
 * tenants and people (directory.h).
 *
 * Writes are collected in a batch on the loop's thread and committed together by the one writer
 * thread, which owns the write connection: batches that wait are committed in one transaction, in
 * order, each whole or not at all.  A batch's callback runs on the loop when its data is on the
 * disk.  When the disk refuses (full, read-only, an error) the writer keeps the batch and tries again:
 * nothing that was handed over is dropped, and store_failing says why until it works again.
 * Reads use a connection of their own on the loop's thread and see what was committed.
 * This folder has the only SQL; the statements are one table in statements.h.
 */
#ifndef NS_STORE_STORE_H
#define NS_STORE_STORE_H

#include "base/arena.h"
#include "base/err.h"
#include "core/job.h"
#include "core/types.h"
#include "sys/log.h"
#include "sys/loop.h"

struct store;
struct store_batch;

/* Makes or upgrades the file.  A store that a newer version wrote is refused, by both versions'
 * names; one that another process has open is refused too.  An upgrade is told to `log`, or to
 * nobody when that is NULL. */
struct store *store_open(struct loop *l, const char *path, struct log *log, struct err *e);
/* Commits what waits, for at most 5 s when the disk refuses (none after a store_flush that failed);
 * what could not be written is gone and its callbacks never run.  Not from a callback. */
struct store *store_close(struct store *s); /* NULL ok; returns NULL */
void store_close_p(struct store **s);
/* Blocks until everything is durable and its callbacks have run.  When the disk refuses for
 * wait_ms: ERR_UNAVAILABLE, which says why and how many batches wait still. */
int store_flush(struct store *s, uint64_t wait_ms, struct err *e) MUST_USE;

/* ---- writing ---- */

struct store_batch *store_batch_new(struct store *s);
struct store_batch *store_batch_free(struct store_batch *b); /* thrown away: nothing happened */
bool store_batch_empty(const struct store_batch *b);

typedef void store_done_fn(void *ctx); /* it is durable; runs once, in order of the commits */
void store_commit(struct store *s, struct store_batch *b, store_done_fn *fn,
                  void *ctx);                               /* takes b */
size_t store_pending(const struct store *s);                /* batches that are not durable yet */
bool store_failing(const struct store *s, struct err *out); /* out may be NULL */

/* The disk was full, and the room that is kept for that is being used: only what ends should be written. */
bool store_on_reserve(const struct store *s);

/* A row that is not as it was written was met, at the start or since; reading it fails. */
bool store_damaged(const struct store *s, struct err *out);

struct store_stats {
    uint64_t batches, rows, transactions; /* durable */
    uint64_t refused;                     /* times the disk did not take a transaction */
};
void store_stats(const struct store *s, struct store_stats *out);
uint64_t store_bytes(const struct store *s); /* on the disk, with its log */

/* What of a job never changes. */
struct store_job_fixed {
    uint64_t id;
    struct str tenant, user, name;
    uint32_t uid; /* who submitted it; the account it runs as is in the account table */
    int64_t submitted_ms;
    uint32_t replicas;
    uint64_t gpu_milli; /* of all replicas */
    struct str spec;    /* canonical JSON */
    uint64_t array;     /* id of the first job of its array, or 0 */
    uint32_t array_index;
};
/* What does. */
struct store_job_now {
    enum job_state state;
    enum priority priority;
    int64_t state_ms;             /* since when it is in this state */
    int64_t started_ms, ended_ms; /* of the latest run; 0: not yet */
    uint32_t run;                 /* how many times it was placed */
    int exit_code, exit_signal;
    struct str end;     /* a slug, e.g. "out_of_memory"; empty while it lives */
    struct str message; /* a sentence for its user, or empty */
    struct str where;   /* JSON: [{"node":…,"gpus":[…],"milli":…}], or empty */
    int64_t ran_ms;     /* in earlier runs, counted against its time limit */
    uint32_t fails;     /* runs that failed and were tried again */
};
struct store_job {
    struct store_job_fixed fixed;
    struct store_job_now now;
};
void store_add_job(struct store_batch *b, const struct store_job_fixed *f,
                   const struct store_job_now *n);
void store_set_job(struct store_batch *b, uint64_t id, const struct store_job_now *n);

/* One stay of a job on its GPUs: what usage is counted from. */
struct store_run {
    uint64_t job;
    uint32_t run;
    struct str tenant, user, node, model;
    uint64_t gpu_milli, cpu_milli, mem_mib; /* held, of all replicas */
    int64_t started_ms, ended_ms;           /* ended 0: it holds them still */
};
/* Adds (job, run), or replaces it while it goes on: one that has ended stays as it is. */
void store_put_run(struct store_batch *b, const struct store_run *r);

/* The clock was set by so much: runs that go on began so much later by it. */
void store_shift_runs(struct store_batch *b, int64_t by_ms);
void store_end_run(struct store_batch *b, uint64_t job, uint32_t run, int64_t ended_ms);

/* The journal of the core, in segments: each begins with the events that make the state anew. */
void store_add_journal(struct store_batch *b, int64_t t_ms, struct str line);
/* Keeps that many old ones; the lines of the others go with store_trim (kept.h). */
void store_new_segment(struct store_batch *b, int64_t t_ms, uint32_t keep);

/* Public events, numbered without gaps: what /v1/events sends.  Returns the number.  A batch that is
 * thrown away gives its numbers back, so throw away the one that took numbers last. */
uint64_t store_add_event(struct store_batch *b, int64_t t_ms, const char *kind, struct str tenant,
                         uint64_t job, struct str body);

struct store_account {
    struct str name, home;
    uint32_t uid, gid;
    bool ours; /* not an account of the machine: uid and home are from our range */
    int64_t created_ms;
};
void store_put_account(struct store_batch *b, const struct store_account *a);

/* A submit that was answered and is asked again under the same key gets the same answer: the first
 * one put stays. */
void store_put_answer(struct store_batch *b, struct str user, struct str key, int64_t t_ms,
                      struct str body);

void store_set_meta(struct store_batch *b, const char *key, struct str value);

/* ---- reading: strings live in `a` ---- */

/* Whose rows may be seen.  Nobody's by default: a zeroed scope sees nothing. */
struct store_scope {
    bool everything;          /* operators */
    const struct str *tenant; /* else these tenants' */
    size_t n;
};
bool store_scope_sees(const struct store_scope *who, struct str tenant);

int store_job_get(struct store *s, const struct store_scope *who, uint64_t id, struct arena *a,
                  struct store_job *out, struct err *e) MUST_USE; /* ERR_NOT_FOUND when unseen */
/* The same without its spec, which its user can make long: for what is asked often, or of many. */
int store_job_brief(struct store *s, const struct store_scope *who, uint64_t id, struct arena *a,
                    struct store_job *out, struct err *e) MUST_USE;

struct store_runs {
    struct store_run *v;
    size_t n;
};
int store_job_runs(struct store *s, const struct store_scope *who, uint64_t job, struct arena *a,
                   struct store_runs *out, struct err *e) MUST_USE; /* in order; unseen: none */

struct store_filter {
    uint32_t states;               /* bits 1 << enum job_state; 0: all */
    struct str user, tenant, name; /* empty: any */
    uint64_t array;                /* 0: any */
    uint64_t before;               /* ids below this; 0: from the newest */
    int64_t ended_after_ms;        /* 0: any; living jobs always pass */
    uint32_t limit;                /* 0 and above 1,000 mean 1,000 */
};
struct store_jobs {
    struct store_job *v; /* newest first, without their specs */
    size_t n;
};
int store_jobs_list(struct store *s, const struct store_scope *who, const struct store_filter *f,
                    struct arena *a, struct store_jobs *out, struct err *e) MUST_USE;
/* How many jobs are in each state, in scope. */
int store_jobs_count(struct store *s, const struct store_scope *who, uint64_t out[JOB_STATE_COUNT],
                     struct err *e) MUST_USE;

/* Every job that has not ended, in order of ids, without its spec; for start-up.  The row lives
 * for the call. */
typedef int store_job_fn(void *ctx, const struct store_job *j, struct err *e);
int store_living_jobs(struct store *s, store_job_fn *fn, void *ctx, struct err *e) MUST_USE;

/* The lines of the last segment, in order; a -1 from fn ends it.  fn may read, but not the same. */
typedef int store_line_fn(void *ctx, int64_t t_ms, struct str line, struct err *e);
int store_journal(struct store *s, store_line_fn *fn, void *ctx, struct err *e) MUST_USE;
int store_journal_all(struct store *s, store_line_fn *fn, void *ctx, struct err *e)
    MUST_USE; /* all kept segments; a line "" stands between two */
/* The same a page at a time, from the segment in which since_ms lies up to what is there now; a line
 * "" stands before each segment.  ERR_CONFLICT: lines that were to come are kept no longer. */
struct store_journal_place {
    uint64_t next, last;
    int64_t begin_ms; /* of that segment: later than since_ms when what was before is not kept */
};
int store_journal_from(struct store *s, int64_t since_ms, struct store_journal_place *out,
                       struct err *e) MUST_USE;
int store_journal_page(struct store *s, struct store_journal_place *at, uint32_t lines,
                       store_line_fn *fn, void *ctx, struct err *e) MUST_USE;
uint64_t store_journal_lines(const struct store *s); /* in the last segment, also uncommitted */

struct store_event {
    uint64_t number, job;
    int64_t t_ms;
    struct str kind, tenant, body;
};
struct store_events {
    struct store_event *v;
    size_t n;
};
/* Shows a number only when all below it are durable, so a reader that goes on from the last one it
 * saw misses none. */
struct store_after {
    uint64_t number;
    uint32_t limit; /* 0 and above 1,000 mean 1,000 */
};
int store_events_after(struct store *s, const struct store_scope *who,
                       const struct store_after *after, struct arena *a, struct store_events *out,
                       struct err *e) MUST_USE;
uint64_t store_last_event(const struct store *s); /* also uncommitted ones */

struct store_usage {
    int64_t day;                    /* since 1970 in UTC; by day only */
    struct str tenant, user, model; /* empty where it is not summed by them */
    uint64_t gpu_ms, cpu_ms, runs;  /* gpu_ms: GPUs x time, of the part inside [from, to) */
};
struct store_usages {
    struct store_usage *v; /* one each of what it is summed by; ordered, by day first */
    size_t n;
};
/* A run is of a span that it begins in, or that begins while it runs; by day, so of each day. */
struct store_span {
    int64_t from_ms, to_ms;
    int64_t now_ms; /* where a run that goes on is cut */
    unsigned by;    /* bits 1 << enum store_usage_by (usage.h); 0: all but the day */
};
int store_usage(struct store *s, const struct store_scope *who, const struct store_span *span,
                struct arena *a, struct store_usages *out, struct err *e) MUST_USE;

int store_accounts(struct store *s, struct arena *a, struct store_account **out, size_t *out_n,
                   struct err *e) MUST_USE;
int store_answer(struct store *s, struct str user, struct str key, struct arena *a, struct str *out,
                 struct err *e) MUST_USE; /* ERR_NOT_FOUND */
int store_meta(struct store *s, const char *key, struct arena *a, struct str *out, struct err *e)
    MUST_USE;                                   /* ERR_NOT_FOUND */
uint64_t store_last_job(const struct store *s); /* the largest id ever, also uncommitted */
void store_skip_jobs(struct store_batch *b, uint64_t up_to); /* they were given out elsewhere */

#endif
