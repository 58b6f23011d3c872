/* The reference policies that never preempt: one queue that stops at the first job without a
 * place. */
#include "base/heap.h"
#include "simulate/stage.h"
#include "sys/progress.h"

/* What a queue is ordered by: the least first. */
typedef double (*rank_of)(const struct trace_job *j, double gpus);

struct reference_policy {
    const char *name;
    const char *packing;
    rank_of rank; /* NULL: in the order of arrival */
    /* Of equal rank the one with fewer GPUs goes first; and where nobody waited, those that come at
     * one instant go in that order alone. */
    bool fewest_gpus;
};

static double rank_duration(const struct trace_job *j, double gpus)
{
    (void)gpus;
    return (double)j->duration_ms;
}

static double rank_service(const struct trace_job *j, double gpus)
{
    return (double)j->duration_ms * gpus;
}

static double rank_estimate(const struct trace_job *j, double gpus)
{
    return (double)j->estimate_ms * gpus;
}

static const struct reference_policy policies[] = {
    { "fifo", STAGE_CONSOLIDATE, NULL, false },
    { "sjf", STAGE_CONSOLIDATE, rank_duration, false },
    { "qssf", STAGE_CONSOLIDATE, rank_service, true },
    { "qssf-noisy", STAGE_CONSOLIDATE, rank_estimate, true },
    { "bestfit", "bestfit", NULL, false },
    { "fgd", "fgd", NULL, false },
};

struct reference {
    struct stage stage;
    const struct reference_policy *policy;
    const struct part *p;
    struct outcome *out;
    struct replay_meter *meter;
    struct heap waiting, ends;
    uint32_t *waiting_pos, *ends_pos;
    double *rank, *gpus; /* of those that have come */
    bool all_new;        /* nobody in the queue was there before this instant */
};

static void reference_free(struct reference *r)
{
    free(r->waiting_pos);
    free(r->ends_pos);
    free(r->rank);
    free(r->gpus);
    heap_free(&r->waiting);
    heap_free(&r->ends);
    stage_close(&r->stage);
}

/* Jobs of a part lie in order of submit time and id, so their index is the order of arrival. */
static bool waits_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct reference *r = ctx;
    if (!r->all_new && r->rank[a] != r->rank[b])
        return r->rank[a] < r->rank[b];
    if (r->policy->fewest_gpus && r->gpus[a] != r->gpus[b])
        return r->gpus[a] < r->gpus[b];
    return a < b;
}

static bool ends_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct reference *r = ctx;
    int64_t x = r->out->end_ms[r->p->job[a]], y = r->out->end_ms[r->p->job[b]];
    return x != y ? x < y : a < b;
}

static int arrive(struct reference *r, uint32_t i, struct err *e)
{
    if (stage_admit(&r->stage, i, e) < 0)
        return -1;
    r->gpus[i] = (double)stage_wants_milli(&r->stage, i) / GPU_MILLI;
    if (r->policy->rank)
        r->rank[i] = r->policy->rank(stage_job(&r->stage, i), r->gpus[i]);
    heap_push(&r->waiting, i);
    return 0;
}

static void start(struct reference *r, uint32_t i, int64_t now_ms)
{
    uint32_t job = r->p->job[i];
    r->out->start_ms[job] = now_ms;
    r->out->gpus[job] = stage_gpus(&r->stage, i);
    r->out->end_ms[job] = now_ms + stage_job(&r->stage, i)->duration_ms;
    heap_push(&r->ends, i);
}

static void finish(struct reference *r, uint32_t i)
{
    uint32_t job = r->p->job[i];
    outcome_hold(r->p->t, r->out, job, r->out->start_ms[job], r->out->end_ms[job]);
    stage_give(&r->stage, i);
    progress_set(r->meter->bar, ++r->meter->done);
}

/* Those that are left of a queue in which all were new are no longer new. */
static void order_by_rank(struct reference *r)
{
    uint32_t n = r->waiting.n;
    AUTO(free_p) uint32_t *left = xcalloc(n + 1, sizeof *left);
    for (uint32_t k = 0; k < n; k++)
        left[k] = heap_pop(&r->waiting);
    r->all_new = false;
    for (uint32_t k = 0; k < n; k++)
        heap_push(&r->waiting, left[k]);
}

static int step(struct reference *r, int64_t now_ms, uint32_t *next, struct err *e)
{
    while (r->ends.n && r->out->end_ms[r->p->job[heap_top(&r->ends)]] <= now_ms)
        finish(r, heap_pop(&r->ends));
    r->all_new = r->policy->fewest_gpus && r->waiting.n == 0;
    for (; *next < r->p->jobs && r->p->t->job[r->p->job[*next]].submit_ms <= now_ms; ++*next)
        if (arrive(r, *next, e) < 0)
            return -1;
    while (r->waiting.n && stage_take(&r->stage, heap_top(&r->waiting)))
        start(r, heap_pop(&r->waiting), now_ms);
    if (r->all_new)
        order_by_rank(r);
    return 0;
}

static const struct reference_policy *find_policy(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(policies); i++)
        if (strcmp(policies[i].name, name) == 0)
            return &policies[i];
    return NULL;
}

int replay_reference(const struct part *p, const struct replay_options *o, struct outcome *out,
                     struct replay_meter *m, struct err *e)
{
    AUTO(reference_free)
    struct reference r = { .policy = find_policy(o->policy), .p = p, .out = out, .meter = m };
    uint32_t next = 0;
    if (!r.policy)
        return err_set(e, ERR_INTERNAL, "'%s' is no reference policy", o->policy);
    r.rank = xcalloc(p->jobs + 1, sizeof *r.rank);
    r.gpus = xcalloc(p->jobs + 1, sizeof *r.gpus);
    r.waiting_pos = heap_positions(p->jobs);
    r.ends_pos = heap_positions(p->jobs);
    r.waiting = (struct heap){ .pos = r.waiting_pos, .before = waits_before, .ctx = &r };
    r.ends = (struct heap){ .pos = r.ends_pos, .before = ends_before, .ctx = &r };
    if (stage_open(&r.stage, p, r.policy->packing, e) < 0)
        return -1;
    while (next < p->jobs || r.ends.n) {
        int64_t now_ms = NEVER;
        if (r.ends.n)
            now_ms = MIN(now_ms, out->end_ms[p->job[heap_top(&r.ends)]]);
        if (next < p->jobs)
            now_ms = MIN(now_ms, p->t->job[p->job[next]].submit_ms);
        if (step(&r, now_ms, &next, e) < 0)
            return -1;
    }
    return 0;
}
