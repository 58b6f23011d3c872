/* replay - a trace in virtual time under a policy.
 *
 * nightshift is the product's own core, fed with the events it would get; the others are
 * references.  Where a trace's nodes belong to tenants alone, each tenant is a cluster of its own.
 */
#ifndef NS_SIMULATE_REPLAY_H
#define NS_SIMULATE_REPLAY_H

#include "core/core.h"
#include "simulate/report.h"
#include "simulate/trace.h"

#define REPLAY_POLICIES "nightshift|fifo|sjf|qssf|qssf-noisy|srtf|tiresias|bestfit|fgd"

/* A job held its GPUs from one time to another: once, or again after each freeze. */
struct stint {
    uint32_t job;
    int64_t from_ms, to_ms;
};

/* A job held GPUs of lent machines. */
struct lease {
    uint32_t window; /* of the trace */
    double gpus;
    int64_t from_ms, to_ms;
};

/* When each job of the trace first started and when it ended, ms; NEVER when it did not. */
#define NEVER INT64_MAX
struct outcome {
    int64_t *start_ms, *end_ms;
    int64_t *came_ms; /* when nothing kept it any more: its submit_ms, unless it waits for others */
    double *gpus;     /* held while it ran; 0 until it starts */
    uint32_t *freezes;
    int64_t *stated_ms;  /* when a start was forecast; NEVER: it was not */
    struct eta *eta;     /* as it was forecast */
    struct stint *stint; /* in the order in which they ended */
    size_t stints, stint_cap;
    struct lease *lease; /* in the same order */
    size_t leases, lease_cap;
};

/* An outcome in which nothing has happened yet; its arrays live in the trace's arena. */
struct outcome outcome_new(struct trace *t);
void outcome_hold(struct trace *t, struct outcome *o, uint32_t job, int64_t from_ms, int64_t to_ms);

void outcome_lend(struct trace *t, struct outcome *o, const struct lease *l);

/* GPUs in these slots, parts counted as parts. */
double slots_gpus(const struct slot *s, uint32_t n);

/* One cluster of the trace: all of it, or one tenant's own. */
struct part {
    struct trace *t;
    uint32_t *node, nodes; /* indexes into the trace */
    uint32_t *job, jobs;
};

/* What it costs a job to be frozen and thawed, in run time added, as the published simulators have
 * it: 7 s with one GPU, 30 s with up to 8, 60 s with more. */
int64_t freeze_cost_ms(uint32_t gpus);

struct replay_options {
    const char *policy;
    uint32_t freeze_cost_milli; /* times freeze_cost_ms, in thousandths; 0: freezing is free */
    struct buf *journal; /* nightshift only: what happened and what was decided; NULL: not kept */
};

int64_t replay_freeze_ms(const struct replay_options *o, const struct trace_job *j);

/* The arrays of *out live in the trace's arena. */
int replay_run(struct trace *t, const struct replay_options *o, struct report *out,
               struct outcome *out_jobs, struct err *e) MUST_USE;

/* replay_own.c, replay_reference.c, replay_preempt.c: one part; `progress` counts jobs that
 * ended. */
struct progress;
struct replay_meter {
    struct progress *bar;
    uint64_t done;
};
typedef int (*replay_part)(const struct part *p, const struct replay_options *o,
                           struct outcome *out, struct replay_meter *m, struct err *e);
int replay_own(const struct part *p, const struct replay_options *o, struct outcome *out,
               struct replay_meter *m, struct err *e) MUST_USE;
int replay_reference(const struct part *p, const struct replay_options *o, struct outcome *out,
                     struct replay_meter *m, struct err *e) MUST_USE;
int replay_preempt(const struct part *p, const struct replay_options *o, struct outcome *out,
                   struct replay_meter *m, struct err *e) MUST_USE;

/* replay_measure.c: the figures and series of a finished replay. */
void replay_measure(struct trace *t, const struct outcome *o, struct report *out);

#endif
