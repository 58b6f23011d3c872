/* How fairly a replay shared: by tenant over hours, by job over its life. */
#include <math.h>

#include "simulate/measure.h"

#define HOUR_MS INT64_C(3600000)
#define CELLS_MAX (16u << 20) /* tenants × steps */
#define UNFAIR_RHO 1.05

/* Whole hours from the begin of the replay, through the one in which the last job was submitted:
 * after it demand only dies away, and how slowly is the policy's own doing.  A trace too long for
 * its tenants gets steps of several hours. */
static struct axis make_hours(const struct trace *t, int64_t begin_ms)
{
    int64_t hours = t->jobs ? (t->job[t->jobs - 1].submit_ms - begin_ms) / HOUR_MS + 1 : 1;
    int64_t most = MAX(CELLS_MAX / (t->tenants + 1), 1u);
    int64_t each = (hours + most - 1) / most;
    return (struct axis){ .begin_ms = begin_ms,
                          .step_ms = each * HOUR_MS,
                          .points = (uint32_t)((hours + each - 1) / each) };
}

/* Rows of `points`, one a tenant. */
struct hours {
    struct axis x;
    float *asked, *held;
};

static void hours_free(struct hours *h)
{
    free(h->asked);
    free(h->held);
}

static struct hours fill_hours(const struct trace *t, const struct outcome *o, int64_t begin_ms)
{
    struct hours h = { .x = make_hours(t, begin_ms) };
    size_t cells = (size_t)h.x.points * (t->tenants + 1);
    h.asked = xcalloc(cells, sizeof *h.asked);
    h.held = xcalloc(cells, sizeof *h.held);
    for (uint32_t i = 0; i < t->jobs; i++)
        series_add(&h.x, h.asked + (size_t)t->job[i].tenant * h.x.points, o->came_ms[i],
                   o->end_ms[i], job_gpus(t, o, i));
    for (size_t k = 0; k < o->stints; k++) {
        const struct stint *s = &o->stint[k];
        series_add(&h.x, h.held + (size_t)t->job[s->job].tenant * h.x.points, s->from_ms, s->to_ms,
                   job_gpus(t, o, s->job));
    }
    return h;
}

/* What a tenant was entitled to over the hours, and how much of that it had.  What it had beyond
 * its share in one hour makes up for no other. */
struct due {
    double entitled, had;
};

static void sum_due(const struct trace *t, const struct hours *h, struct entitle *en,
                    struct due *out)
{
    AUTO(free_p) double *asked = xcalloc((size_t)t->tenants + 1, sizeof *asked);
    AUTO(free_p) double *entitled = xcalloc((size_t)t->tenants + 1, sizeof *entitled);
    for (uint32_t p = 0; p < h->x.points; p++) {
        for (uint32_t i = 0; i < t->tenants; i++)
            asked[i] = (double)h->asked[(size_t)i * h->x.points + p];
        entitle_at(en, asked, entitled);
        for (uint32_t i = 0; i < t->tenants; i++) {
            double held = (double)h->held[(size_t)i * h->x.points + p];
            out[i].entitled += entitled[i];
            out[i].had += fmin(held, entitled[i]);
        }
    }
}

/* Without anybody who was entitled to something there is no figure. */
static void measure_tenants(const struct trace *t, const struct due *due, struct report *r)
{
    double entitled = 0, had = 0, sum = 0, squares = 0, n = 0;
    r->worst_tenant = NAN;
    for (uint32_t i = 0; i < t->tenants; i++) {
        r->tenant[i].satisfaction = due[i].entitled > 0 ? due[i].had / due[i].entitled : NAN;
        if (due[i].entitled <= 0)
            continue;
        double x = r->tenant[i].satisfaction;
        r->worst_tenant = fmin(r->worst_tenant, x); /* of a number and none, fmin is the number */
        entitled += due[i].entitled;
        had += due[i].had;
        sum += x;
        squares += x * x;
        n++;
    }
    r->satisfaction = entitled > 0 ? had / entitled : NAN;
    r->jain = squares > 0 ? sum * sum / (n * squares) : NAN;
}

/* rho: how much longer a job took than with an equal part of the cluster for itself, which is its
 * run time × jobs / GPUs when each job is a tenant and all are there at once (Shockwave's table,
 * 120 jobs on 32 GPUs).  Elsewhere jobs come and go and far fewer share the GPUs at a time, so the
 * bound is loose and rho small: compare policies by it, nothing else.  With more GPUs than jobs an
 * equal part is all that a job can use. */
static void measure_jobs(const struct trace *t, const struct outcome *o, struct report *r)
{
    double crowd = r->gpus > 0 ? fmax(t->jobs / r->gpus, 1) : NAN, unfair = 0, ended = 0;
    int64_t last_ms = INT64_MIN;
    uint64_t freezes = 0;
    r->worst_rho = NAN;
    for (uint32_t i = 0; i < t->jobs; i++) {
        freezes += o->freezes[i];
        r->freezes_max = MAX(r->freezes_max, o->freezes[i]);
        if (o->end_ms[i] == NEVER)
            continue;
        double jct_ms = (double)(o->end_ms[i] - o->came_ms[i]);
        double rho = jct_ms / ((double)t->job[i].duration_ms * crowd);
        r->worst_rho = fmax(r->worst_rho, rho);
        unfair += rho > UNFAIR_RHO;
        last_ms = MAX(last_ms, o->end_ms[i]);
        ended++;
    }
    r->unfair_pct = ended > 0 && r->gpus > 0 ? 100 * unfair / ended : NAN;
    r->makespan_s = ended > 0 ? (double)(last_ms - t->job[0].submit_ms) / 1e3 : 0;
    r->freezes = t->jobs ? (double)freezes / t->jobs : 0;
}

void measure_fairness(const struct trace *t, const struct outcome *o, struct entitle *en,
                      struct report *r)
{
    AUTO(hours_free) struct hours h = fill_hours(t, o, r->begin_ms);
    AUTO(free_p) struct due *due = xcalloc((size_t)t->tenants + 1, sizeof *due);
    sum_due(t, &h, en, due);
    measure_tenants(t, due, r);
    measure_jobs(t, o, r);
}
