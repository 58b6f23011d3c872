/* Our own journal, line by line, and the proof that replaying it decides the same. */
#include "simulate/journal_walk.h"

#include "journal/journal.h"
#include "sys/file.h"

/* A daemon's history is several segments, one after the other, each with its first line. */
static bool begins_anew(struct str line)
{
    static const char begin[] = "{\"journal\"";
    return line.n > strlen(begin) && memcmp(line.p, begin, strlen(begin)) == 0;
}

static int take_line(struct str line, struct arena *a, journal_event_fn fn, void *self,
                     struct err *e)
{
    struct event ev;
    if (begins_anew(line))
        return journal_read_header(line, e) < 0 ? -1 : fn(self, NULL, e);
    return journal_read(line, a, &ev, e) < 0 ? -1 : fn(self, &ev, e);
}

int journal_walk(const char *file, struct str text, journal_event_fn fn, void *self, struct err *e)
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
        number++;
        if (line.n == 0)
            continue;
        arena_reset(&a);
        if (take_line(line, &a, fn, self, e) < 0)
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

static const char *wrong_tenant_field(const struct event_tenant *t, const struct err *e)
{
    static const struct {
        const char *says, *field;
    } rules[] = { { "': model_limit:", "model_limit" },
                  { "': pools:", "pools" },
                  { "': until_ms:", "until_ms" },
                  { "': budget_gpu_milli_ms:", "budget" },
                  { "': budget_until_ms:", "budget_until_ms" } };
    if (t->name.n == 0 || t->name.n > NAME_MAX_BYTES)
        return "name";
    if (t->removed)
        return "removed";
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (strstr(e->msg, rules[i].says))
            return rules[i].field;
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
    if (e->code == ERR_NOT_FOUND)
        return "pool";
    if (e->code == ERR_CONFLICT || n->name.n == 0 || n->name.n > NAME_MAX_BYTES)
        return "name";
    return e->code == ERR_TOO_LARGE ? "model" : "links";
}

static const char *wrong_field(const struct event *ev, const struct err *e)
{
    switch (ev->kind) {
    case EVENT_TENANT: return wrong_tenant_field(&ev->tenant, e);
    case EVENT_NODE:
    case EVENT_NODE_CHANGE: return wrong_node_field(&ev->node, e);
    case EVENT_SUBMIT: return wrong_submit_field(e);
    case EVENT_JOB: return e->code == ERR_NOT_FOUND ? "job" : "what";
    case EVENT_PLACE:
    case EVENT_PROMISE: return e->code == ERR_NOT_FOUND ? "job" : "slots";
    case EVENT_TAKE: return "job";
    case EVENT_RUNS: return e->code == ERR_NOT_FOUND ? "tenant" : "size";
    case EVENT_WAIT: return e->code == ERR_NOT_FOUND ? "tenant" : "size";
    case EVENT_TIMES: return "class";
    case EVENT_LEDGER: return e->code == ERR_NOT_FOUND ? "tenant" : "day";
    case EVENT_BURST: return e->code == ERR_NOT_FOUND ? "tenant" : "jobs";
    case EVENT_USER: return e->code == ERR_NOT_FOUND ? "tenant" : "user";
    case EVENT_RESERVE: return e->code == ERR_NOT_FOUND ? "nodes" : "until_ms";
    case EVENT_POOL: return e->code == ERR_INVALID && ev->pool.name.n ? "calendar" : "name";
    case EVENT_NODE_POOL: return e->code == ERR_NOT_FOUND ? "name" : "pool";
    case EVENT_NODE_TRAITS: return e->code == ERR_NOT_FOUND ? "name" : "traits";
    case EVENT_JOB_TRAITS: return e->code == ERR_NOT_FOUND ? "job" : "traits";
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
int journal_tell(struct core *c, const struct event *ev, struct err *e)
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
        ((ev->kind == EVENT_TAKE && now.take.by.v == ev->take.by.v &&
          now.take.why == ev->take.why) ||
         (a->n == ev->place.n && memcmp(a->slots, ev->place.slots, a->n * sizeof *a->slots) == 0)))
        return 0;
    return err_set(e, ERR_CONFLICT, "the journal %s job %llu; the core now decides otherwise",
                   words[ev->kind], job);
}

static int verify_event(void *self, const struct event *ev, struct err *e)
{
    struct verify *v = self;
    if (!ev) {
        err_set(e, ERR_INVALID, "another journal begins here");
        return err_hint(e, "verify one segment at a time: from one such line to the next");
    }
    v->out->events++;
    if (ev->kind == EVENT_PLACE || ev->kind == EVENT_TAKE || ev->kind == EVENT_PROMISE)
        return verify_decision(v, ev, e);
    if (missing_decision(v, e) < 0)
        return -1;
    if (ev->kind != EVENT_PASS)
        return journal_tell(v->core, ev, e);
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
    int rc = journal_walk(file, text, verify_event, &v, e);
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
