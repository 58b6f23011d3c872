/* How well starts were forecast, over the jobs that waited for more than a minute: how many started
 * before the stated P50 and P90, and how wide the interval was next to the one that the tenant's own
 * past waits would have given at that time. */
#include <math.h>

#include "simulate/measure.h"

#define LONG_WAIT_MS (60 * INT64_C(1000))

/* Waits of one tenant so far, sorted. */
struct waits {
    int64_t *ms;
    uint32_t n, cap;
};

static void add_wait(struct waits *w, int64_t ms)
{
    uint32_t lo = 0, hi = w->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (w->ms[mid] < ms)
            lo = mid + 1;
        else
            hi = mid;
    }
    vec_grow(w->ms, w->n, w->cap);
    memmove(w->ms + lo + 1, w->ms + lo, (w->n - lo) * sizeof *w->ms);
    w->ms[lo] = ms;
    w->n++;
}

static int64_t at_percent(const struct waits *w, uint32_t percent)
{
    return w->ms[((uint64_t)w->n * percent + 99) / 100 - 1];
}

/* What happens in a replay, as far as it matters here: a statement, or a start. */
struct moment {
    int64_t at_ms;
    uint32_t job;
    bool starts;
};

static int by_time(const void *pa, const void *pb)
{
    const struct moment *a = pa, *b = pb;
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms ? -1 : 1;
    if (a->starts != b->starts)
        return a->starts ? 1 : -1;
    return a->job < b->job ? -1 : a->job > b->job;
}

static int by_value(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return a < b ? -1 : a > b;
}

static double median(double *v, uint32_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return n ? v[(n - 1) / 2] : NAN;
}

static bool waited_long(const struct trace *t, const struct outcome *o, uint32_t i)
{
    return o->start_ms[i] != NEVER && o->start_ms[i] - t->job[i].submit_ms > LONG_WAIT_MS;
}

static struct moment *list_moments(const struct trace *t, const struct outcome *o, uint32_t *out_n)
{
    struct moment *m = xcalloc(2 * (size_t)t->jobs + 1, sizeof *m);
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->jobs; i++) {
        if (!waited_long(t, o, i))
            continue;
        m[n++] = (struct moment){ o->start_ms[i], i, true };
        if (o->stated_ms[i] != NEVER)
            m[n++] = (struct moment){ o->stated_ms[i], i, false };
    }
    qsort(m, n, sizeof *m, by_time);
    *out_n = n;
    return m;
}

void measure_eta(const struct trace *t, const struct outcome *o, struct report *r)
{
    uint32_t n, stated = 0, in_50 = 0, in_90 = 0, widths = 0;
    AUTO(free_p) struct moment *m = list_moments(t, o, &n);
    AUTO(free_p) struct waits *past = xcalloc(t->tenants + 1, sizeof *past);
    AUTO(free_p) double *ours = xcalloc(n + 1, sizeof *ours);
    AUTO(free_p) double *theirs = xcalloc(n + 1, sizeof *theirs);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = m[k].job;
        struct waits *w = &past[t->job[i].tenant];
        const struct eta *eta = &o->eta[i];
        if (m[k].starts) {
            add_wait(w, o->start_ms[i] - t->job[i].submit_ms);
            continue;
        }
        stated++;
        in_50 += o->start_ms[i] <= eta->p50_ms;
        in_90 += o->start_ms[i] <= eta->p90_ms;
        if (w->n < 10)
            continue; /* too few to say anything */
        ours[widths] = (double)(eta->p90_ms - eta->p50_ms);
        theirs[widths++] = (double)(at_percent(w, 90) - at_percent(w, 50));
    }
    for (uint32_t i = 0; i < t->tenants; i++)
        free(past[i].ms);
    if (stated == 0)
        return;
    r->p50_cover = (double)in_50 / stated;
    r->p90_cover = (double)in_90 / stated;
    if (widths)
        r->interval_width_ratio = median(ours, widths) / median(theirs, widths);
}
