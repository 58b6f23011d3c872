#include "simulate/told.h"

/* ---- steps of a trace that has none ---- */

static struct trace_step *make_steps(const struct part *p, uint32_t *out_n)
{
    const struct trace *t = p->t;
    int64_t begin_ms = p->jobs ? t->job[p->job[0]].submit_ms : 0;
    struct trace_step *made = xcalloc((size_t)t->tenants + t->windows + p->nodes + 1, sizeof *made);
    uint32_t n = 0;
    made[n++].ev = (struct event){ .kind = EVENT_POLICY, .policy = policy_default() };
    for (uint32_t i = 0; i < t->tenants; i++) {
        const struct trace_tenant *w = &t->tenant[i];
        made[n].ev.kind = EVENT_TENANT;
        made[n++].ev.tenant = (struct event_tenant){ .name = str_of(w->name),
                                                     .parent = str_of(w->parent),
                                                     .weight_milli = w->weight_milli,
                                                     .guarantee_milli = w->guarantee_milli,
                                                     .limit = w->limit,
                                                     .user_limit = AMOUNTS_NO_LIMIT };
    }
    for (uint32_t i = 0; i < t->windows; i++) {
        const struct trace_window *w = &t->window[i];
        made[n].ev.kind = EVENT_POOL;
        made[n++].ev.pool = (struct event_pool){ str_of(w->pool), str_of(w->calendar) };
    }
    for (uint32_t i = 0; i < p->nodes; i++) {
        made[n].ev.kind = EVENT_NODE;
        made[n].number = NONE;
        made[n++].ev.node = t->node[p->node[i]];
    }
    for (uint32_t i = 0; i < n; i++)
        made[i].ev.t_ms = begin_ms;
    *out_n = n;
    return made;
}

/* ---- the order ---- */

/* At one time a journal's lines go by their order, what has none goes by its index, steps first. */
static int by_time(const void *a, const void *b)
{
    const struct telling *x = a, *y = b;
    if (x->at.t_ms != y->at.t_ms)
        return x->at.t_ms < y->at.t_ms ? -1 : 1;
    if (x->at.order != y->at.order)
        return x->at.order < y->at.order ? -1 : 1;
    if (x->is_step != y->is_step)
        return x->is_step ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void add_step(const struct part *p, struct told *t, uint32_t i)
{
    const struct trace_step *s = &t->step[i];
    struct telling *at = &t->at[t->n++];
    *at = (struct telling){
        .at = { s->ev.t_ms, s->order }, .index = i, .ghost = NONE, .is_step = true
    };
    if (s->kind != STEP_EVENT || s->ev.kind != EVENT_SUBMIT)
        return;
    at->ghost = t->ghosts++;
    map_set(&t->by_id, s->ev.submit.id.v, p->jobs + at->ghost);
}

static void add_job(const struct part *p, struct told *t, uint32_t i)
{
    const struct trace_job *j = &p->t->job[p->job[i]];
    t->at[t->n++] = (struct telling){ .at = { j->submit_ms - (j->seen ? j->seen->ahead_ms : 0),
                                              j->seen ? j->seen->order : 0 },
                                      .index = i,
                                      .ghost = NONE };
    if (j->seen)
        map_set(&t->by_id, j->id, i);
}

void told_begin(const struct part *p, struct told *out)
{
    uint32_t steps = p->t->steps;
    *out = (struct told){ .step = p->t->step };
    if (!steps)
        out->step = out->made = make_steps(p, &steps);
    out->at = xcalloc((size_t)steps + p->jobs + 1, sizeof *out->at);
    for (uint32_t i = 0; i < steps; i++)
        add_step(p, out, i);
    for (uint32_t i = 0; i < p->jobs; i++)
        add_job(p, out, i);
    qsort(out->at, out->n, sizeof *out->at, by_time);
}

void told_free(struct told *t)
{
    free(t->made);
    free(t->at);
    map_free(&t->by_id);
}
