/* report - what a replay found, as values; printed as a table, as JSON or as one page.
 *
 * Whoever fills a report owns its memory; the writers only read.  They take any values (a figure
 * that is not finite is shown as unknown) and any names: a tenant's name is escaped wherever it
 * goes.  With no tenants, no jobs or no points the arrays may be NULL.
 * Times are milliseconds since an epoch the trace defines, 0 being a Monday, 00:00.
 */
#ifndef NS_SIMULATE_REPORT_H
#define NS_SIMULATE_REPORT_H

#include "base/buf.h"
#include "simulate/trace.h"

#define REPORT_POINTS 1008 /* over the whole replay: ten minutes a point in a week */

struct report_tenant {
    const char *name;
    uint32_t weight_milli;
    uint64_t jobs;
    double gpu_hours;      /* got, weighted by nothing */
    double entitled_hours; /* its weighted max-min share, capped by its own demand, over time */
    double avg_queue_s, p90_queue_s, p99_queue_s, avg_jct_s;
    double freezes;      /* of all its jobs */
    double satisfaction; /* part of its entitlement that it had, hour by hour */
    float *held;         /* REPORT_POINTS means of GPUs held */
    float *entitled;     /* the same of what it was entitled to */
};

struct report {
    const char *trace, *policy;
    bool simulated;
    const char *rho_note; /* NULL: rho is no figure of this trace; JSON has it all the same */
    uint64_t jobs, unfinished;
    uint32_t nodes;
    double gpus;
    int64_t begin_ms, end_ms, step_ms; /* of the points */
    double avg_jct_s, avg_queue_s, p50_queue_s, p90_queue_s, p99_queue_s, max_queue_s;
    double utilisation;     /* mean GPUs held / GPUs, from begin to end */
    double started_at_once; /* part of the jobs that did not wait */
    /* Over the hours up to the last submit, each tenant's part of what it was entitled to: of all,
     * of the tenant with the least, and how even they are (Jain's index, 1 when all are equal). */
    double satisfaction, worst_tenant, jain;
    double worst_rho, unfair_pct; /* finish-time fairness of jobs (measure_fair.c) */
    double makespan_s;            /* from the first submit to the last end */
    double freezes;               /* a job, mean */
    uint32_t freezes_max;         /* of one job */
    /* Of the starts that were predicted: part before the stated P50 and P90, and how wide the
     * interval was by the one from the tenant's own past waits.  NAN where nothing is predicted. */
    double p50_cover, p90_cover, interval_width_ratio;
    /* Of machines that are lent: GPU-hours they worked up to the last submit, and those of a
     * clairvoyant schedule (clairvoyant.c); GPU time held outside their windows, ever.  NAN where
     * none is. */
    double harvest, harvest_most, harvest_ratio, outside_window_s;
    double wall_s;
    float *used;    /* REPORT_POINTS means of GPUs held */
    float *waiting; /* the same of jobs waiting */
    float *demand;  /* the same of GPUs asked for by jobs submitted and unfinished */
    struct report_tenant *tenant;
    uint32_t tenants;
    uint32_t points; /* <= REPORT_POINTS */
};

/* One row a policy, then the tenants of the last; for a terminal, in UTF-8. */
void report_table(const struct report *r, size_t n, struct buf *out);

/* One object on one line: the figures and the tenants, or the point series of both. */
void report_json(const struct report *r, struct buf *out);
void report_json_series(const struct report *r, struct buf *out);

/* One HTML file that needs nothing else; the last report is the main one. */
void report_page(const struct report *r, size_t n, struct buf *out);

/* The same jobs in two worlds: as it was, and changed. */
struct report_whatif {
    const struct report *world; /* before, after */
    const char *const *change;  /* as they were written */
    const char *words;          /* what follows "What if", of all of them */
    size_t changes;
};
void whatif_table(const struct report_whatif *x, struct buf *out);
void whatif_json(const struct report_whatif *x, struct buf *out);
void whatif_page(const struct report_whatif *x, struct buf *out);

#endif
