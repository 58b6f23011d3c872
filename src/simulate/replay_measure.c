/* The figures and series of a finished replay. */
#include <math.h>

#include "simulate/measure.h"

double job_gpus(const struct trace *t, const struct outcome *o, uint32_t i)
{
    const struct trace_job *j = &t->job[i];
    if (o->gpus[i] > 0)
        return o->gpus[i];
    return j->gpus ? j->gpus : (double)j->request.gpu_milli / GPU_MILLI * j->request.replicas;
}

/* ---- series: means over equal steps ---- */

void series_add(const struct axis *x, float *series, int64_t from_ms, int64_t to_ms, double value)
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
    x.begin_ms = MAX(t->job[0].submit_ms, t->from_ms ? t->from_ms : INT64_MIN);
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

/* demand: one series a tenant, of what its own jobs ask for. */
static void entitle_series(struct entitle *en, const struct axis *x, float *const *demand,
                           struct report *r)
{
    AUTO(free_p) double *asked = xcalloc((size_t)r->tenants + 1, sizeof *asked);
    AUTO(free_p) double *entitled = xcalloc((size_t)r->tenants + 1, sizeof *entitled);
    for (uint32_t p = 0; p < x->points; p++) {
        for (uint32_t i = 0; i < r->tenants; i++)
            asked[i] = (double)demand[i][p];
        entitle_at(en, asked, entitled);
        for (uint32_t i = 0; i < r->tenants; i++) {
            r->tenant[i].entitled[p] = (float)entitled[i];
            r->tenant[i].entitled_hours += entitled[i] * (double)x->step_ms / 3.6e6;
        }
    }
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
    return (double)(o->end_ms[i] - o->came_ms[i] - j->duration_ms) / 1e3;
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
        at_once += o->start_ms[i] <= o->came_ms[i];
        r->avg_queue_s += queue[n];
        r->avg_jct_s += (double)(o->end_ms[i] - o->came_ms[i]) / 1e3;
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
        if (j->tenant == tenant)
            out->freezes += o->freezes[i];
        if (j->tenant != tenant || o->end_ms[i] == NEVER)
            continue;
        queue[n] = queue_s(t, o, i);
        out->avg_queue_s += queue[n++];
        out->avg_jct_s += (double)(o->end_ms[i] - o->came_ms[i]) / 1e3;
    }
    qsort(queue, n, sizeof *queue, by_value);
    out->jobs = n;
    out->avg_queue_s /= n ? (double)n : 1;
    out->avg_jct_s /= n ? (double)n : 1;
    out->p90_queue_s = quantile(queue, n, 90);
    out->p99_queue_s = quantile(queue, n, 99);
}

static void measure_series(struct trace *t, const struct outcome *o, const struct axis *x,
                           float **demand, struct report *r)
{
    for (uint32_t i = 0; i < t->jobs; i++) {
        const struct trace_job *j = &t->job[i];
        double gpus = job_gpus(t, o, i);
        series_add(x, r->waiting, o->came_ms[i], o->start_ms[i], 1);
        series_add(x, r->demand, o->came_ms[i], o->end_ms[i], gpus);
        series_add(x, demand[j->tenant], o->came_ms[i], o->end_ms[i], gpus);
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
    AUTO(entitle_close) struct entitle *en = entitle_open(t);
    struct report r = { .trace = t->name,
                        .simulated = t->simulated,
                        .rho_note = t->rho_note,
                        .jobs = t->jobs,
                        .nodes = t->nodes,
                        .begin_ms = x.begin_ms,
                        .step_ms = x.step_ms,
                        .end_ms = x.begin_ms + x.step_ms * x.points,
                        .points = x.points,
                        .p50_cover = NAN, /* nothing was predicted */
                        .p90_cover = NAN,
                        .interval_width_ratio = NAN,
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
    entitle_series(en, &x, demand, &r);
    measure_fairness(t, o, en, &r);
    measure_lent(t, o, &r);
    measure_eta(t, o, &r);
    leave_out_groups(t, &r);
    for (uint32_t p = 0; p < x.points && r.gpus > 0; p++)
        r.utilisation += (double)r.used[p] / r.gpus / x.points;
    *out = r;
}
