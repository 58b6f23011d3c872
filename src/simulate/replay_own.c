/* A replay under the product's own core: the events it would get, the plans it makes. */
#include <stdio.h>

#include "simulate/own.h"
#include "sys/progress.h"

/* A daemon gathers what happens while a commit is on its way to the disk: a pass of the journal so
 * soon after something is the pass for it. */
#define PASS_NEAR_MS 50
#define IDLE_MAX_MS (30 * 86400 * INT64_C(1000))

static void own_free(struct own *o)
{
    core_free(o->core);
    arena_free(&o->arena);
    heap_free(&o->due);
    free(o->pos);
    free(o->life);
    free(o->lent);
    free(o->of_number);
    free(o->node_at);
    told_free(&o->told);
}

static bool mark_before(const struct trace_mark *x, const struct trace_mark *y)
{
    return x->t_ms != y->t_ms ? x->t_ms < y->t_ms : x->order < y->order;
}

static bool due_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct own *o = ctx;
    const struct trace_mark *x = &o->life[a].due, *y = &o->life[b].due;
    return mark_before(x, y) || (!mark_before(y, x) && a < b);
}

int own_tell(struct own *o, const struct event *ev, struct err *e)
{
    if (core_apply(o->core, ev, e) < 0)
        return -1;
    if (o->journal)
        journal_write(ev, o->journal);
    return 0;
}

int own_job_event(struct own *o, uint32_t i, enum job_event what, struct err *e)
{
    struct event ev = { .t_ms = o->now_ms, .kind = EVENT_JOB };
    ev.job = (struct event_job){ { o->life[i].number }, what };
    return own_tell(o, &ev, e);
}

static const struct trace_seen *seen_of(const struct own *o, uint32_t i)
{
    const struct trace_job *j = own_job(o, i);
    return j ? j->seen : NULL;
}

/* What comes when it came in the journal also has its place among that millisecond's lines. */
static uint64_t known_order(const struct trace_seen *s, enum phase phase, int64_t due_ms)
{
    if (!s)
        return 0;
    enum job_event what = phase == BEGINS           ? JOB_EV_STARTED
                        : phase == FREEZES          ? JOB_EV_FROZE
                        : phase == RUNS && s->stops ? s->stop
                                                    : s->end;
    for (const struct trace_heard *h = s->heard; h; h = h->next)
        if (h->what == what && h->at.t_ms == due_ms)
            return h->at.order;
    return 0;
}

/* How long the engine took for the nth time; for more times than it is known for, as for the last. */
static int64_t took_ms(const struct trace_seen *s, enum job_event what, uint32_t nth)
{
    int64_t took = 0;
    for (const struct trace_heard *h = s ? s->heard : NULL; h; h = h->next) {
        if (h->what != what)
            continue;
        took = h->took_ms;
        if (nth-- == 0)
            break;
    }
    return took;
}

void own_set_due(struct own *o, uint32_t i, enum phase phase, int64_t due_ms)
{
    heap_remove(&o->due, i);
    o->life[i].phase = phase;
    o->life[i].due = (struct trace_mark){ due_ms, known_order(seen_of(o, i), phase, due_ms) };
    if (due_ms != NEVER)
        heap_push(&o->due, i);
}

static double *lent_of(const struct own *o, uint32_t i)
{
    return o->lent + (size_t)i * o->p->t->windows;
}

static void note_lent(struct own *o, uint32_t i, const struct stay *stay)
{
    const struct trace *t = o->p->t;
    for (uint32_t w = 0; w < t->windows; w++)
        lent_of(o, i)[w] = 0;
    for (uint32_t k = 0; k < stay->n && t->windows; k++) {
        uint32_t w = trace_window_of(t, o->p->node[stay->slots[k].node]);
        if (w != NONE)
            lent_of(o, i)[w] += slots_gpus(&stay->slots[k], 1);
    }
}

/* It gives back what it held since it last began. */
void own_release(struct own *o, uint32_t i)
{
    if (!own_job(o, i))
        return;
    outcome_hold(o->p->t, o->out, o->p->job[i], o->life[i].since_ms, o->now_ms);
    for (uint32_t w = 0; w < o->p->t->windows; w++) {
        const struct lease l = { w, lent_of(o, i)[w], o->life[i].since_ms, o->now_ms };
        if (l.gpus > 0)
            outcome_lend(o->p->t, o->out, &l);
    }
}

/* ---- the life of a job that was placed ---- */

static int started(struct own *o, uint32_t i, struct err *e)
{
    struct life *l = &o->life[i];
    const struct trace_seen *s = seen_of(o, i);
    bool endless = !own_job(o, i) || (s && s->endless); /* nobody knows for how long it would run */
    l->end_ms = endless ? NEVER : o->now_ms + l->left_ms;
    own_set_due(o, i, RUNS, endless ? NEVER : l->end_ms - (s ? s->stop_ms : 0));
    return own_job_event(o, i, JOB_EV_STARTED, e);
}

int own_begin(struct own *o, uint32_t i, const struct stay *stay, struct err *e)
{
    struct life *l = &o->life[i];
    const struct trace_seen *s = seen_of(o, i);
    struct job_view v;
    if (own_job(o, i) && o->out->start_ms[o->p->job[i]] == NEVER) {
        uint32_t job = o->p->job[i];
        o->out->start_ms[job] = o->now_ms;
        o->out->gpus[job] = slots_gpus(stay->slots, stay->n);
        l->left_ms = o->p->t->job[job].duration_ms;
        bool known = core_job(o->core, (job_id){ l->number }, &v);
        if (s && known)
            o->out->came_ms[job] = v.since_ms;
        if (known && v.is_stated) {
            o->out->stated_ms[job] = v.stated_ms;
            o->out->eta[job] = v.eta;
        }
    }
    note_lent(o, i, stay);
    l->since_ms = o->now_ms;
    int64_t takes_ms = took_ms(s, JOB_EV_STARTED, l->starts++);
    if (takes_ms == 0)
        return started(o, i, e);
    own_set_due(o, i, BEGINS, o->now_ms + takes_ms);
    return 0;
}

static int froze(struct own *o, uint32_t i, struct err *e)
{
    if (own_job(o, i))
        o->out->freezes[o->p->job[i]]++;
    own_release(o, i);
    own_set_due(o, i, WAITS, NEVER);
    return own_job_event(o, i, JOB_EV_FROZE, e);
}

/* What freezing costs is added to what is left. */
int own_freeze(struct own *o, uint32_t i, struct err *e)
{
    struct life *l = &o->life[i];
    const struct trace_job *j = own_job(o, i);
    if (j && l->end_ms != NEVER)
        l->left_ms = (j->restarts ? j->duration_ms : l->end_ms - o->now_ms) +
                     replay_freeze_ms(o->options, j);
    int64_t takes_ms = took_ms(seen_of(o, i), JOB_EV_FROZE, l->freezes++);
    if (takes_ms == 0)
        return froze(o, i, e);
    own_set_due(o, i, FREEZES, o->now_ms + takes_ms);
    return 0;
}

static int ended(struct own *o, uint32_t i, struct err *e)
{
    const struct trace_seen *s = seen_of(o, i);
    own_set_due(o, i, OVER, NEVER);
    own_release(o, i);
    o->out->end_ms[o->p->job[i]] = o->now_ms;
    progress_set(o->meter->bar, ++o->meter->done);
    return own_job_event(o, i, s ? s->end : JOB_EV_EXITED_OK, e);
}

static int ran(struct own *o, uint32_t i, struct err *e)
{
    const struct trace_seen *s = seen_of(o, i);
    if (!s || !s->stops)
        return ended(o, i, e);
    if (own_job_event(o, i, s->stop, e) < 0)
        return -1;
    if (s->stop_ms == 0)
        return ended(o, i, e);
    own_set_due(o, i, STOPS, o->now_ms + s->stop_ms);
    return 0;
}

static int go_on(struct own *o, uint32_t i, struct err *e)
{
    static int (*const next[])(struct own *, uint32_t, struct err *) = {
        [BEGINS] = started, [RUNS] = ran, [STOPS] = ended, [FREEZES] = froze
    };
    return next[o->life[i].phase](o, i, e);
}

/* ---- passes ---- */

static const struct trace_mark never = { NEVER, 0 };

/* The journal's next pass. */
static const struct trace_mark *known_pass(const struct own *o)
{
    const struct trace *t = o->p->t;
    return o->next_pass < t->passes ? &t->pass[o->next_pass] : &never;
}

static void write_plan(struct own *o, const struct plan *plan)
{
    journal_write(&(struct event){ .t_ms = o->now_ms, .kind = EVENT_PASS }, o->journal);
    for (size_t k = 0; k < plan->n; k++) {
        struct event ev = action_event(&plan->action[k], o->now_ms);
        journal_write(&ev, o->journal);
    }
}

static int act(struct own *o, const struct action *a, struct err *e)
{
    uint32_t i = o->of_number[a->job.v];
    const struct stay stay = { a->slots, a->n };
    if (a->kind == ACT_START || a->kind == ACT_THAW)
        return own_begin(o, i, &stay, e);
    return a->kind == ACT_TAKE ? own_freeze(o, i, e) : 0;
}

/* Passes until nothing more is frozen at once: what that made free is given out at the same
 * instant. */
static int pass(struct own *o, struct err *e)
{
    o->wanted = false;
    for (bool again = true; again;) {
        struct plan plan;
        again = false;
        arena_reset(&o->arena);
        core_pass(o->core, o->now_ms, &o->arena, &plan);
        if (o->journal)
            write_plan(o, &plan);
        for (size_t k = 0; k < plan.n; k++) {
            const struct action *a = &plan.action[k];
            if (act(o, a, e) < 0)
                return -1;
            again =
                again || (a->kind == ACT_TAKE && o->life[o->of_number[a->job.v]].phase == WAITS);
        }
        again = again && known_pass(o)->t_ms != o->now_ms; /* that one is for it */
    }
    return 0;
}

/* ---- what happens, in order ---- */

static const struct trace_mark *next_telling(const struct own *o)
{
    return o->told.next < o->told.n ? &o->told.at[o->told.next].at : &never;
}

static const struct trace_mark *next_due(const struct own *o)
{
    return o->due.n ? &o->life[heap_top(&o->due)].due : &never;
}

/* One thing that happens now; 0: nothing does any more. */
static int happen(struct own *o, struct err *e)
{
    const struct trace_mark *due = next_due(o), *telling = next_telling(o), *known = known_pass(o);
    const struct trace_mark *first = mark_before(telling, due) ? telling : due;
    first = mark_before(known, first) ? known : first;
    if (first->t_ms > o->now_ms)
        return 0;
    if (first == known) {
        o->next_pass++;
        return pass(o, e) < 0 ? -1 : 1;
    }
    const struct telling *at = &o->told.at[o->told.next];
    bool nothing = first == telling && at->is_step && o->told.step[at->index].kind == STEP_CUT;
    o->wanted = o->wanted || !nothing;
    int rc = first == due ? go_on(o, heap_pop(&o->due), e) : own_telling(o, at, e);
    o->told.next += first == telling;
    return rc < 0 ? -1 : 1;
}

/* A journal begins with what makes its state, and decides with its first pass. */
static bool may_pass(const struct own *o)
{
    const struct trace *t = o->p->t;
    return t->steps == 0 || o->next_pass > 0 || (t->passes == 0 && o->told.next == o->told.n);
}

static int step(struct own *o, struct err *e)
{
    int rc;
    while ((rc = happen(o, e)) > 0)
        ;
    bool soon = known_pass(o)->t_ms != NEVER && known_pass(o)->t_ms - o->now_ms <= PASS_NEAR_MS;
    return rc < 0 ? -1 : o->wanted && !soon && may_pass(o) ? pass(o, e) : 0;
}

/* When the core asks for a pass itself.  NEVER: it does not, or has asked for nothing else for so
 * long that what waits will never start. */
static int64_t next_wish_ms(struct own *o, bool idle)
{
    int64_t wake_ms = core_wake_ms(o->core);
    bool known = o->p->t->passes && !o->p->t->changed; /* the journal has those passes */
    if (known || wake_ms == INT64_MAX || (idle && core_totals(o->core).waiting == 0))
        return NEVER;
    if (!idle)
        o->idle_ms = wake_ms;
    return idle && wake_ms - o->idle_ms > IDLE_MAX_MS ? NEVER : wake_ms;
}

static int64_t next_ms(struct own *o)
{
    int64_t at_ms = MIN(next_due(o)->t_ms, next_telling(o)->t_ms);
    int64_t wish_ms = next_wish_ms(o, at_ms == NEVER);
    if (o->wanted || at_ms != NEVER)
        at_ms = MIN(at_ms, known_pass(o)->t_ms);
    bool asked = wish_ms <= o->now_ms; /* and the journal has a pass for it in a moment */
    if (asked || wish_ms > at_ms || wish_ms == NEVER)
        return at_ms;
    o->wanted = true;
    return wish_ms;
}

int replay_own(const struct part *p, const struct replay_options *opt, struct outcome *out,
               struct replay_meter *m, struct err *e)
{
    AUTO(own_free)
    struct own o = {
        .core = core_new(), .p = p, .out = out, .options = opt, .journal = opt->journal, .meter = m
    };
    told_begin(p, &o.told);
    uint32_t lives = p->jobs + o.told.ghosts;
    o.pos = heap_positions(lives);
    o.life = xcalloc((size_t)lives + 1, sizeof *o.life);
    o.lent = xcalloc((size_t)lives * p->t->windows + 1, sizeof *o.lent);
    o.of_number = xcalloc((size_t)lives + 1, sizeof *o.of_number);
    o.due = (struct heap){ .pos = o.pos, .before = due_before, .ctx = &o };
    if (o.journal)
        journal_write_header(o.journal);
    while ((o.now_ms = next_ms(&o)) != NEVER)
        if (step(&o, e) < 0)
            return -1;
    return 0;
}
