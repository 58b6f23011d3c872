/* trace - a recorded (or generated) workload as plain values: machines, tenants, jobs.
 *
 * Every reader gives this; every policy replays it.  Jobs are sorted by submit time, then by id;
 * parents stand before their children.  Strings and arrays live in the trace's arena, or are
 * constants.  A reader that fails leaves *out alone, and its error names file, line and field.
 */
#ifndef NS_SIMULATE_TRACE_H
#define NS_SIMULATE_TRACE_H

#include "base/arena.h"
#include "base/err.h"
#include "core/policy.h"
#include "simulate/csv.h"

#define TRACE_JOBS_MAX 2000000u
#define TRACE_NODES_MAX 100000u
#define TRACE_TENANTS_MAX 10000u

struct trace_tenant {
    const char *name;
    const char *parent; /* "" at the top */
    uint32_t weight_milli;
    uint64_t guarantee_milli;
    struct amounts limit;
};

/* Where something stands in a journal: lines of one millisecond keep their order. */
struct trace_mark {
    int64_t t_ms;
    uint64_t order; /* of its line */
};

/* What an engine said of a job, in order, and how long it took for it. */
struct trace_heard {
    const struct trace_heard *next;
    struct trace_mark at;
    enum job_event what;
    int64_t took_ms;
};

/* What only one's own journal says of a job. */
struct trace_seen {
    struct event_submit said; /* as it was submitted; names and afters live in the arena */
    uint64_t order;           /* its line */
    int64_t ahead_ms;         /* it was submitted so long before nothing kept it any more */
    const struct trace_heard *heard;
    bool endless; /* it never ended by itself: a step ends it while it waits */
    bool stops;   /* it was told to stop, so long before its end */
    int64_t stop_ms;
    enum job_event stop, end; /* how */
};

struct trace_job {
    uint64_t id; /* as in the file */
    int64_t submit_ms, duration_ms;
    uint32_t tenant;        /* index */
    const char *user;       /* never NULL */
    const char *models;     /* "A|B", "" = any */
    uint32_t gpus;          /* the whole job, before it is cut into replicas; 0 with a share */
    struct request request; /* models unset: the core fills it from `models` */
    enum priority priority;
    int64_t thaw_cost_ms; /* what a freeze costs it; 0: by its GPUs, as published; < 0: no freeze */
    bool restarts;        /* a freeze loses its work */
    int64_t limit_ms;     /* how long it may run; 0: for ever */
    int64_t estimate_ms;  /* what the user or a predictor said, may be wrong; 0 = nothing */
    const struct trace_seen *seen; /* NULL: no journal has seen it */
};

/* What a journal says beside the jobs that ran, in its order: settings, machines, jobs that never
 * ran, what people did. */
enum trace_step_kind {
    STEP_EVENT,
    STEP_NONE, /* was one */
    STEP_LOST, /* ev.node_state.name: the machine lost the jobs it had */
    STEP_CUT   /* the journal began anew: the daemon's core did too */
};
struct trace_step {
    enum trace_step_kind kind;
    uint64_t order;  /* its line */
    uint32_t number; /* of a node: how slots call it; NONE: none of the journal's does */
    struct event ev; /* names live in the arena */
};

/* A number of the policy that is to be another one. */
struct policy_set {
    const struct policy_key *key;
    int64_t value;
};

/* Machines that are lent at times: those whose pool has this name. */
struct trace_window {
    const char *pool, *calendar; /* as docs/ops/windows.md has it */
};

struct trace {
    const char *name;
    struct event_node *node;
    uint32_t nodes;
    struct trace_window *window; /* a node's pool is one of these, or none */
    uint32_t windows;
    uint32_t *node_tenant; /* the tenant that owns the node alone, or NONE; NULL: all is shared */
    struct trace_tenant *tenant;
    uint32_t tenants;
    struct trace_job *job;
    uint32_t jobs;
    struct trace_step *step; /* of a journal; else machines and tenants are there from the start */
    uint32_t steps;
    struct trace_mark *pass; /* the journal's; before the first of them nothing is decided */
    uint32_t passes;
    int64_t from_ms; /* what was before is not shown; 0: from the first submit */
    struct policy_set set[POLICY_KEYS_MAX];
    uint32_t sets;
    uint32_t
        skipped;    /* lines of the file that are no jobs to replay (never ran, or a part of one) */
    bool changed;   /* a what-if: jobs that fit it no more are left unfinished */
    bool simulated; /* made by a generator: said wherever it is shown */
    const char *rho_note; /* each job has an equal share, so finish-time fairness is a figure of the
                             trace; said wherever it is shown.  NULL: it is none */
    struct arena arena;
};

void trace_free(struct trace *t);

/* The same trace with arrays of its own.  Names stay those of `from`, which has to live longer. */
void trace_copy(const struct trace *from, struct trace *out);

/* Sorts the jobs and checks what every replay relies on: ids unique, names unique, every tenant and
 * parent known, parents first, everything a job asks for in its range. */
int trace_finish(struct trace *t, struct err *e) MUST_USE;

/* ---- readers: one a format ---- */

/* DIR/philly/{s2_window_jobs.csv,philly_vc_nodes.csv}, or the same files in DIR itself, plain or
 * with .gz; philly_jobs.csv where there is no s2_window_jobs.  pooled_nodes > 0: one pool of
 * that many nodes instead of the virtual clusters' own. */
int trace_read_philly(const char *dir, uint32_t pooled_nodes, struct trace *out, struct err *e)
    MUST_USE;
int trace_parse_philly(const struct csv_source *vcs, const struct csv_source *jobs,
                       uint32_t pooled_nodes, struct trace *out, struct err *e) MUST_USE;

/* The Standard Workload Format, plain or gzipped; groups become tenants, processors become CPUs, or
 * GPUs on machines of gpus_per_node when that is > 0. */
int trace_read_swf(const char *file, uint32_t gpus_per_node, struct trace *out, struct err *e)
    MUST_USE;
int trace_parse_swf(const struct csv_source *from, uint32_t gpus_per_node, struct trace *out,
                    struct err *e) MUST_USE;

/* The jobs of Shockwave (NSDI'23) on a pool of GPUs: FILE, or without one
 * DIR/shockwave/tacc32_120jobs.csv, plain or gzipped.  A job runs as long as alone on its GPUs. */
struct trace_pool {
    uint32_t gpus, per_node;
};
int trace_read_shockwave(const char *dir, const char *file, struct trace_pool pool,
                         struct trace *out, struct err *e) MUST_USE;
int trace_parse_shockwave(const struct csv_source *from, struct trace_pool pool, struct trace *out,
                          struct err *e) MUST_USE;

/* A small lab's weeks from a seed: ten desks, a server, five tenants, jobs by day and night.
 * Time 0 is a Monday's midnight.  lend: the desks work at night and on weekends only. */
int trace_make_lab(uint64_t seed, uint32_t days, bool lend, struct trace *out, struct err *e)
    MUST_USE;

/* ---- the same work, a little different ---- */

/* What a figure should not depend on.  The same seed changes the same trace in the same way; the
 * trace's name says what was changed. */
struct trace_change {
    uint64_t seed;
    uint32_t jitter_pct;  /* each duration times a factor, uniform in 1 ± this; 0 … 100 */
    uint32_t shift_hours; /* all jobs of a tenant later by a time, uniform in 0 … this */
};
int trace_change(struct trace *t, const struct trace_change *c, struct err *e) MUST_USE;

uint32_t trace_window_of(const struct trace *t, uint32_t node); /* NONE: it may always work */
/* So many times as many jobs, in thousandths: some are repeated up to an hour later, or left out. */
int trace_load(struct trace *t, uint32_t load_milli, uint64_t seed, struct err *e) MUST_USE;

/* ---- for readers ---- */

/* Machines that are alike: `units` GPUs or CPUs on each. */
struct trace_rack {
    uint32_t nodes, units;
};

/* Cuts a job of `total` units into equal replicas: one where a machine holds it, else the largest
 * size that leaves no gap on a machine (12 on machines of 8 are 3 of 4, which fill one and a half),
 * else the largest that divides it and fits the empty racks.  false when nothing does. */
bool trace_split(uint32_t total, const struct trace_rack rack[static 2], uint32_t *out_replicas,
                 uint32_t *out_each);

#endif
