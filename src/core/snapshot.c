/* The state as the shortest list of events that makes it anew: what a journal begins with when it is
 * cut.  Room that was kept is not among them: the next pass keeps it again. */
#include <stdio.h>

#include "core/state.h"

struct writer {
    const struct core *c;
    core_emit_fn *fn;
    void *ctx;
    struct arena arena;
};

static void emit(struct writer *w, struct event ev)
{
    w->fn(w->ctx, &ev);
}

static int64_t begin_ms(const struct core *c)
{
    return MIN(c->shares.begin_ms, c->now_ms);
}

static void emit_policy(struct writer *w)
{
    const struct cluster *cl = &w->c->cluster;
    int64_t t = begin_ms(w->c);
    emit(w, (struct event){ .t_ms = t, .kind = EVENT_POLICY, .policy = w->c->policy });
    for (uint32_t m = 0; m < cl->models.n; m++)
        emit(w, (struct event){
                    .t_ms = t,
                    .kind = EVENT_MODEL,
                    .model = { str_of(names_get(&cl->models, m)), cl->model_cost_milli[m] } });
}

static void put_rules(const struct rules *r, struct model_limit *limits, struct event_tenant *t)
{
    for (uint32_t i = 0; i < r->caps; i++)
        limits[i] = (struct model_limit){ str_of(r->cap[i].names), r->cap[i].limit_milli };
    t->model_limit = limits;
    t->model_limits = r->caps;
    t->pools = str_of(r->pools ? r->pools : "");
    t->until_ms = r->until_ms;
    t->budget_gpu_milli_ms = r->budget.most;
    t->budget_from_ms = r->budget.from_ms;
    t->budget_until_ms = r->budget.until_ms;
}

static void emit_share(struct writer *w, uint32_t i)
{
    const struct share *s = &w->c->shares.at[i], *up = &w->c->shares.at[s->parent];
    struct event ev = { .t_ms = begin_ms(w->c), .kind = s->is_user ? EVENT_USER : EVENT_TENANT };
    if (s->is_user)
        ev.user = (struct event_user){ .tenant = str_of(up->name),
                                       .user = str_of(s->name),
                                       .weight_milli = s->weight_milli };
    else
        ev.tenant = (struct event_tenant){ .name = str_of(s->name),
                                           .parent = str_of(s->parent ? up->name : ""),
                                           .weight_milli = s->weight_milli,
                                           .guarantee_milli = (uint64_t)s->guarantee_milli,
                                           .limit = s->limit,
                                           .user_limit = s->user_limit };
    struct model_limit limits[MODEL_LIMITS_MAX];
    if (s->rules)
        put_rules(s->rules, limits, &ev.tenant);
    emit(w, ev);
}

/* Last, for what was of them is told before; those below others first. */
static void emit_removed(struct writer *w)
{
    const struct shares *s = &w->c->shares;
    for (uint32_t depth = TREE_DEPTH_MAX; depth > 0; depth--)
        for (uint32_t i = 1; i < s->n; i++) {
            struct event ev = { .t_ms = w->c->now_ms, .kind = EVENT_TENANT };
            ev.tenant.name = str_of(s->at[i].name);
            ev.tenant.removed = true;
            if (s->at[i].removed && s->at[i].depth == depth)
                emit(w, ev);
        }
}

/* Depth by depth: a tenant may have been moved below one that came later. */
static void emit_shares(struct writer *w)
{
    const struct shares *s = &w->c->shares;
    for (uint32_t depth = 1; depth <= TREE_DEPTH_MAX; depth++)
        for (uint32_t i = 1; i < s->n; i++)
            if (s->at[i].depth == depth)
                emit_share(w, i);
}

static void emit_pools(struct writer *w, int64_t t_ms)
{
    const struct cluster *cl = &w->c->cluster;
    for (uint32_t i = 0; i < cl->pool_names.n; i++) {
        AUTO(buf_free) struct buf text = BUF(CALENDAR_TEXT_MAX);
        struct event ev = { .t_ms = t_ms, .kind = EVENT_POOL };
        if (cl->pool[i].always && cl->pool[i].n == 0)
            continue; /* nothing depends on it: it may have been removed */
        ev.pool.name = str_of(names_get(&cl->pool_names, i));
        if (!cl->pool[i].always)
            calendar_format(&cl->pool[i].calendar, &text);
        ev.pool.calendar = buf_str(&text);
        emit(w, ev);
    }
}

static void emit_nodes(struct writer *w)
{
    const struct cluster *cl = &w->c->cluster;
    int64_t t = begin_ms(w->c);
    for (uint32_t i = 0; i < cl->nodes; i++) {
        const struct node *n = &cl->node[i];
        const struct kind *k = &cl->kind[n->kind];
        struct event ev = { .t_ms = t, .kind = EVENT_NODE };
        ev.node =
            (struct event_node){ .name = str_of(n->name),
                                 .model = str_of(k->gpus ? names_get(&cl->models, k->model) : ""),
                                 .gpus = k->gpus,
                                 .gpu_mem_mib = k->gpu_mem_mib,
                                 .cpu_milli = k->cpu_milli,
                                 .mem_mib = k->mem_mib };
        ev.node.traits = str_of(k->class);
        ev.node.devices = str_of(names_get(&cl->kits, k->kit));
        if (k->pool != NONE)
            ev.node.pool = str_of(names_get(&cl->pool_names, k->pool));
        if (n->net_switch != NONE)
            ev.node.net_switch = str_of(names_get(&cl->switches, n->net_switch));
        memcpy(ev.node.link, k->link, sizeof ev.node.link);
        emit(w, ev);
        if (n->state == NODE_UP)
            continue;
        ev = (struct event){ .t_ms = t, .kind = EVENT_NODE_STATE };
        ev.node_state = (struct event_node_state){ str_of(n->name), (enum node_state)n->state };
        emit(w, ev);
    }
}

static void emit_reservations(struct writer *w)
{
    const struct core *c = w->c;
    for (uint32_t i = 0; i < c->reservations; i++) {
        const struct reservation *r = &c->reservation[i];
        struct event ev = { .t_ms = begin_ms(c), .kind = EVENT_RESERVE };
        const char *nodes = "";
        arena_reset(&w->arena);
        for (uint32_t k = 0; k < r->n; k++)
            nodes = arena_printf(&w->arena, "%s%s%s", nodes, k ? "," : "",
                                 c->cluster.node[r->node[k]].name);
        if (!r->name)
            continue;
        ev.reserve = (struct event_reserve){ .name = str_of(r->name),
                                             .tenant = str_of(c->shares.at[r->tenant].name),
                                             .from_ms = r->from_ms,
                                             .until_ms = r->until_ms,
                                             .nodes = str_of(nodes) };
        emit(w, ev);
    }
}

static struct str models_text(struct writer *w, uint64_t bits)
{
    const struct names *names = &w->c->cluster.models;
    const char *text = "";
    for (uint32_t m = 0; m < names->n; m++)
        if (bits & (UINT64_C(1) << m))
            text = arena_printf(&w->arena, "%s%s%s", text, *text ? "|" : "", names_get(names, m));
    return str_of(text);
}

/* What keeps it from the queue still. */
static void put_later(const struct core *c, const struct later *l, struct event_submit *s,
                      struct after after[AFTER_MAX])
{
    if (l->never) {
        after[0] = (struct after){ { l->cause_job }, 1, AFTER_NEVER };
        s->afters = 1;
        return;
    }
    if (later_is_early(c, l))
        s->begin_ms = l->begin_ms;
    s->afters = later_open(c, l, after);
}

static void emit_submit(struct writer *w, const struct job *j)
{
    const struct share *leaf = &w->c->shares.at[j->leaf];
    struct event ev = { .t_ms = j->submit_ms, .kind = EVENT_SUBMIT };
    ev.submit = (struct event_submit){ .id = { j->id },
                                       .tenant = str_of(w->c->shares.at[leaf->parent].name),
                                       .user = str_of(leaf->name),
                                       .request = w->c->shapes.at[j->shape].request,
                                       .priority = (enum priority)j->priority,
                                       .held = j->state == JOB_HELD,
                                       .known = true };
    ev.submit.models = models_text(w, ev.submit.request.models);
    ev.submit.request.models = 0;
    ev.submit.devices = cluster_devices_text(&w->c->cluster, &ev.submit.request, &w->arena);
    memset(ev.submit.request.device, 0, sizeof ev.submit.request.device);
    memset(ev.submit.request.device_n, 0, sizeof ev.submit.request.device_n);
    const struct reservation *in = reservation_at(w->c, ev.submit.request.reservation);
    ev.submit.reservation = str_of(in ? in->name : "");
    ev.submit.request.stay = 0;
    ev.submit.traits = traits_text(w->c, &ev.submit.request);
    ev.submit.request.zone = ev.submit.request.traits = 0;
    ev.submit.request.reservation = 0;
    struct after after[AFTER_MAX];
    ev.submit.after = after;
    if (j->since_ms != j->submit_ms)
        ev.submit.since_ms = j->since_ms;
    if (j->later)
        put_later(w->c, later_of(w->c, j->id), &ev.submit, after);
    if (j->state == JOB_FROZEN || j->state == JOB_THAWING)
        ev.submit.frozen = j->state == JOB_THAWING || j->awake ? 2 : 1;
    ev.submit.thaw_cost_ms = j->thaw_cost_ms;
    ev.submit.restarts = j->restarts;
    ev.submit.limit_ms = j->limit_ms;
    ev.submit.family = j->family;
    ev.submit.ran_ms = core_ran_ms(j, w->c->now_ms);
    ev.submit.taken = j->taken;
    ev.submit.wait_ms = j->wait_ms != j->since_ms ? j->wait_ms : 0;
    emit(w, ev);
}

/* How a job that holds its slots comes to its state after it was placed. */
static void emit_steps(struct writer *w, const struct job *j)
{
    static const struct {
        enum job_state state;
        int n;
        enum job_event step[3];
    } ways[] = {
        { JOB_RUNNING, 1, { JOB_EV_STARTED } },
        { JOB_FREEZING, 2, { JOB_EV_STARTED, JOB_EV_FREEZE } }, /* unless a pass took it back */
        { JOB_PAUSED, 3, { JOB_EV_STARTED, JOB_EV_FREEZE, JOB_EV_PAUSED } },
        { JOB_STOPPING, 1, { JOB_EV_CANCEL } },
    };
    struct event ev = { .t_ms = w->c->now_ms, .kind = EVENT_PLACE };
    ev.place = (struct event_place){ .id = { j->id }, .slots = j->held->slot, .n = j->held->n };
    emit(w, ev);
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        for (int k = 0; ways[i].state == j->state && k < ways[i].n; k++) {
            ev = (struct event){ .t_ms = w->c->now_ms, .kind = EVENT_JOB };
            ev.job = (struct event_job){ { j->id }, ways[i].step[k] };
            if (j->leaving && ways[i].step[k] == JOB_EV_FREEZE) {
                ev.kind = EVENT_TAKE;
                ev.take = (struct event_take){ .id = { j->id } };
            }
            emit(w, ev);
        }
}

static void emit_promises(struct writer *w)
{
    for (uint32_t i = 0; i < w->c->promises; i++) {
        const struct promise *p = &w->c->promise[i];
        struct event ev = { .t_ms = w->c->now_ms, .kind = EVENT_PROMISE };
        ev.place = (struct event_place){ { w->c->queue.job[p->job].id }, p->slot, p->n };
        emit(w, ev);
    }
}

/* size HISTORY_SIZES, or no tenant: of all. */
static void emit_runs(struct writer *w, struct history_of of, const struct history_row *r)
{
    const struct share *share = w->c->shares.at;
    for (uint32_t b = 0; b < HISTORY_BINS; b++) {
        struct event ev = { .t_ms = w->c->now_ms, .kind = EVENT_RUNS };
        ev.runs =
            (struct event_runs){ .tenant = str_of(of.tenant == NONE ? "" : share[of.tenant].name),
                                 .user = str_of(of.family ? share[of.user].name : ""),
                                 .family = of.family,
                                 .size = of.size,
                                 .bin = b,
                                 .ended_milli = (int64_t)(r->ended[b] * 1000),
                                 .exposed_ms = (int64_t)r->exposed_ms[b] };
        if (of.size == HISTORY_SIZES && b == 0) {
            ev.runs.works_milli = (int64_t)(w->c->history.works * 1000);
            ev.runs.work_ms = (int64_t)w->c->history.work_ms;
        }
        if (ev.runs.ended_milli || ev.runs.exposed_ms || ev.runs.works_milli)
            emit(w, ev);
    }
}

/* What runs has been at risk up to now; afterwards it counts from here. */
static void emit_history(struct writer *w)
{
    const struct core *c = w->c;
    struct history h;
    history_copy(&h, &c->history);
    for (uint32_t i = 0; i < c->queue.jobs; i++) {
        const struct job *j = &c->queue.job[i];
        if (j->held)
            history_learn(&h, core_of(c, j), j->ran_ms, core_ran_ms(j, c->now_ms), false);
    }
    emit_runs(w, (struct history_of){ .tenant = NONE, .size = HISTORY_SIZES }, &h.all);
    for (uint32_t s = 0; s < HISTORY_SIZES; s++)
        emit_runs(w, (struct history_of){ .tenant = NONE, .size = s }, &h.size[s]);
    for (uint32_t i = 0; i < h.rows; i++)
        emit_runs(w, h.row[i].of, &h.row[i]);
    uint32_t *order = history_families_by_age(&h);
    for (uint32_t i = 0; i < h.families; i++)
        emit_runs(w, h.family[order[i]].of, &h.family[order[i]]);
    free(order);
    history_free(&h);
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void emit_jobs(struct writer *w)
{
    const struct queue *q = &w->c->queue;
    uint64_t *id = xcalloc(q->jobs + 1, sizeof *id);
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->jobs; i++)
        if (queue_find(q, q->job[i].id) == i)
            id[n++] = q->job[i].id;
    qsort(id, n, sizeof *id, by_id);
    for (uint32_t i = 0; i < n; i++) {
        arena_reset(&w->arena);
        emit_submit(w, &q->job[queue_find(q, id[i])]);
    }
    for (uint32_t i = 0; i < n; i++)
        if (q->job[queue_find(q, id[i])].held)
            emit_steps(w, &q->job[queue_find(q, id[i])]);
    free(id);
}

static void emit_past(struct writer *w)
{
    const struct shares *s = &w->c->shares;
    for (uint32_t i = 0; i < s->n; i++) {
        struct event ev = { .t_ms = w->c->now_ms, .kind = EVENT_PAST };
        const struct share *sh = &s->at[i];
        ev.past = (struct event_past){ .past_cost_ms = share_past_cost_ms(s, i, w->c->now_ms),
                                       .job_milli = sh->job_milli };
        if (sh->rules && sh->rules->budget.most) { /* a period that is over, and what came after */
            ev.past.spent = rules_spent(sh->rules, w->c->now_ms);
            ev.past.late = rules_late(sh->rules, w->c->now_ms);
        }
        if (sh->is_user)
            ev.past.user = str_of(sh->name);
        if (i != SHARE_ROOT)
            ev.past.tenant = str_of(sh->is_user ? s->at[sh->parent].name : sh->name);
        if (ev.past.past_cost_ms || ev.past.job_milli || ev.past.spent || ev.past.late)
            emit(w, ev);
    }
}

static void emit_demand(struct writer *w)
{
    const struct demand *d = &w->c->demand;
    for (uint32_t i = 0; i < d->kinds; i++) {
        const struct demand_kind *k = &d->kind[i];
        struct event ev = { .t_ms = w->c->now_ms, .kind = EVENT_DEMAND };
        arena_reset(&w->arena);
        ev.demand = (struct event_demand){ .models = models_text(w, k->models),
                                           .cpu_milli = k->cpu_milli,
                                           .mem_mib = k->mem_mib,
                                           .gpus = k->gpus,
                                           .milli = k->milli,
                                           .count = k->count };
        emit(w, ev);
    }
}

/* The latest waits, the oldest first, and the corrections. */
static void emit_forecast(struct writer *w)
{
    const struct forecast *f = &w->c->forecast;
    struct event ev = { .t_ms = w->c->now_ms, .kind = EVENT_BURST };
    uint64_t first = f->bursts > FORECAST_BURSTS ? f->bursts - FORECAST_BURSTS : 0;
    for (uint64_t i = first; i < f->bursts; i++) {
        const struct burst *b = &f->burst[i % FORECAST_BURSTS];
        ev.burst = (struct event_burst){ .tenant = str_of(w->c->shares.at[b->tenant].name),
                                         .hour = b->hour,
                                         .jobs = (int64_t)b->jobs,
                                         .sum_milli = (int64_t)(b->sum * 1000),
                                         .squares_milli = (int64_t)(b->squares * 1000) };
        emit(w, ev);
    }
    ev.burst = (struct event_burst){ .p50_milli = (int64_t)(f->shift[0] * 1000),
                                     .p90_milli = (int64_t)(f->shift[1] * 1000) };
    if (ev.burst.p50_milli || ev.burst.p90_milli)
        emit(w, ev);
}

static void emit_ledger_row(void *ctx, const struct ledger_row *row)
{
    struct writer *w = ctx;
    emit(w, (struct event){ .t_ms = w->c->now_ms, .kind = EVENT_LEDGER, .ledger = *row });
}

void core_snapshot(const struct core *c, core_emit_fn *fn, void *ctx)
{
    struct writer w = { .c = c, .fn = fn, .ctx = ctx };
    emit_policy(&w);
    emit_shares(&w);
    emit_pools(&w, begin_ms(c));
    emit_nodes(&w);
    emit_reservations(&w);
    emit_jobs(&w); /* with the times they came; all that follows is now */
    emit_pools(&w, c->now_ms);
    emit_promises(&w);
    emit_history(&w);
    emit_forecast(&w);
    emit_demand(&w);
    emit_past(&w);
    core_ledger(c, (struct ledger_span){ INT64_MIN, c->now_ms }, emit_ledger_row, &w);
    emit_removed(&w);
    arena_free(&w.arena);
}
