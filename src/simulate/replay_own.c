/* A replay under the product's own core: the events it would get, the plans it makes. */
#include <stdio.h>

#include "base/heap.h"
#include "core/core.h"
#include "core/policy.h"
#include "journal/journal.h"
#include "simulate/replay.h"
#include "sys/progress.h"

struct own {
    struct core *core;
    struct arena arena;
    struct heap ends; /* jobs of the part that run, by end */
    uint32_t *pos;
    int64_t *left_ms, *since_ms; /* of work and of what freezing cost; begin of the last stint */
    const struct part *p;
    struct outcome *out;
    const struct replay_options *options;
    struct buf *journal;
    struct replay_meter *meter;
};

static void own_free(struct own *o)
{
    core_free(o->core);
    arena_free(&o->arena);
    heap_free(&o->ends);
    free(o->pos);
    free(o->left_ms);
    free(o->since_ms);
}

static bool ends_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct own *o = ctx;
    int64_t x = o->out->end_ms[o->p->job[a]], y = o->out->end_ms[o->p->job[b]];
    return x != y ? x < y : a < b;
}

static int tell(struct own *o, const struct event *ev, struct err *e)
{
    if (core_apply(o->core, ev, e) < 0)
        return -1;
    if (o->journal)
        journal_write(ev, o->journal);
    return 0;
}

static int tell_policy(struct own *o, struct err *e)
{
    struct event ev = { .kind = EVENT_POLICY, .policy = policy_default() };
    ev.t_ms = o->p->jobs ? o->p->t->job[o->p->job[0]].submit_ms : 0;
    return tell(o, &ev, e);
}

static int build(struct own *o, struct err *e)
{
    const struct trace *t = o->p->t;
    int64_t begin_ms = o->p->jobs ? t->job[o->p->job[0]].submit_ms : 0;
    for (uint32_t i = 0; i < t->tenants; i++) {
        const struct trace_tenant *tt = &t->tenant[i];
        struct event ev = { .t_ms = begin_ms, .kind = EVENT_TENANT };
        ev.tenant = (struct event_tenant){
            .name = str_of(tt->name),
            .parent = str_of(tt->parent),
            .weight_milli = tt->weight_milli,
            .guarantee_milli = tt->guarantee_milli,
            .limit = tt->limit,
            .user_limit = AMOUNTS_NO_LIMIT,
        };
        if (tell(o, &ev, e) < 0)
            return -1;
    }
    for (uint32_t i = 0; i < o->p->nodes; i++) {
        struct event ev = { .t_ms = begin_ms, .kind = EVENT_NODE };
        ev.node = t->node[o->p->node[i]];
        if (tell(o, &ev, e) < 0)
            return -1;
    }
    return 0;
}

/* The core's own number of a job means nothing to the reader of a trace. */
static void forget_number(uint64_t id, struct err *e)
{
    char number[32];
    size_t n = (size_t)snprintf(number, sizeof number, "job %llu: ", (unsigned long long)id);
    if (strncmp(e->msg, number, n) == 0)
        memmove(e->msg, e->msg + n, strlen(e->msg + n) + 1);
}

/* Job i of the part is number i + 1 of the core: ids have to grow with time. */
static int submit(struct own *o, uint32_t i, struct err *e)
{
    const struct trace_job *j = &o->p->t->job[o->p->job[i]];
    struct event ev = { .t_ms = j->submit_ms, .kind = EVENT_SUBMIT };
    ev.submit = (struct event_submit){
        .id = { i + 1 },
        .tenant = str_of(o->p->t->tenant[j->tenant].name),
        .user = str_of(j->user),
        .models = str_of(j->models),
        .request = j->request,
        .priority = j->priority,
        .thaw_cost_ms = j->thaw_cost_ms < 0 ? 0 : (uint32_t)replay_freeze_ms(o->options, j),
        .restarts = j->restarts,
        .limit_ms = j->limit_ms,
    };
    if (tell(o, &ev, e) == 0)
        return 0;
    forget_number(i + 1, e);
    return err_wrap(e, "%s, job %llu of the trace", o->p->t->name, (unsigned long long)j->id);
}

static int job_event(struct own *o, uint32_t i, enum job_event what, int64_t now_ms, struct err *e)
{
    struct event ev = { .t_ms = now_ms, .kind = EVENT_JOB };
    ev.job = (struct event_job){ { i + 1 }, what };
    return tell(o, &ev, e);
}

static void write_plan(struct own *o, const struct plan *plan, int64_t now_ms)
{
    journal_write(&(struct event){ .t_ms = now_ms, .kind = EVENT_PASS }, o->journal);
    for (size_t k = 0; k < plan->n; k++) {
        struct event ev = action_event(&plan->action[k], now_ms);
        journal_write(&ev, o->journal);
    }
}

static int begin_stint(struct own *o, uint32_t i, const struct action *a, int64_t now_ms,
                       struct err *e)
{
    uint32_t job = o->p->job[i];
    if (o->out->start_ms[job] == NEVER) {
        struct job_view v;
        o->out->start_ms[job] = now_ms;
        if (core_job(o->core, a->job, &v) && v.is_stated) {
            o->out->stated_ms[job] = v.stated_ms;
            o->out->eta[job] = v.eta;
        }
        o->left_ms[i] = o->p->t->job[job].duration_ms;
        o->out->gpus[job] = slots_gpus(a->slots, a->n);
    }
    o->since_ms[i] = now_ms;
    o->out->end_ms[job] = now_ms + o->left_ms[i];
    heap_push(&o->ends, i);
    return job_event(o, i, JOB_EV_STARTED, now_ms, e);
}

/* Freezing takes no time here; what it costs is added to what is left. */
static int freeze(struct own *o, uint32_t i, int64_t now_ms, struct err *e)
{
    uint32_t job = o->p->job[i];
    heap_remove(&o->ends, i);
    o->left_ms[i] = o->out->end_ms[job] - now_ms + replay_freeze_ms(o->options, &o->p->t->job[job]);
    o->out->end_ms[job] = NEVER;
    o->out->freezes[job]++;
    outcome_hold(o->p->t, o->out, job, o->since_ms[i], now_ms);
    return job_event(o, i, JOB_EV_FROZE, now_ms, e);
}

/* Passes until nothing more is frozen: what that made free is given out at the same instant. */
static int pass(struct own *o, int64_t now_ms, struct err *e)
{
    for (bool again = true; again;) {
        struct plan plan;
        again = false;
        arena_reset(&o->arena);
        core_pass(o->core, now_ms, &o->arena, &plan);
        if (o->journal)
            write_plan(o, &plan, now_ms);
        for (size_t k = 0; k < plan.n; k++) {
            const struct action *a = &plan.action[k];
            uint32_t i = (uint32_t)a->job.v - 1;
            if ((a->kind == ACT_START || a->kind == ACT_THAW) &&
                begin_stint(o, i, a, now_ms, e) < 0)
                return -1;
            if (a->kind == ACT_TAKE && freeze(o, i, now_ms, e) < 0)
                return -1;
            again = again || a->kind == ACT_TAKE;
        }
    }
    return 0;
}

/* Everything that happens at one instant: ends, then submits, then the pass. */
static int step(struct own *o, int64_t now_ms, uint32_t *next, struct err *e)
{
    while (o->ends.n && o->out->end_ms[o->p->job[heap_top(&o->ends)]] <= now_ms) {
        uint32_t i = heap_pop(&o->ends), job = o->p->job[i];
        if (job_event(o, i, JOB_EV_EXITED_OK, now_ms, e) < 0)
            return -1;
        outcome_hold(o->p->t, o->out, job, o->since_ms[i], now_ms);
        progress_set(o->meter->bar, ++o->meter->done);
    }
    for (; *next < o->p->jobs && o->p->t->job[o->p->job[*next]].submit_ms <= now_ms; ++*next)
        if (submit(o, *next, e) < 0)
            return -1;
    return pass(o, now_ms, e);
}

int replay_own(const struct part *p, const struct replay_options *opt, struct outcome *out,
               struct replay_meter *m, struct err *e)
{
    AUTO(own_free)
    struct own o = {
        .core = core_new(), .p = p, .out = out, .options = opt, .journal = opt->journal, .meter = m
    };
    uint32_t next = 0;
    o.pos = heap_positions(p->jobs);
    o.left_ms = xcalloc(p->jobs + 1, sizeof *o.left_ms);
    o.since_ms = xcalloc(p->jobs + 1, sizeof *o.since_ms);
    o.ends = (struct heap){ .pos = o.pos, .before = ends_before, .ctx = &o };
    if (o.journal)
        journal_write_header(o.journal);
    if (tell_policy(&o, e) < 0 || build(&o, e) < 0)
        return -1;
    while (next < p->jobs || o.ends.n) {
        int64_t now_ms = INT64_MAX;
        if (o.ends.n)
            now_ms = out->end_ms[p->job[heap_top(&o.ends)]];
        if (next < p->jobs)
            now_ms = MIN(now_ms, p->t->job[p->job[next]].submit_ms);
        if (step(&o, now_ms, &next, e) < 0)
            return -1;
    }
    return 0;
}
