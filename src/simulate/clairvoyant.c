/* The most that lent machines can work, whoever schedules them: a bound, not a schedule.
 *
 * It knows all arrivals and run times, freezes and moves jobs for nothing and at any instant, cuts
 * GPUs as finely as it likes, and gives lent machines whatever they can run, even while others
 * stand idle.  Where jobs have a most that they can use at a time (their GPUs), the longest left
 * first does the most work by any time.  So no schedule, of whatever policy, gets more; how much
 * less the best possible one gets is not known.  Time goes in steps, of a minute in a week.
 */
#include "simulate/measure.h"

#define STEP_MS (60 * INT64_C(1000))
#define STEPS_MAX 20160

struct present {
    double left_ms, gpus; /* run time that is left, all alone on its GPUs */
};

static int longest_first(const void *pa, const void *pb)
{
    const struct present *a = pa, *b = pb;
    return a->left_ms > b->left_ms ? -1 : a->left_ms < b->left_ms;
}

static bool allows_model(const char *models, struct str model)
{
    struct str rest = str_of(models), one;
    while (rest.n) {
        str_cut(rest, '|', &one, &rest);
        if (str_eq(str_trim(one), model))
            return true;
    }
    return models[0] == 0;
}

static bool fits(const struct trace_job *j, const struct event_node *n)
{
    const struct request *r = &j->request;
    return r->gpus <= n->gpus && r->gpu_mem_mib <= n->gpu_mem_mib && r->cpu_milli <= n->cpu_milli &&
           r->mem_mib <= n->mem_mib && n->gpus && allows_model(j->models, n->model);
}

static bool fits_lent(const struct trace *t, const struct trace_job *j)
{
    for (uint32_t i = 0; i < t->nodes; i++)
        if (t->node[i].pool.n && fits(j, &t->node[i]))
            return true;
    return false;
}

/* GPUs of the lent machines that are open then. */
static double open_gpus(const struct trace *t, const struct calendar *c, int64_t now_ms)
{
    double gpus = 0;
    for (uint32_t w = 0; w < t->windows; w++) {
        bool open = calendar_is_open(&c[w], now_ms + t->epoch_ms);
        for (uint32_t i = 0; i < t->nodes && open; i++)
            gpus += trace_window_of(t, i) == w ? t->node[i].gpus : 0;
    }
    return gpus;
}

/* Works on what is there for one step; returns GPU × ms, and drops what is done. */
static double work(struct present *p, uint32_t *n, double gpus, double step_ms)
{
    double done = 0;
    uint32_t left = 0;
    qsort(p, *n, sizeof *p, longest_first);
    for (uint32_t i = 0; i < *n; i++) {
        double use = MIN(p[i].gpus, gpus), ms = step_ms;
        if (use > 0) {
            ms = MIN(ms, p[i].left_ms * p[i].gpus / use);
            p[i].left_ms -= ms * use / p[i].gpus;
            done += ms * use;
            gpus -= ms * use / step_ms;
        }
        if (p[i].left_ms > 0)
            p[left++] = p[i];
    }
    *n = left;
    return done;
}

double clairvoyant_hours(const struct trace *t, const struct outcome *o, int64_t from_ms,
                         int64_t to_ms)
{
    AUTO(free_p) struct calendar *c = xcalloc((size_t)t->windows + 1, sizeof *c);
    AUTO(free_p) struct present *p = xcalloc((size_t)t->jobs + 1, sizeof *p);
    uint32_t n = 0, next = 0;
    double gpu_ms = 0;
    int64_t step_ms = MAX(STEP_MS, (to_ms - from_ms) / STEPS_MAX);
    for (uint32_t w = 0; w < t->windows; w++)
        c[w] = window_calendar(t, w);
    for (int64_t now_ms = from_ms; now_ms < to_ms; now_ms += step_ms) {
        int64_t until_ms = MIN(now_ms + step_ms, to_ms);
        for (; next < t->jobs && t->job[next].submit_ms < until_ms; next++) {
            double gpus = job_gpus(t, o, next);
            if (gpus > 0 && fits_lent(t, &t->job[next]))
                p[n++] = (struct present){ (double)t->job[next].duration_ms, gpus };
        }
        gpu_ms += work(p, &n, open_gpus(t, c, now_ms), (double)(until_ms - now_ms));
    }
    return gpu_ms / 3.6e6;
}
