/* Our own journal as a trace, and the proof that replaying it decides the same. */
#include "simulate/journal_trace.h"

#include "base/map.h"
#include "core/core.h"
#include "journal/journal.h"
#include "sys/file.h"

#define JOURNAL_BYTES_MAX (1u << 30)

/* Walks the lines; `fn` gets each event, whose names live until the next one. */
typedef int (*event_fn)(void *self, const struct event *ev, struct err *e);

static int for_each_event(const char *file, struct str text, event_fn fn, void *self, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct str line;
    unsigned long number = 1;
    if (!str_next_line(&text, &line)) {
        err_set(e, ERR_INVALID, "the journal is empty");
        err_hint(e, "its first line is {\"journal\":\"nightshift\",\"version\":%d}",
                 JOURNAL_VERSION);
        return err_wrap(e, "%s:1", file);
    }
    if (journal_read_header(line, e) < 0)
        return err_wrap(e, "%s:1", file);
    while (str_next_line(&text, &line)) {
        struct event ev;
        number++;
        if (line.n == 0)
            continue;
        arena_reset(&a);
        if (journal_read(line, &a, &ev, e) < 0 || fn(self, &ev, e) < 0)
            return err_wrap(e, "%s:%lu", file, number);
    }
    return 0;
}

/* ---- events that do not make sense together ---- */

/* What the core says about a job's request begins with the name a person gives the field. */
static const struct {
    const char *begins, *field;
} request_fields[] = {
    { "replicas:", "replicas" },
    { "gpus", "gpus" },
    { "gpu_share:", "gpu_milli" },
    { "gpu_mem:", "gpu_mem_mib" },
    { "cpus:", "cpu_milli" },
    { "mem:", "mem_mib" },
    { "placement:", "layout" },
    { "user:", "user" },
    { "tenant:", "tenant" },
    { "priority:", "priority" },
    { "no node has a GPU", "models" },
    { "the job asks for", "tenant" },
    { "job id", "job" },
    { "begin:", "begin_ms" },
    { "after:", "after" },
    { "frozen:", "frozen" },
};

static const char *wrong_submit_field(const struct err *e)
{
    const char *number_end = strncmp(e->msg, "job ", 4) == 0 ? strstr(e->msg, ": ") : NULL;
    const char *msg = number_end ? number_end + 2 : e->msg;
    for (size_t i = 0; i < ARRAY_LEN(request_fields); i++)
        if (strncmp(msg, request_fields[i].begins, strlen(request_fields[i].begins)) == 0)
            return request_fields[i].field;
    return "replicas";
}

static const char *wrong_tenant_field(const struct event_tenant *t)
{
    if (t->name.n == 0 || t->name.n > NAME_MAX_BYTES)
        return "name";
    if (t->weight_milli == 0)
        return "weight_milli";
    return t->guarantee_milli > INT64_MAX / 4 ? "guarantee_milli" : "parent";
}

static const char *wrong_node_field(const struct event_node *n, const struct err *e)
{
    if (n->gpus > GPUS_PER_NODE_MAX)
        return "gpus";
    if (n->gpus && n->model.n == 0)
        return "model";
    if (e->code == ERR_CONFLICT || n->name.n == 0 || n->name.n > NAME_MAX_BYTES)
        return "name";
    return e->code == ERR_TOO_LARGE ? "model" : "links";
}

static const char *wrong_field(const struct event *ev, const struct err *e)
{
    switch (ev->kind) {
    case EVENT_TENANT: return wrong_tenant_field(&ev->tenant);
    case EVENT_NODE: return wrong_node_field(&ev->node, e);
    case EVENT_SUBMIT: return wrong_submit_field(e);
    case EVENT_JOB: return e->code == ERR_NOT_FOUND ? "job" : "what";
    case EVENT_PLACE:
    case EVENT_PROMISE: return e->code == ERR_NOT_FOUND ? "job" : "slots";
    case EVENT_TAKE: return "job";
    case EVENT_RUNS: return e->code == ERR_NOT_FOUND ? "tenant" : "size";
    case EVENT_WAIT: return e->code == ERR_NOT_FOUND ? "tenant" : "size";
    case EVENT_TIMES: return "class";
    case EVENT_USER: return e->code == ERR_NOT_FOUND ? "tenant" : "user";
    case EVENT_NODE_STATE:
    case EVENT_MODEL: return "name";
    case EVENT_PAST: return e->code == ERR_NOT_FOUND ? "tenant" : "cost_ms";
    case EVENT_DEMAND: return e->code == ERR_INVALID ? "models" : "gpus";
    case EVENT_POLICY:
    case EVENT_PASS:
    case EVENT_KIND_COUNT: break;
    }
    return "ev";
}

/* To a running core an event that does not fit is a conflict or an unknown name; in a file it is
 * bad input. */
static int tell(struct core *c, const struct event *ev, struct err *e)
{
    if (core_apply(c, ev, e) == 0)
        return 0;
    err_wrap(e, "field '%s'", wrong_field(ev, e));
    e->code = ERR_INVALID;
    return -1;
}

/* ---- verify ---- */

struct verify {
    struct core *core;
    struct arena arena;
    struct plan plan;
    size_t next; /* the decision of the plan that the journal has to show next */
    struct journal_check *out;
};

static int missing_decision(const struct verify *v, struct err *e)
{
    if (v->next == v->plan.n)
        return 0;
    return err_set(e, ERR_CONFLICT,
                   "the pass before also decides about job %llu now; the journal does not",
                   (unsigned long long)v->plan.action[v->next].job.v);
}

static int verify_decision(struct verify *v, const struct event *ev, struct err *e)
{
    static const char *const words[] = {
        [EVENT_PLACE] = "places", [EVENT_TAKE] = "takes back", [EVENT_PROMISE] = "promises room to"
    };
    const struct action *a = v->next < v->plan.n ? &v->plan.action[v->next++] : NULL;
    struct event now = a ? action_event(a, ev->t_ms) : (struct event){ 0 };
    unsigned long long job = ev->kind == EVENT_TAKE ? ev->take.id.v : ev->place.id.v;
    v->out->decisions++;
    if (a && a->job.v == job && now.kind == ev->kind &&
        ((ev->kind == EVENT_TAKE && now.take.by.v == ev->take.by.v) ||
         (a->n == ev->place.n && memcmp(a->slots, ev->place.slots, a->n * sizeof *a->slots) == 0)))
        return 0;
    return err_set(e, ERR_CONFLICT, "the journal %s job %llu; the core now decides otherwise",
                   words[ev->kind], job);
}

static int verify_event(void *self, const struct event *ev, struct err *e)
{
    struct verify *v = self;
    v->out->events++;
    if (ev->kind == EVENT_PLACE || ev->kind == EVENT_TAKE || ev->kind == EVENT_PROMISE)
        return verify_decision(v, ev, e);
    if (missing_decision(v, e) < 0)
        return -1;
    if (ev->kind != EVENT_PASS)
        return tell(v->core, ev, e);
    v->out->passes++;
    arena_reset(&v->arena);
    core_pass(v->core, ev->t_ms, &v->arena, &v->plan);
    v->next = 0;
    return 0;
}

int journal_verify_text(const char *file, struct str text, struct journal_check *out, struct err *e)
{
    struct journal_check check = { 0 };
    struct verify v = { .core = core_new(), .out = &check };
    int rc = for_each_event(file, text, verify_event, &v, e);
    if (rc == 0 && missing_decision(&v, e) < 0)
        rc = err_wrap(e, "%s: at its end", file);
    arena_free(&v.arena);
    core_free(v.core);
    if (rc == 0)
        *out = check;
    return rc;
}

int journal_verify(const char *file, struct journal_check *out, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(JOURNAL_BYTES_MAX);
    if (file_read(file, JOURNAL_BYTES_MAX, &text, e) < 0)
        return -1;
    return journal_verify_text(file, buf_str(&text), out, e);
}

/* ---- as a trace ---- */

struct reading {
    struct core *core; /* checks that the events make sense together */
    struct trace t;
    struct names tenants;
    uint32_t node_cap, tenant_cap, job_cap;
    struct map job_by_id;
    int64_t *since_ms; /* when the job last began to run; NEVER_RAN: not running */
    uint32_t since_cap;
    int64_t last_ms;
};

#define NEVER_RAN INT64_MIN

static void reading_free(struct reading *r)
{
    core_free(r->core);
    names_free(&r->tenants);
    map_free(&r->job_by_id);
    free(r->since_ms);
    free(r->t.node);
    free(r->t.tenant);
    free(r->t.job);
    arena_free(&r->t.arena);
}

static const char *keep(struct reading *r, struct str s)
{
    return arena_strndup(&r->t.arena, s.p, s.n);
}

static void read_node(struct reading *r, const struct event_node *n)
{
    vec_grow(r->t.node, r->t.nodes, r->node_cap);
    struct event_node *out = &r->t.node[r->t.nodes++];
    *out = *n;
    out->name = str_of(keep(r, n->name));
    out->model = str_of(keep(r, n->model));
    out->net_switch = str_of(keep(r, n->net_switch));
}

static void read_tenant(struct reading *r, const struct event_tenant *t)
{
    uint32_t i = names_intern(&r->tenants, t->name);
    if (i == r->t.tenants) {
        vec_grow(r->t.tenant, r->t.tenants, r->tenant_cap);
        r->t.tenants++;
    }
    r->t.tenant[i] = (struct trace_tenant){
        .name = keep(r, t->name),
        .parent = keep(r, t->parent),
        .weight_milli = t->weight_milli,
        .guarantee_milli = t->guarantee_milli,
        .limit = t->limit,
    };
}

static void read_submit(struct reading *r, const struct event_submit *s)
{
    map_set(&r->job_by_id, s->id.v, r->t.jobs);
    if (r->t.jobs == r->since_cap) {
        r->since_cap *= 2;
        r->since_ms = xrealloc(r->since_ms, r->since_cap, sizeof *r->since_ms);
    }
    r->since_ms[r->t.jobs] = NEVER_RAN;
    vec_grow(r->t.job, r->t.jobs, r->job_cap);
    r->t.job[r->t.jobs++] = (struct trace_job){
        .id = s->id.v,
        .submit_ms = r->last_ms,
        .tenant = names_find(&r->tenants, s->tenant),
        .user = keep(r, s->user),
        .models = keep(r, s->models),
        .gpus = s->request.gpus * s->request.replicas,
        .request = s->request,
        .priority = s->priority,
        .thaw_cost_ms = s->thaw_cost_ms ? (int64_t)s->thaw_cost_ms : -1,
        .restarts = s->restarts,
        .limit_ms = s->limit_ms,
    };
}

static bool ends_running(enum job_event what)
{
    return what == JOB_EV_EXITED_OK || what == JOB_EV_EXITED_BAD || what == JOB_EV_FROZE ||
           what == JOB_EV_RETURNED || what == JOB_EV_ENDED;
}

/* How long it ran, in all: frozen time does not count. */
static void read_job(struct reading *r, uint64_t id, enum job_event what, int64_t t_ms)
{
    uint64_t i;
    if (!map_get(&r->job_by_id, id, &i) || i >= r->t.jobs)
        return;
    struct job_view v;
    if (what == JOB_EV_STARTED) {
        r->since_ms[i] = t_ms;
        /* It came when nothing kept it from the queue any more: a trace knows no other way. */
        if (core_job(r->core, (job_id){ id }, &v))
            r->t.job[i].submit_ms = v.since_ms;
    } else if (ends_running(what) && r->since_ms[i] != NEVER_RAN) {
        struct trace_job *j = &r->t.job[i];
        j->duration_ms += t_ms - r->since_ms[i];
        if (what == JOB_EV_FROZE) /* a replay that freezes it will add that again */
            j->duration_ms -= MAX(j->thaw_cost_ms, INT64_C(0));
        r->since_ms[i] = NEVER_RAN;
    }
}

/* A trace's names are C strings. */
static int check_name(struct str s, const char *field, struct err *e)
{
    if (s.n == 0 || !memchr(s.p, 0, s.n))
        return 0;
    return err_set(e, ERR_INVALID, "field '%s': a name with a zero byte", field);
}

static int check_names(const struct event *ev, struct err *e)
{
    if (ev->kind == EVENT_TENANT)
        return check_name(ev->tenant.name, "name", e);
    if (ev->kind == EVENT_NODE)
        return check_name(ev->node.name, "name", e) < 0 ? -1
                                                        : check_name(ev->node.model, "model", e);
    if (ev->kind == EVENT_SUBMIT)
        return check_name(ev->submit.user, "user", e);
    return 0;
}

static int read_event(void *self, const struct event *ev, struct err *e)
{
    struct reading *r = self;
    if (check_names(ev, e) < 0 || tell(r->core, ev, e) < 0)
        return -1;
    r->last_ms = MAX(r->last_ms, ev->t_ms); /* a clock that was set back does not undo the past */
    if (ev->kind == EVENT_NODE)
        read_node(r, &ev->node);
    else if (ev->kind == EVENT_TENANT)
        read_tenant(r, &ev->tenant);
    else if (ev->kind == EVENT_SUBMIT)
        read_submit(r, &ev->submit);
    else if (ev->kind == EVENT_JOB)
        read_job(r, ev->job.id.v, ev->job.what, r->last_ms);
    return 0;
}

/* Jobs that never ran have no duration to replay; those that still run have had one so far. */
static void close_jobs(struct reading *r)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->t.jobs; i++) {
        if (r->since_ms[i] != NEVER_RAN)
            r->t.job[i].duration_ms += r->last_ms - r->since_ms[i];
        if (r->t.job[i].duration_ms > 0)
            r->t.job[kept++] = r->t.job[i];
    }
    r->t.skipped = r->t.jobs - kept;
    r->t.jobs = kept;
}

/* The trace's arrays move into its arena: one owner. */
static void *into_arena(struct arena *a, const void *p, size_t n, size_t size)
{
    void *out = arena_alloc(a, n + 1, size);
    if (n)
        memcpy(out, p, n * size);
    return out;
}

int trace_parse_journal(const char *file, struct str text, struct trace *out, struct err *e)
{
    AUTO(reading_free) struct reading r = { .core = core_new(), .last_ms = INT64_MIN };
    r.t.arena.limit = 2 * (size_t)JOURNAL_BYTES_MAX;
    r.since_cap = 64;
    r.since_ms = xcalloc(r.since_cap, sizeof *r.since_ms);
    if (for_each_event(file, text, read_event, &r, e) < 0)
        return -1;
    close_jobs(&r);
    struct trace t = { .name = keep(&r, str_of(file)),
                       .nodes = r.t.nodes,
                       .tenants = r.t.tenants,
                       .jobs = r.t.jobs,
                       .skipped = r.t.skipped };
    t.node = into_arena(&r.t.arena, r.t.node, r.t.nodes, sizeof *t.node);
    t.tenant = into_arena(&r.t.arena, r.t.tenant, r.t.tenants, sizeof *t.tenant);
    t.job = into_arena(&r.t.arena, r.t.job, r.t.jobs, sizeof *t.job);
    t.arena = r.t.arena;
    r.t.arena = (struct arena){ 0 };
    if (trace_finish(&t, e) < 0) {
        arena_free(&t.arena);
        return err_wrap(e, "%s", file);
    }
    *out = t;
    return 0;
}

int trace_read_journal(const char *file, struct trace *out, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(JOURNAL_BYTES_MAX);
    if (file_read(file, JOURNAL_BYTES_MAX, &text, e) < 0)
        return -1;
    return trace_parse_journal(file, buf_str(&text), out, e);
}
