/* Our own journal as a trace: the jobs with the time they ran, and everything else as steps. */
#include "base/map.h"
#include "simulate/journal_walk.h"
#include "sys/file.h"

#define NOT_NOW INT64_MIN

/* A job while the journal is read. */
struct watched {
    struct trace_seen *seen;
    struct trace_heard *last; /* of what was heard */
    int64_t told_ms;          /* when it was submitted */
    int64_t placed_ms;        /* where it is, or was last */
    int64_t since_ms;         /* when it last began to run; NOT_NOW: it does not */
    int64_t leaving_ms;       /* it was told to freeze; NOT_NOW: it was not */
    int64_t stop_ms;          /* it was told to stop */
    uint32_t freeze;          /* the step in which a person froze it; NONE */
    bool started, frozen, thawed, over;
};

struct reading {
    struct core *core; /* checks that the events make sense together */
    struct trace t;
    struct names tenants;
    uint32_t node_cap, tenant_cap, job_cap, watched_cap, step_cap, pass_cap;
    struct map job_by_id;
    struct watched *watched; /* one a job */
    struct journal_span span;
    uint64_t order;
    uint64_t skip; /* so many events only make the state anew that there was */
    int64_t last_ms;
    bool deciding; /* a pass came last, and what it decides */
    struct err e;
    bool failed; /* while it begins anew */
};

static void lists_free(struct reading *r)
{
    names_free(&r->tenants);
    map_free(&r->job_by_id);
    free(r->watched);
    free(r->t.node);
    free(r->t.tenant);
    free(r->t.job);
    free(r->t.step);
    free(r->t.pass);
    arena_free(&r->t.arena);
}

static void reading_free(struct reading *r)
{
    core_free(r->core);
    lists_free(r);
}

static const char *keep(struct reading *r, struct str s)
{
    return arena_strndup(&r->t.arena, s.p, s.n);
}

static struct trace_mark mark(const struct reading *r)
{
    return (struct trace_mark){ r->last_ms, r->order };
}

/* ---- steps ---- */

static uint32_t add_step(struct reading *r, enum trace_step_kind kind, const struct event *ev)
{
    vec_grow(r->t.step, r->t.steps, r->step_cap);
    struct trace_step *s = &r->t.step[r->t.steps];
    *s = (struct trace_step){ .kind = kind, .order = r->order, .number = NONE, .ev = *ev };
    s->ev.t_ms = r->last_ms;
    event_keep(&r->t.arena, &s->ev);
    return r->t.steps++;
}

static void read_node(struct reading *r, const struct event *ev)
{
    uint32_t at = add_step(r, STEP_EVENT, ev);
    r->t.step[at].number = r->t.nodes;
    vec_grow(r->t.node, r->t.nodes, r->node_cap);
    r->t.node[r->t.nodes++] = r->t.step[at].ev.node;
}

/* One that moves below a tenant that came later stays where it was, in figures that need parents before
 * their children; the steps have it where it is. */
static void read_tenant(struct reading *r, const struct event *ev)
{
    const struct event_tenant *t = &ev->tenant;
    add_step(r, STEP_EVENT, ev);
    if (t->removed)
        return;
    uint32_t i = names_intern(&r->tenants, t->name), up = names_find(&r->tenants, t->parent);
    bool is_new = i == r->t.tenants;
    if (is_new) {
        vec_grow(r->t.tenant, r->t.tenants, r->tenant_cap);
        r->t.tenants++;
    }
    r->t.tenant[i] = (struct trace_tenant){
        .name = keep(r, t->name),
        .parent = is_new || t->parent.n == 0 || up < i ? keep(r, t->parent) : r->t.tenant[i].parent,
        .weight_milli = t->weight_milli,
        .guarantee_milli = t->guarantee_milli,
        .limit = t->limit,
    };
}

/* ---- jobs ---- */

static void read_submit(struct reading *r, const struct event_submit *s)
{
    map_set(&r->job_by_id, s->id.v, r->t.jobs);
    vec_grow(r->watched, r->t.jobs, r->watched_cap);
    struct trace_seen *seen = arena_array(&r->t.arena, struct trace_seen, 1);
    struct event kept = { .kind = EVENT_SUBMIT, .submit = *s };
    event_keep(&r->t.arena, &kept);
    *seen = (struct trace_seen){ .said = kept.submit, .order = r->order, .end = JOB_EV_EXITED_OK };
    r->watched[r->t.jobs] = (struct watched){ .seen = seen,
                                              .told_ms = r->last_ms,
                                              .placed_ms = NOT_NOW,
                                              .since_ms = NOT_NOW,
                                              .leaving_ms = NOT_NOW,
                                              .freeze = NONE };
    vec_grow(r->t.job, r->t.jobs, r->job_cap);
    r->t.job[r->t.jobs++] = (struct trace_job){
        .id = s->id.v,
        .submit_ms = r->last_ms,
        .tenant = names_find(&r->tenants, s->tenant),
        .user = seen->said.user.p,
        .models = seen->said.models.p,
        .gpus = s->request.gpus * s->request.replicas,
        .request = s->request,
        .priority = s->priority,
        .thaw_cost_ms = s->thaw_cost_ms ? (int64_t)s->thaw_cost_ms : -1,
        .restarts = s->restarts,
        .limit_ms = s->limit_ms,
        .family = s->family,
        .seen = seen,
    };
}

static struct watched *watched_of(struct reading *r, uint64_t id)
{
    uint64_t i;
    return map_get(&r->job_by_id, id, &i) && i < r->t.jobs ? &r->watched[i] : NULL;
}

/* took_ms: since it was asked for. */
static struct trace_heard *hear(struct reading *r, struct watched *w, enum job_event what,
                                int64_t took_ms)
{
    struct trace_heard *h = arena_array(&r->t.arena, struct trace_heard, 1);
    *h = (struct trace_heard){ .at = mark(r), .what = what, .took_ms = took_ms };
    if (w->last)
        w->last->next = h;
    else
        w->seen->heard = h;
    w->last = h;
    return h;
}

static void read_started(struct reading *r, struct watched *w, struct trace_job *j)
{
    struct job_view v;
    w->leaving_ms = NOT_NOW;
    if (w->since_ms != NOT_NOW) /* it stood still, or could not be frozen: it holds its GPUs */
        return;
    w->since_ms = r->last_ms;
    hear(r, w, JOB_EV_STARTED, w->placed_ms != NOT_NOW ? r->last_ms - w->placed_ms : 0);
    w->started = true;
    w->thawed = w->frozen;
    w->frozen = false;
    /* It came when nothing kept it from the queue any more: a trace knows no other way. */
    if (core_job(r->core, (job_id){ j->id }, &v))
        j->submit_ms = v.since_ms;
}

/* How much of its work it did since it last began, up to then.  A replay that freezes it adds what
 * that costs again; where it cost less than was said, a little is left. */
static int64_t did_ms(const struct watched *w, const struct trace_job *j, int64_t until_ms)
{
    int64_t did = until_ms - w->since_ms;
    return w->thawed && j->thaw_cost_ms > 0 ? MAX(did - j->thaw_cost_ms, INT64_C(1)) : did;
}

/* Work ends when it is told to freeze. */
static void read_froze(struct reading *r, struct watched *w, struct trace_job *j)
{
    if (w->since_ms == NOT_NOW)
        return;
    int64_t told_ms = w->leaving_ms != NOT_NOW ? w->leaving_ms : r->last_ms;
    j->duration_ms = j->restarts ? 0 : j->duration_ms + did_ms(w, j, told_ms);
    w->frozen = true;
    hear(r, w, JOB_EV_FROZE, r->last_ms - told_ms);
    w->since_ms = w->leaving_ms = NOT_NOW;
    w->freeze = NONE;
}

/* What never got as far as running held its GPUs since it was placed. */
static void read_end(struct reading *r, struct watched *w, struct trace_job *j, enum job_event what)
{
    int64_t from_ms = w->since_ms != NOT_NOW ? w->since_ms : w->placed_ms;
    if (w->since_ms != NOT_NOW)
        j->duration_ms += did_ms(w, j, r->last_ms);
    else if (from_ms != NOT_NOW)
        j->duration_ms += r->last_ms - from_ms;
    if (from_ms != NOT_NOW && j->duration_ms <= 0) { /* over before anybody heard that it ran */
        if (w->last && w->last->what == JOB_EV_STARTED && w->last->took_ms > 0)
            w->last->took_ms--;
        j->duration_ms = 1;
    }
    w->seen->end = what;
    hear(r, w, what, 0);
    w->seen->stop_ms = w->seen->stops ? r->last_ms - w->stop_ms : 0;
    w->since_ms = NOT_NOW;
    w->over = true;
}

static void read_stop(struct reading *r, struct watched *w, const struct event *ev,
                      enum job_state was)
{
    if (job_state_holds(was)) {
        w->seen->stops = true;
        w->seen->stop = ev->job.what;
        hear(r, w, ev->job.what, 0);
        w->stop_ms = r->last_ms;
        return;
    }
    w->over = true;
    w->seen->endless = w->started;
    add_step(r, STEP_EVENT, ev);
}

/* The work is lost.  A machine that went away loses all it had, also in a changed world; else it is
 * about this job. */
static void read_returned(struct reading *r, struct watched *w, struct trace_job *j,
                          const struct event *ev, const char *lost)
{
    struct event of = { .kind = EVENT_NODE_STATE };
    j->duration_ms = 0;
    w->frozen = false;
    w->since_ms = w->placed_ms = w->leaving_ms = NOT_NOW;
    if (!lost) {
        add_step(r, STEP_EVENT, ev);
        return;
    }
    of.node_state.name = str_of(lost);
    const struct trace_step *last = &r->t.step[r->t.steps - 1];
    if (last->kind != STEP_LOST || last->ev.t_ms != r->last_ms ||
        !str_eq(last->ev.node_state.name, of.node_state.name))
        add_step(r, STEP_LOST, &of);
}

static void read_job(struct reading *r, const struct event *ev, enum job_state was,
                     const char *lost)
{
    struct watched *w = watched_of(r, ev->job.id.v);
    if (!w)
        return;
    struct trace_job *j = &r->t.job[w - r->watched];
    switch (ev->job.what) {
    case JOB_EV_STARTED: read_started(r, w, j); break;
    case JOB_EV_FREEZE:
        w->leaving_ms = r->last_ms;
        w->freeze = add_step(r, STEP_EVENT, ev);
        break;
    case JOB_EV_PAUSED: /* it holds its GPUs: as if it went on */
        if (w->freeze != NONE)
            r->t.step[w->freeze].kind = STEP_NONE;
        w->freeze = NONE;
        w->leaving_ms = NOT_NOW;
        break;
    case JOB_EV_FROZE: read_froze(r, w, j); break;
    case JOB_EV_RETURNED: read_returned(r, w, j, ev, lost); break;
    case JOB_EV_THAW:
        if (was == JOB_FROZEN)
            add_step(r, STEP_EVENT, ev);
        break;
    case JOB_EV_CANCEL:
    case JOB_EV_STOP: read_stop(r, w, ev, was); break;
    case JOB_EV_EXITED_OK:
    case JOB_EV_EXITED_BAD:
    case JOB_EV_ENDED: read_end(r, w, j, ev->job.what); break;
    case JOB_EV_HOLD:
    case JOB_EV_RELEASE: add_step(r, STEP_EVENT, ev); break;
    case JOB_EV_PLACED:
    case JOB_EV_TAKE:
    case JOB_EVENT_COUNT: break;
    }
}

static void read_decision(struct reading *r, const struct event *ev)
{
    struct watched *w = watched_of(r, ev->kind == EVENT_TAKE ? ev->take.id.v : ev->place.id.v);
    if (!r->deciding) /* from before the journal begins: given, not decided again */
        add_step(r, STEP_EVENT, ev);
    if (w && ev->kind == EVENT_PLACE)
        w->placed_ms = r->last_ms;
    else if (w && ev->kind == EVENT_TAKE)
        w->leaving_ms = r->last_ms;
}

static void read_pass(struct reading *r)
{
    r->deciding = true;
    vec_grow(r->t.pass, r->t.passes, r->pass_cap);
    r->t.pass[r->t.passes++] = mark(r);
}

/* ---- events ---- */

/* How the job of an event was before it, and which of its machines is away. */
static enum job_state state_before(struct reading *r, const struct event *ev, const char **out_lost)
{
    struct job_view v;
    struct node_view n;
    uint64_t id = ev->kind == EVENT_JOB   ? ev->job.id.v
                : ev->kind == EVENT_PLACE ? ev->place.id.v
                                          : 0;
    *out_lost = NULL;
    if (!id || !core_job(r->core, (job_id){ id }, &v))
        return JOB_QUEUED;
    for (uint32_t k = 0; k < v.n && ev->kind == EVENT_JOB; k++)
        if (core_node(r->core, (node_id){ v.slots[k].node }, &n) && n.state == NODE_DOWN)
            *out_lost = n.name;
    return v.state;
}

static int note_event(struct reading *r, const struct event *ev, struct err *e)
{
    const char *lost;
    enum job_state was = state_before(r, ev, &lost);
    if (event_check_names(ev, e) < 0 || journal_tell(r->core, ev, e) < 0)
        return -1;
    r->last_ms = MAX(r->last_ms, ev->t_ms); /* a clock that was set back does not undo the past */
    r->order++;
    bool decision = ev->kind == EVENT_PLACE || ev->kind == EVENT_TAKE || ev->kind == EVENT_PROMISE;
    if (decision) {
        read_decision(r, ev);
        return 0;
    }
    r->deciding = false;
    if (ev->kind == EVENT_PASS)
        read_pass(r);
    else if (ev->kind == EVENT_NODE)
        read_node(r, ev);
    else if (ev->kind == EVENT_TENANT)
        read_tenant(r, ev);
    else if (ev->kind == EVENT_SUBMIT)
        read_submit(r, &ev->submit);
    else if (ev->kind == EVENT_JOB)
        read_job(r, ev, was, lost);
    else
        add_step(r, STEP_EVENT, ev);
    return 0;
}

static void note_anew(void *ctx, const struct event *ev)
{
    struct reading *r = ctx;
    if (!r->failed && note_event(r, ev, &r->e) < 0)
        r->failed = true;
}

/* As if the journal had begun here: with the events that make this state. */
static int begin_here(struct reading *r, struct err *e)
{
    struct core *old = r->core;
    lists_free(r);
    *r = (struct reading){ .core = core_new(),
                           .span = { .to_ms = r->span.to_ms },
                           .last_ms = INT64_MIN,
                           .t = { .from_ms = r->span.from_ms,
                                  .arena.limit = 2 * (size_t)JOURNAL_BYTES_MAX } };
    core_snapshot(old, note_anew, r);
    core_free(old);
    if (r->failed)
        *e = r->e;
    return r->failed ? -1 : 0;
}

static void count_event(void *ctx, const struct event *ev)
{
    (void)ev;
    ++*(uint64_t *)ctx;
}

/* The next segment begins with the events that make the state anew, which is the state here. */
static void begin_segment(struct reading *r)
{
    const struct event none = { .kind = EVENT_PASS };
    r->skip = 0;
    core_snapshot(r->core, count_event, &r->skip);
    core_free(r->core);
    r->core = core_new();
    r->order++;
    add_step(r, STEP_CUT, &none);
}

static int read_event(void *self, const struct event *ev, struct err *e)
{
    struct reading *r = self;
    if (!ev) {
        begin_segment(r);
        return 0;
    }
    if (r->skip > 0) {
        r->skip--;
        return journal_tell(r->core, ev, e);
    }
    if (r->span.to_ms && ev->t_ms > r->span.to_ms)
        return 0;
    if (r->span.from_ms && ev->t_ms >= r->span.from_ms && begin_here(r, e) < 0)
        return -1;
    return note_event(r, ev, e);
}

/* ---- the end ---- */

/* What waits when the journal ends goes then. */
static void end_last(struct reading *r, const struct watched *w)
{
    struct event ev = { .kind = EVENT_JOB, .job = { w->seen->said.id, JOB_EV_CANCEL } };
    r->order++;
    add_step(r, STEP_EVENT, &ev);
}

static void end_ghost(struct reading *r, const struct watched *w)
{
    struct event ev = { .kind = EVENT_SUBMIT, .submit = w->seen->said };
    uint32_t at = add_step(r, STEP_EVENT, &ev);
    r->t.step[at].ev.t_ms = w->told_ms;
    r->t.step[at].order = w->seen->order;
    if (!w->over)
        end_last(r, w);
}

/* Jobs that never ran have no duration to replay, and are steps; those that still run have had one
 * so far. */
static void close_jobs(struct reading *r)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->t.jobs; i++) {
        struct trace_job *j = &r->t.job[i];
        struct watched *w = &r->watched[i];
        if (w->since_ms != NOT_NOW) {
            j->duration_ms += did_ms(w, j, r->last_ms);
            r->order++; /* behind the last line */
            hear(r, w, JOB_EV_EXITED_OK, 0);
        }
        if (j->duration_ms <= 0) {
            end_ghost(r, w);
            continue;
        }
        if (!w->over && w->since_ms == NOT_NOW) {
            w->seen->endless = true;
            end_last(r, w);
        }
        w->seen->ahead_ms = j->submit_ms - w->told_ms;
        w->seen->stops = w->seen->stops && w->over;
        r->t.job[kept++] = *j;
    }
    r->t.skipped = r->t.jobs - kept;
    r->t.jobs = kept;
}

/* A journal may rely on the defaults; a replay may want to change them. */
static void need_policy(struct reading *r)
{
    struct event ev = { .kind = EVENT_POLICY, .policy = policy_default() };
    for (uint32_t i = 0; i < r->t.steps; i++)
        if (r->t.step[i].kind == STEP_EVENT && r->t.step[i].ev.kind == EVENT_POLICY)
            return;
    uint32_t at = add_step(r, STEP_EVENT, &ev);
    r->t.step[at].order = 0;
    r->t.step[at].ev.t_ms = r->t.step[0].ev.t_ms;
}

int trace_parse_journal(const char *file, struct str text, const struct journal_span *span,
                        struct trace *out, struct err *e)
{
    AUTO(reading_free) struct reading r = { .core = core_new(), .last_ms = INT64_MIN };
    r.t.arena.limit = 2 * (size_t)JOURNAL_BYTES_MAX;
    if (span)
        r.span = *span;
    if (journal_walk(file, text, read_event, &r, e) < 0)
        return -1;
    if (r.span.from_ms) {
        err_set(e, ERR_INVALID, "%s: nothing happened in this span of time", file);
        return err_hint(e, "its last line is from before; choose an earlier time");
    }
    close_jobs(&r);
    need_policy(&r);
    struct trace t = r.t;
    struct arena *a = &r.t.arena;
    t.name = keep(&r, str_of(file));
    /* The arrays move into the arena: one owner. */
#define INTO_ARENA(array, n)                                                                       \
    array = (void *)(uintptr_t)keep_bytes(&r.t.arena, array, n, sizeof *array)
    INTO_ARENA(t.node, t.nodes);
    INTO_ARENA(t.tenant, t.tenants);
    INTO_ARENA(t.job, t.jobs);
    INTO_ARENA(t.step, t.steps);
    INTO_ARENA(t.pass, t.passes);
#undef INTO_ARENA
    t.arena = *a;
    *a = (struct arena){ 0 };
    if (trace_finish(&t, e) < 0) {
        arena_free(&t.arena);
        return err_wrap(e, "%s", file);
    }
    *out = t;
    return 0;
}

int trace_read_journal(const char *file, const struct journal_span *span, struct trace *out,
                       struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(JOURNAL_BYTES_MAX);
    if (file_read(file, JOURNAL_BYTES_MAX, &text, e) < 0)
        return -1;
    return trace_parse_journal(file, buf_str(&text), span, out, e);
}
