/* The figures and series of a finished replay. */
#include <math.h>

#include "simulate/replay.h"

/* What it held; before it runs a share by memory is not known, and counts by what was asked. */
static double job_gpus(const struct trace *t, const struct outcome *o, uint32_t i)
{
    const struct trace_job *j = &t->job[i];
    if (o->gpus[i] > 0)
        return o->gpus[i];
    return j->gpus ? j->gpus : (double)j->request.gpu_milli / GPU_MILLI * j->request.replicas;
}

/* ---- series: means over equal steps ---- */

struct axis {
    int64_t begin_ms, step_ms;
    uint32_t points;
};

/* Adds `value` to every point that [from, to) covers, by the part it covers. */
static void series_add(const struct axis *x, float *series, int64_t from_ms, int64_t to_ms,
                       double value)
{
    int64_t end_ms = x->begin_ms + x->step_ms * x->points;
    from_ms = MAX(from_ms, x->begin_ms);
    to_ms = MIN(to_ms, end_ms);
    while (from_ms < to_ms) {
        int64_t i = (from_ms - x->begin_ms) / x->step_ms;
        int64_t until_ms = MIN(x->begin_ms + (i + 1) * x->step_ms, to_ms);
        series[i] = (float)(series[i] + value * (double)(until_ms - from_ms) / (double)x->step_ms);
        from_ms = until_ms;
    }
}

static struct axis make_axis(const struct trace *t, const struct outcome *o)
{
    struct axis x = { .points = 1, .step_ms = 1 };
    int64_t end_ms = INT64_MIN;
    if (t->jobs == 0)
        return x;
    x.begin_ms = t->job[0].submit_ms;
    if (t->simulated)
        x.begin_ms = MIN(x.begin_ms, INT64_C(0)); /* a generated week begins on its Monday */
    for (uint32_t i = 0; i < t->jobs; i++)
        if (o->end_ms[i] != NEVER)
            end_ms = MAX(end_ms, o->end_ms[i]);
    int64_t span = MAX(end_ms - x.begin_ms, INT64_C(1));
    x.step_ms = (span + REPORT_POINTS - 1) / REPORT_POINTS;
    x.points = (uint32_t)MIN((span + x.step_ms - 1) / x.step_ms, (int64_t)REPORT_POINTS);
    return x;
}

/* ---- entitlement ---- */

/* One who wants a part of something. */
struct wish {
    double weight, want, guarantee;
    double gets;
};

/* The guarantees first; what is left goes to those who still want, by weight, until all is
 * given. */
static void share_out(double capacity, struct wish *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        w[i].gets = fmin(fmin(w[i].want, w[i].guarantee), capacity);
        capacity -= w[i].gets;
    }
    for (uint32_t round = 0; round < n && capacity > 1e-9; round++) {
        double weights = 0, given = 0;
        for (uint32_t i = 0; i < n; i++)
            weights += w[i].want - w[i].gets > 1e-9 ? w[i].weight : 0;
        if (weights <= 0)
            return;
        for (uint32_t i = 0; i < n; i++) {
            double lacks = w[i].want - w[i].gets, more = 0;
            if (lacks > 1e-9)
                more = fmin(lacks, capacity * w[i].weight / weights);
            w[i].gets += more;
            given += more;
        }
        capacity -= given;
    }
}

struct entitle {
    const struct trace *t;
    const uint32_t *parent; /* index, or NONE */
    struct wish *wish;      /* scratch, one a tenant */
    double *demand;         /* of each tenant with all below it, as far as its limit goes */
};

/* Shares `capacity` among the children of `parent`, then inside each of them. */
static void entitle_below(struct entitle *x, uint32_t parent, double capacity, double *out_entitled)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->t->tenants; i++)
        if (x->parent[i] == parent)
            x->wish[n++] = (struct wish){
                .weight = x->t->tenant[i].weight_milli,
                .want = x->demand[i],
                .guarantee = (double)x->t->tenant[i].guarantee_milli / 1000,
            };
    share_out(capacity, x->wish, n);
    n = 0;
    for (uint32_t i = 0; i < x->t->tenants; i++)
        if (x->parent[i] == parent)
            out_entitled[i] = x->wish[n++].gets;
    for (uint32_t i = 0; i < x->t->tenants; i++)
        if (x->parent[i] == parent)
            entitle_below(x, i, out_entitled[i], out_entitled);
}

static uint32_t *find_parents(struct trace *t)
{
    uint32_t *parent = arena_array(&t->arena, uint32_t, t->tenants + 1);
    for (uint32_t i = 0; i < t->tenants; i++) {
        parent[i] = NONE;
        for (uint32_t k = 0; k < t->tenants && t->tenant[i].parent[0]; k++)
            if (strcmp(t->tenant[k].name, t->tenant[i].parent) == 0)
                parent[i] = k;
    }
    return parent;
}

/* Where each tenant is a cluster of its own: what it wants, as far as its own nodes go. */
static void entitle_alone(const struct entitle *x, double *out_entitled)
{
    const struct trace *t = x->t;
    for (uint32_t i = 0; i < t->tenants; i++)
        out_entitled[i] = 0;
    for (uint32_t n = 0; n < t->nodes; n++)
        if (t->node_tenant[n] != NONE)
            out_entitled[t->node_tenant[n]] += t->node[n].gpus;
    for (uint32_t i = 0; i < t->tenants; i++)
        out_entitled[i] = fmin(out_entitled[i], x->demand[i]);
}

/* demand: one series a tenant, of what its own jobs ask for. */
static void entitle_all(struct trace *t, const struct axis *x, float *const *demand, double gpus,
                        struct report *r)
{
    struct entitle en = { .t = t, .parent = find_parents(t) };
    double *entitled = arena_array(&t->arena, double, t->tenants + 1);
    en.wish = arena_array(&t->arena, struct wish, t->tenants + 1);
    en.demand = arena_array(&t->arena, double, t->tenants + 1);
    for (uint32_t p = 0; p < x->points; p++) {
        for (uint32_t i = 0; i < t->tenants; i++)
            en.demand[i] = (double)demand[i][p];
        for (uint32_t i = t->tenants; i-- > 0;) { /* parents stand before their children */
            en.demand[i] = fmin(en.demand[i], (double)t->tenant[i].limit.of[RES_GPU] / GPU_MILLI);
            if (en.parent[i] != NONE && !t->node_tenant)
                en.demand[en.parent[i]] += en.demand[i];
        }
        if (t->node_tenant)
            entitle_alone(&en, entitled);
        else
            entitle_below(&en, NONE, gpus, entitled);
        for (uint32_t i = 0; i < t->tenants; i++)
            r->tenant[i].entitled[p] = (float)entitled[i];
    }
    for (uint32_t i = 0; i < t->tenants; i++)
        for (uint32_t p = 0; p < x->points; p++)
            r->tenant[i].entitled_hours +=
                (double)r->tenant[i].entitled[p] * (double)x->step_ms / 3.6e6;
}

/* ---- figures ---- */

static int by_value(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return a < b ? -1 : a > b;
}

/* Nearest rank: the least value that so many percent of them are not above. */
static double quantile(const double *sorted, uint64_t n, unsigned percent)
{
    return n ? sorted[(n * percent + 99) / 100 - 1] : 0;
}

/* All that was not work: before the start, frozen, and what freezing cost. */
static double queue_s(const struct trace *t, const struct outcome *o, uint32_t i)
{
    const struct trace_job *j = &t->job[i];
    return (double)(o->end_ms[i] - j->submit_ms - j->duration_ms) / 1e3;
}

static void measure_waits(struct trace *t, const struct outcome *o, struct report *r)
{
    double *queue = arena_array(&t->arena, double, t->jobs + 1);
    double at_once = 0;
    uint64_t n = 0;
    for (uint32_t i = 0; i < t->jobs; i++) {
        if (o->end_ms[i] == NEVER) {
            r->unfinished++;
            continue;
        }
        queue[n] = queue_s(t, o, i);
        at_once += o->start_ms[i] <= t->job[i].submit_ms;
        r->avg_queue_s += queue[n];
        r->avg_jct_s += (double)(o->end_ms[i] - t->job[i].submit_ms) / 1e3;
        n++;
    }
    qsort(queue, n, sizeof *queue, by_value);
    r->avg_queue_s /= n ? (double)n : 1;
    r->avg_jct_s /= n ? (double)n : 1;
    r->p50_queue_s = quantile(queue, n, 50);
    r->p90_queue_s = quantile(queue, n, 90);
    r->p99_queue_s = quantile(queue, n, 99);
    r->max_queue_s = n ? queue[n - 1] : 0;
    r->started_at_once = n ? at_once / (double)n : 0;
}

static void measure_tenant(struct trace *t, const struct outcome *o, uint32_t tenant, double *queue,
                           struct report_tenant *out)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < t->jobs; i++) {
        const struct trace_job *j = &t->job[i];
        if (j->tenant != tenant || o->end_ms[i] == NEVER)
            continue;
        queue[n] = queue_s(t, o, i);
        out->avg_queue_s += queue[n++];
        out->avg_jct_s += (double)(o->end_ms[i] - j->submit_ms) / 1e3;
    }
    qsort(queue, n, sizeof *queue, by_value);
    out->jobs = n;
    out->avg_queue_s /= n ? (double)n : 1;
    out->avg_jct_s /= n ? (double)n : 1;
    out->p99_queue_s = quantile(queue, n, 99);
}

static void measure_series(struct trace *t, const struct outcome *o, const struct axis *x,
                           float **demand, struct report *r)
{
    for (uint32_t i = 0; i < t->jobs; i++) {
        const struct trace_job *j = &t->job[i];
        double gpus = job_gpus(t, o, i);
        series_add(x, r->waiting, j->submit_ms, o->start_ms[i], 1);
        series_add(x, r->demand, j->submit_ms, o->end_ms[i], gpus);
        series_add(x, demand[j->tenant], j->submit_ms, o->end_ms[i], gpus);
    }
    for (size_t k = 0; k < o->stints; k++) {
        const struct stint *s = &o->stint[k];
        struct report_tenant *rt = &r->tenant[t->job[s->job].tenant];
        double gpus = job_gpus(t, o, s->job);
        series_add(x, r->used, s->from_ms, s->to_ms, gpus);
        series_add(x, rt->held, s->from_ms, s->to_ms, gpus);
        rt->gpu_hours += gpus * (double)(s->to_ms - s->from_ms) / 3.6e6;
    }
}

/* A tenant that only groups others has no row of its own: what it is entitled to is theirs. */
static void leave_out_groups(const struct trace *t, struct report *r)
{
    AUTO(free_p) bool *keep = xcalloc(t->tenants + 1, sizeof *keep);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->jobs; i++)
        keep[t->job[i].tenant] = true;
    for (uint32_t i = 0; i < t->tenants; i++) {
        bool groups = false;
        for (uint32_t k = i + 1; k < t->tenants && !keep[i] && !groups; k++)
            groups = strcmp(t->tenant[k].parent, t->tenant[i].name) == 0;
        if (!groups)
            r->tenant[kept++] = r->tenant[i];
    }
    r->tenants = kept;
}

void replay_measure(struct trace *t, const struct outcome *o, struct report *out)
{
    struct axis x = make_axis(t, o);
    struct report r = { .trace = t->name,
                        .simulated = t->simulated,
                        .jobs = t->jobs,
                        .nodes = t->nodes,
                        .begin_ms = x.begin_ms,
                        .step_ms = x.step_ms,
                        .end_ms = x.begin_ms + x.step_ms * x.points,
                        .points = x.points,
                        .tenants = t->tenants };
    double *queue = arena_array(&t->arena, double, t->jobs + 1);
    float **demand = arena_array(&t->arena, float *, t->tenants + 1);
    r.tenant = arena_array(&t->arena, struct report_tenant, t->tenants + 1);
    r.used = arena_array(&t->arena, float, REPORT_POINTS);
    r.waiting = arena_array(&t->arena, float, REPORT_POINTS);
    r.demand = arena_array(&t->arena, float, REPORT_POINTS);
    for (uint32_t i = 0; i < t->nodes; i++)
        r.gpus += t->node[i].gpus;
    for (uint32_t i = 0; i < t->tenants; i++) {
        r.tenant[i].name = t->tenant[i].name;
        r.tenant[i].weight_milli = t->tenant[i].weight_milli;
        r.tenant[i].held = arena_array(&t->arena, float, REPORT_POINTS);
        r.tenant[i].entitled = arena_array(&t->arena, float, REPORT_POINTS);
        demand[i] = arena_array(&t->arena, float, REPORT_POINTS);
        measure_tenant(t, o, i, queue, &r.tenant[i]);
    }
    measure_waits(t, o, &r);
    measure_series(t, o, &x, demand, &r);
    entitle_all(t, &x, demand, r.gpus, &r);
    leave_out_groups(t, &r);
    for (uint32_t p = 0; p < x.points && r.gpus > 0; p++)
        r.utilisation += (double)r.used[p] / r.gpus / x.points;
    for (uint32_t i = 0; i < t->jobs; i++)
        r.freezes += o->freezes[i] / (double)t->jobs;
    *out = r;
}
