/* What a replay tells the core from outside: submits, machines, settings, what people did. */
#include <stdio.h>

#include "simulate/own.h"

/* ---- submits ---- */

/* The core's own number of a job means nothing to the reader of a trace. */
static void forget_number(uint64_t id, struct err *e)
{
    char number[32];
    size_t n = (size_t)snprintf(number, sizeof number, "job %llu: ", (unsigned long long)id);
    if (strncmp(e->msg, number, n) == 0)
        memmove(e->msg, e->msg + n, strlen(e->msg + n) + 1);
}

static void add_after(struct after *out, uint32_t *n, uint64_t number, uint8_t when)
{
    struct after *last = *n ? &out[*n - 1] : NULL;
    if (last && last->when == when && last->first.v + last->n == number)
        last->n++;
    else if (*n < AFTER_MAX)
        out[(*n)++] = (struct after){ { number }, 1, when };
}

/* By the core's numbers, and only what is not over yet in this world. */
static uint32_t map_afters(const struct own *o, const struct event_submit *s,
                           struct after out[AFTER_MAX])
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->afters; k++)
        for (uint32_t j = 0; j < s->after[k].n && s->after[k].when != AFTER_NEVER; j++) {
            uint64_t i;
            if (map_get(&o->told.by_id, s->after[k].first.v + j, &i) && o->life[i].number &&
                o->life[i].phase != OVER)
                add_after(out, &n, o->life[i].number, s->after[k].when);
        }
    return n;
}

static int submit(struct own *o, uint32_t i, const struct event *as_told, struct err *e)
{
    struct after after[AFTER_MAX];
    struct event ev = *as_told;
    const uint64_t number = o->numbers + 1;
    for (uint32_t k = 0; k < ev.submit.afters; k++) /* it was about to be cancelled for it */
        ev.submit.held |= ev.submit.after[k].when == AFTER_NEVER;
    ev.submit.id = (job_id){ number };
    ev.submit.afters = map_afters(o, &ev.submit, after);
    ev.submit.after = after;
    if (own_tell(o, &ev, e) < 0) {
        o->life[i].phase = OVER;
        forget_number(number, e);
        return -1;
    }
    o->numbers = o->life[i].number = number;
    o->of_number[number] = i;
    return 0;
}

static int submit_job(struct own *o, uint32_t i, int64_t t_ms, struct err *e)
{
    const struct trace_job *j = own_job(o, i);
    struct event ev = { .t_ms = t_ms, .kind = EVENT_SUBMIT };
    if (j->seen)
        ev.submit = j->seen->said;
    ev.submit.tenant = str_of(o->p->t->tenant[j->tenant].name);
    ev.submit.user = str_of(j->user);
    ev.submit.models = str_of(j->models);
    ev.submit.request = j->request;
    ev.submit.priority = j->priority;
    ev.submit.thaw_cost_ms = j->thaw_cost_ms < 0 ? 0 : (uint32_t)replay_freeze_ms(o->options, j);
    ev.submit.restarts = j->restarts;
    ev.submit.limit_ms = j->limit_ms;
    ev.submit.family = j->family;
    if (submit(o, i, &ev, e) == 0)
        return 0;
    if (o->p->t->changed &&
        e->code != ERR_INTERNAL) /* it does not fit the changed world: said as unfinished */
        return 0;
    return err_wrap(e, "%s, job %llu of the trace", o->p->t->name, (unsigned long long)j->id);
}

/* ---- machines ---- */

static int tell_node(struct own *o, const struct trace_step *s, struct err *e)
{
    if (own_tell(o, &s->ev, e) < 0)
        return -1;
    if (s->number != NONE) {
        while (o->nodes_known <= s->number) {
            vec_grow(o->node_at, o->nodes_known, o->node_cap);
            o->node_at[o->nodes_known++] = NONE;
        }
        o->node_at[s->number] = o->nodes_told;
    }
    o->nodes_told++;
    return 0;
}

/* Slots by the core's numbers; false: a machine is not in this world. */
static bool map_slots(const struct own *o, const struct event_place *p, struct slot *out)
{
    for (uint32_t k = 0; k < p->n; k++) {
        out[k] = p->slots[k];
        if (out[k].node >= o->nodes_known || o->node_at[out[k].node] == NONE)
            return false;
        out[k].node = o->node_at[out[k].node];
    }
    return true;
}

static int give_back(struct own *o, uint32_t i, struct err *e)
{
    own_release(o, i);
    own_set_due(o, i, WAITS, NEVER);
    if (own_job(o, i))
        o->life[i].left_ms = own_job(o, i)->duration_ms;
    return own_job_event(o, i, JOB_EV_RETURNED, e);
}

static bool holds(const struct own *o, uint32_t i)
{
    enum phase p = o->life[i].phase;
    return p == BEGINS || p == RUNS || p == FREEZES;
}

static bool is_on(const struct own *o, uint32_t i, struct str machine)
{
    struct job_view v;
    struct node_view n;
    if (!holds(o, i) || !core_job(o->core, (job_id){ o->life[i].number }, &v))
        return false;
    for (uint32_t k = 0; k < v.n; k++)
        if (core_node(o->core, (node_id){ v.slots[k].node }, &n) && str_is(machine, n.name))
            return true;
    return false;
}

static int lose_jobs(struct own *o, struct str machine, struct err *e)
{
    for (uint32_t i = 0; i < o->p->jobs + o->told.ghosts; i++)
        if (is_on(o, i, machine) && give_back(o, i, e) < 0)
            return -1;
    return 0;
}

/* ---- what is told of jobs ---- */

/* In the changed world a job may be elsewhere in its life: what does not fit it then is left out. */
static bool may(const struct own *o, uint32_t i, enum job_event what)
{
    struct job_view v;
    struct err ignored;
    enum job_state to;
    return o->life[i].number && core_job(o->core, (job_id){ o->life[i].number }, &v) &&
           job_next(v.state, what, &to, &ignored) == 0;
}

static int cancel(struct own *o, uint32_t i, struct err *e)
{
    bool held = o->life[i].phase != WAITS;
    if (own_job_event(o, i, JOB_EV_CANCEL, e) < 0 ||
        (held && own_job_event(o, i, JOB_EV_ENDED, e) < 0))
        return -1;
    if (held)
        own_release(o, i);
    if (own_job(o, i) && o->out->start_ms[o->p->job[i]] != NEVER)
        o->out->end_ms[o->p->job[i]] = o->now_ms;
    own_set_due(o, i, OVER, NEVER);
    return 0;
}

static int tell_job(struct own *o, const struct event *ev, struct err *e)
{
    uint64_t i;
    enum job_event what = ev->job.what;
    if (!map_get(&o->told.by_id, ev->job.id.v, &i) || !may(o, (uint32_t)i, what))
        return 0;
    if (what == JOB_EV_CANCEL)
        return o->life[i].phase == STOPS ? 0 : cancel(o, (uint32_t)i, e);
    if (what == JOB_EV_RETURNED)
        return holds(o, (uint32_t)i) ? give_back(o, (uint32_t)i, e) : 0;
    if (own_job_event(o, (uint32_t)i, what, e) < 0)
        return -1;
    return what == JOB_EV_FREEZE && o->life[i].phase == RUNS ? own_freeze(o, (uint32_t)i, e) : 0;
}

/* One that has ended here, or never came, asks for nothing any more. */
static int tell_job_traits(struct own *o, struct event ev, struct err *e)
{
    uint64_t i;
    struct job_view v;
    if (!map_get(&o->told.by_id, ev.job_traits.id.v, &i) || !o->life[i].number)
        return 0;
    ev.job_traits.id.v = o->life[i].number;
    return core_job(o->core, ev.job_traits.id, &v) ? own_tell(o, &ev, e) : 0;
}

/* Decisions from before the journal begins.  What has no room in this world waits. */
static int tell_decision(struct own *o, struct event ev, struct err *e)
{
    uint64_t i, by;
    struct slot slot[REPLICAS_MAX];
    job_id *id = ev.kind == EVENT_TAKE ? &ev.take.id : &ev.place.id;
    if (!map_get(&o->told.by_id, id->v, &i) || !o->life[i].number)
        return 0;
    *id = (job_id){ o->life[i].number };
    if (ev.kind == EVENT_TAKE) {
        ev.take.by.v = map_get(&o->told.by_id, ev.take.by.v, &by) ? o->life[by].number : 0;
        if (o->life[i].phase != RUNS)
            return 0;
        return own_tell(o, &ev, e) < 0 ? 0 : own_freeze(o, (uint32_t)i, e);
    }
    if (!map_slots(o, &ev.place, slot))
        return 0;
    ev.place.slots = slot;
    if (own_tell(o, &ev, e) < 0)
        return 0;
    const struct stay stay = { slot, ev.place.n };
    return ev.kind == EVENT_PLACE ? own_begin(o, (uint32_t)i, &stay, e) : 0;
}

/* ---- settings ---- */

static int tell_policy(struct own *o, struct event ev, struct err *e)
{
    const struct trace *t = o->p->t;
    for (uint32_t k = 0; k < t->sets; k++)
        *policy_value(&ev.policy, t->set[k].key) = t->set[k].value;
    return own_tell(o, &ev, e);
}

struct anew {
    struct core *core;
    struct err e;
    bool failed;
};

static void apply_anew(void *ctx, const struct event *ev)
{
    struct anew *a = ctx;
    a->failed = a->failed || core_apply(a->core, ev, &a->e) < 0;
}

/* The daemon went on with a core made from its state, which forgets the same that this one does. */
static int cut(struct own *o, struct err *e)
{
    struct anew a = { .core = core_new() };
    if (o->journal) /* it would have to be cut, too */
        a.failed = true;
    else
        core_snapshot(o->core, apply_anew, &a);
    if (a.failed) {
        core_free(a.core);
        *e = a.e;
        return o->journal ? 0 : err_wrap(e, "going on with the core made anew");
    }
    core_free(o->core);
    o->core = a.core;
    return 0;
}

/* One that was empty when it was removed may have jobs here that still wait or run. */
static int tell_tenant(struct own *o, const struct event *ev, struct err *e)
{
    if (own_tell(o, ev, e) == 0)
        return 0;
    return ev->tenant.removed && e->code == ERR_CONFLICT ? 0 : -1;
}

static int tell_step(struct own *o, const struct trace_step *s, uint32_t ghost, struct err *e)
{
    struct event ev = s->ev;
    if (s->kind == STEP_NONE)
        return 0;
    if (s->kind == STEP_CUT)
        return cut(o, e);
    if (s->kind == STEP_LOST)
        return lose_jobs(o, ev.node_state.name, e);
    switch (ev.kind) {
    case EVENT_POLICY: return tell_policy(o, ev, e);
    case EVENT_NODE: return tell_node(o, s, e);
    case EVENT_JOB: return tell_job(o, &ev, e);
    case EVENT_JOB_TRAITS: return tell_job_traits(o, ev, e);
    case EVENT_PLACE:
    case EVENT_PROMISE:
    case EVENT_TAKE: return tell_decision(o, ev, e);
    case EVENT_SUBMIT:
        return submit(o, o->p->jobs + ghost, &ev, e) < 0 && !o->p->t->changed ? -1 : 0;
    case EVENT_MODEL:
    case EVENT_NODE_CHANGE: /* where other jobs run than did it may not be possible */
    case EVENT_RESERVE:     /* machines that are not in this world leave it as it was */
        return own_tell(o, &ev, e) < 0 && !o->p->t->changed ? -1 : 0;
    case EVENT_TENANT: return tell_tenant(o, &ev, e);
    case EVENT_POOL:
    case EVENT_USER:
    case EVENT_NODE_POOL:
    case EVENT_NODE_TRAITS:
    case EVENT_NODE_STATE:
    case EVENT_PASS:
    case EVENT_PAST:
    case EVENT_DEMAND:
    case EVENT_RUNS:
    case EVENT_WAIT:
    case EVENT_TIMES:
    case EVENT_BURST:
    case EVENT_LEDGER:
    case EVENT_KIND_COUNT: break;
    }
    return own_tell(o, &ev, e);
}

int own_telling(struct own *o, const struct telling *t, struct err *e)
{
    if (t->is_step)
        return tell_step(o, &o->told.step[t->index], t->ghost, e);
    return submit_job(o, t->index, t->at.t_ms, e);
}
