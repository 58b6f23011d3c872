/* measure - what the figures of a finished replay share: time as equal steps, and what each tenant
 * is entitled to.  For replay_measure.c and measure_fair.c only.
 */
#ifndef NS_SIMULATE_MEASURE_H
#define NS_SIMULATE_MEASURE_H

#include "base/calendar.h"
#include "simulate/replay.h"

/* Equal steps from one time on. */
struct axis {
    int64_t begin_ms, step_ms;
    uint32_t points;
};

/* Adds `value` to the mean of every step that [from, to) covers, by the part it covers. */
void series_add(const struct axis *x, float *series, int64_t from_ms, int64_t to_ms, double value);

/* What it held; before it runs a share by memory is not known, and counts by what was asked. */
double job_gpus(const struct trace *t, const struct outcome *o, uint32_t job);

/* The weighted max-min share of each tenant at a moment, capped by what it asks for: guarantees
 * first, down the tree of tenants, no further than its limit.  Where nodes belong to tenants alone,
 * what it asks for as far as its own nodes go. */
struct entitle;
struct entitle *entitle_open(const struct trace *t);
void entitle_close(struct entitle **x);
/* Both are of the tenants' own jobs, in GPUs: what is entitled to those below it is not in it. */
void entitle_at(struct entitle *x, const double *demand, double *out_entitled);

/* What lent machines worked, and what they could have. */
void measure_lent(const struct trace *t, const struct outcome *o, struct report *out);

/* clairvoyant.c: GPU-hours that lent machines work between two times under a clairvoyant
 * schedule. */
double clairvoyant_hours(const struct trace *t, int64_t from_ms, int64_t to_ms);
/* The calendar of one window; trace_finish has read it before. */
struct calendar window_calendar(const struct trace *t, uint32_t window);

/* Satisfaction, the worst tenant and evenness over hours; finish-time fairness; freezes. */
void measure_fairness(const struct trace *t, const struct outcome *o, struct entitle *en,
                      struct report *out);

/* measure_eta.c: p50_cover, p90_cover, interval_width_ratio; nothing where nothing was forecast. */
void measure_eta(const struct trace *t, const struct outcome *o, struct report *r);

#endif
