#include "simulate/replay.h"

#include "sys/clock.h"
#include "sys/progress.h"

double slots_gpus(const struct slot *s, uint32_t n)
{
    uint64_t milli = 0;
    for (uint32_t i = 0; i < n; i++)
        milli += (uint64_t)__builtin_popcount(s[i].gpu_mask) * s[i].milli;
    return (double)milli / GPU_MILLI;
}

int64_t freeze_cost_ms(uint32_t gpus)
{
    return gpus <= 1 ? 7000 : gpus <= 8 ? 30000 : 60000;
}

int64_t replay_freeze_ms(const struct replay_options *o, const struct trace_job *j)
{
    int64_t cost_ms = j->thaw_cost_ms > 0 ? j->thaw_cost_ms : freeze_cost_ms(j->gpus);
    return cost_ms * o->freeze_cost_milli / 1000;
}

struct outcome outcome_new(struct trace *t)
{
    struct outcome o = { .start_ms = arena_array(&t->arena, int64_t, t->jobs + 1),
                         .end_ms = arena_array(&t->arena, int64_t, t->jobs + 1),
                         .came_ms = arena_array(&t->arena, int64_t, t->jobs + 1),
                         .gpus = arena_array(&t->arena, double, t->jobs + 1),
                         .freezes = arena_array(&t->arena, uint32_t, t->jobs + 1) };
    o.stated_ms = arena_array(&t->arena, int64_t, t->jobs + 1);
    o.eta = arena_array(&t->arena, struct eta, t->jobs + 1);
    for (uint32_t i = 0; i < t->jobs; i++) {
        o.start_ms[i] = o.end_ms[i] = o.stated_ms[i] = NEVER;
        o.came_ms[i] = t->job[i].submit_ms;
    }
    return o;
}

/* Room for one more in an array of the trace's arena. */
static void *grown(struct trace *t, void *at, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return at;
    *cap = *cap ? *cap * 2 : t->jobs + 1;
    void *out = arena_alloc(&t->arena, *cap, size);
    if (n)
        memcpy(out, at, n * size);
    return out;
}

void outcome_hold(struct trace *t, struct outcome *o, uint32_t job, int64_t from_ms, int64_t to_ms)
{
    o->stint = grown(t, o->stint, o->stints, &o->stint_cap, sizeof *o->stint);
    o->stint[o->stints++] = (struct stint){ job, from_ms, to_ms };
}

void outcome_lend(struct trace *t, struct outcome *o, const struct lease *l)
{
    o->lease = grown(t, o->lease, o->leases, &o->lease_cap, sizeof *o->lease);
    o->lease[o->leases++] = *l;
}

/* The part of one tenant, or of everybody when tenant is NONE. */
static struct part make_part(struct trace *t, uint32_t tenant)
{
    struct part p = { .t = t };
    p.node = arena_array(&t->arena, uint32_t, t->nodes + 1);
    p.job = arena_array(&t->arena, uint32_t, t->jobs + 1);
    for (uint32_t i = 0; i < t->nodes; i++)
        if (tenant == NONE || t->node_tenant[i] == tenant)
            p.node[p.nodes++] = i;
    for (uint32_t i = 0; i < t->jobs; i++)
        if (tenant == NONE || t->job[i].tenant == tenant)
            p.job[p.jobs++] = i;
    return p;
}

/* REPLAY_POLICIES lists the same names. */
static const struct {
    const char *name;
    replay_part run;
} policies[] = {
    { "nightshift", replay_own },   { "fifo", replay_reference },       { "sjf", replay_reference },
    { "qssf", replay_reference },   { "qssf-noisy", replay_reference }, { "srtf", replay_preempt },
    { "tiresias", replay_preempt }, { "bestfit", replay_reference },    { "fgd", replay_reference },
};

static replay_part find_policy(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(policies); i++)
        if (strcmp(policies[i].name, name) == 0)
            return policies[i].run;
    return NULL;
}

int replay_run(struct trace *t, const struct replay_options *o, struct report *out,
               struct outcome *out_jobs, struct err *e)
{
    AUTO(progress_done_p) struct progress *bar = progress_begin(o->policy, t->jobs);
    struct replay_meter meter = { .bar = bar };
    struct outcome jobs = outcome_new(t);
    int64_t begin = clock_mono_ns();
    replay_part run = find_policy(o->policy);
    if (!run) {
        err_set(e, ERR_INVALID, "--policy: '%s' is not known", o->policy);
        return err_hint(e, "choose " REPLAY_POLICIES);
    }
    if (t->windows && run != replay_own) {
        err_set(e, ERR_INVALID, "--policy: '%s' knows no windows", o->policy);
        return err_hint(e, "choose nightshift where machines are lent at times");
    }
    for (uint32_t i = 0; i < (t->node_tenant ? t->tenants : 1); i++) {
        struct part p = make_part(t, t->node_tenant ? i : NONE);
        if (run(&p, o, &jobs, &meter, e) < 0)
            return -1;
    }
    replay_measure(t, &jobs, out);
    out->policy = o->policy;
    out->wall_s = (double)(clock_mono_ns() - begin) / 1e9;
    *out_jobs = jobs;
    return 0;
}
