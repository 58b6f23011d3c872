#include "journal/journal.h"

#include "base/json.h"
#include "core/policy.h"

enum field_type {
    F_STR,
    F_LONG,
    F_U8,
    F_U16,
    F_U32,
    F_U64,
    F_I64,
    F_BOOL,
    F_ENUM8,
    F_ENUM,
    F_AMOUNTS,
    F_LINKS,
    F_SLOTS,
    F_AFTER,
    F_MODELS
};

/* A plain number has so many bytes and is at most `max`, a text has at most `max` bytes; `word` is for
 * the reference. */
static const struct {
    uint8_t bytes;
    uint64_t max;
    const char *word;
} types[] = {
    [F_STR] = { 0, 4096, "text" },         [F_LONG] = { 0, TRAITS_TEXT_MAX, "text" },
    [F_U8] = { 1, 1, "0 or 1" },           [F_U16] = { 2, UINT16_MAX, "number" },
    [F_U32] = { 4, UINT32_MAX, "number" }, [F_U64] = { 8, INT64_MAX, "number" },
    [F_I64] = { 0, 0, "number" },          [F_BOOL] = { 1, 1, "true/false" },
    [F_ENUM8] = { 1, 0, "word" },          [F_ENUM] = { 4, 0, "word" },
    [F_AMOUNTS] = { 0, 0, "object" },      [F_LINKS] = { 0, 0, "list" },
    [F_SLOTS] = { 0, 0, "list" },          [F_AFTER] = { 0, 0, "list" },
    [F_MODELS] = { 0, 0, "list" },
};

/* Names of an enumeration by number, NULL past the last. */
typedef const char *(*enum_name)(uint32_t i);

#define ENUM_NAMES(fn, count, getter, type)                                                        \
    static const char *fn(uint32_t i)                                                              \
    {                                                                                              \
        return i < (uint32_t)(count) ? getter((type)i) : NULL;                                     \
    }
ENUM_NAMES(names_priority, PRIO_COUNT, priority_name, enum priority)
ENUM_NAMES(names_scope, SCOPE_COUNT, scope_name, enum scope)
ENUM_NAMES(names_layout, LAYOUT_COUNT, layout_name, enum layout)
ENUM_NAMES(names_job_event, JOB_EVENT_COUNT, job_event_name, enum job_event)
ENUM_NAMES(names_node_state, NODE_STATE_COUNT, node_state_name, enum node_state)
ENUM_NAMES(names_after, AFTER_COUNT, after_name, enum after_when)
ENUM_NAMES(names_take, TAKE_COUNT, take_name, enum take_why)
ENUM_NAMES(names_kind, EVENT_KIND_COUNT, event_kind_name, enum event_kind)

/* A field that is zero, empty or without limit is not written, unless it is needed. */
static const struct field {
    enum event_kind kind;
    const char *key;
    enum field_type type;
    size_t at;
    bool needed;
    enum_name names;
    const char *help;
} fields[] = {
#define AT(member) offsetof(struct event, member)
    { EVENT_MODEL, "name", F_STR, AT(model.name), true, NULL, "GPU model" },
    { EVENT_MODEL, "cost_milli", F_U32, AT(model.cost_milli), true, NULL,
      "1000 = the reference GPU" },

    { EVENT_TENANT, "name", F_STR, AT(tenant.name), true, NULL, "unique in the whole tree" },
    { EVENT_TENANT, "parent", F_STR, AT(tenant.parent), false, NULL,
      "the tenant above; absent at the top" },
    { EVENT_TENANT, "weight_milli", F_U32, AT(tenant.weight_milli), true, NULL,
      "its part among its siblings" },
    { EVENT_TENANT, "guarantee_milli", F_U64, AT(tenant.guarantee_milli), false, NULL,
      "reference GPUs it has before anyone shares, thousandths" },
    { EVENT_TENANT, "limit", F_AMOUNTS, AT(tenant.limit), false, NULL, "held at a time, at most" },
    { EVENT_TENANT, "user_limit", F_AMOUNTS, AT(tenant.user_limit), false, NULL,
      "the same for each user" },
    { EVENT_TENANT, "model_limit", F_MODELS, AT(tenant.model_limit), false, NULL,
      "['A|B', thousandths of GPUs] for each limit of GPU models together" },
    { EVENT_TENANT, "pools", F_STR, AT(tenant.pools), false, NULL,
      "it may use their machines only, 'a|b'; '-': those in no pool; absent: all" },
    { EVENT_TENANT, "until_ms", F_I64, AT(tenant.until_ms), false, NULL,
      "nothing of it starts from then on; absent: never so" },
    { EVENT_TENANT, "budget", F_I64, AT(tenant.budget_gpu_milli_ms), false, NULL,
      "what it may hold in the period, thousandths of GPUs x ms; absent: none" },
    { EVENT_TENANT, "budget_from_ms", F_I64, AT(tenant.budget_from_ms), false, NULL, "" },
    { EVENT_TENANT, "budget_until_ms", F_I64, AT(tenant.budget_until_ms), false, NULL, "" },
    { EVENT_TENANT, "removed", F_BOOL, AT(tenant.removed), false, NULL, "it is no more" },

    { EVENT_USER, "tenant", F_STR, AT(user.tenant), true, NULL, "" },
    { EVENT_USER, "user", F_STR, AT(user.user), true, NULL, "" },
    { EVENT_USER, "weight_milli", F_U32, AT(user.weight_milli), true, NULL,
      "part among the tenant's users" },

    { EVENT_POOL, "name", F_STR, AT(pool.name), true, NULL, "" },
    { EVENT_POOL, "calendar", F_STR, AT(pool.calendar), false, NULL,
      "when its machines may work; absent: always" },

    { EVENT_NODE, "name", F_STR, AT(node.name), true, NULL, "" },
    { EVENT_NODE, "model", F_STR, AT(node.model), false, NULL, "GPU model" },
    { EVENT_NODE, "switch", F_STR, AT(node.net_switch), false, NULL, "network switch it hangs on" },
    { EVENT_NODE, "pool", F_STR, AT(node.pool), false, NULL,
      "machines that are lent at the same times" },
    { EVENT_NODE, "traits", F_LONG, AT(node.traits), false, NULL,
      "its class to the engine; absent: none" },
    { EVENT_NODE, "devices", F_STR, AT(node.devices), false, NULL,
      "what it has beyond GPUs, 'name=count@worth,…' in order of names; worth, which may be "
      "absent: "
      "thousandths of a GPU" },
    { EVENT_NODE, "gpus", F_U32, AT(node.gpus), false, NULL, "" },
    { EVENT_NODE, "gpu_mem_mib", F_U32, AT(node.gpu_mem_mib), false, NULL, "of each GPU" },
    { EVENT_NODE, "cpu_milli", F_U32, AT(node.cpu_milli), true, NULL, "" },
    { EVENT_NODE, "mem_mib", F_U32, AT(node.mem_mib), true, NULL, "" },
    { EVENT_NODE, "links", F_LINKS, AT(node.link), false, NULL,
      "link group of each GPU; absent: one group" },

    { EVENT_NODE_CHANGE, "name", F_STR, AT(node.name), true, NULL, "" },
    { EVENT_NODE_CHANGE, "model", F_STR, AT(node.model), false, NULL,
      "as of a node, like the rest" },
    { EVENT_NODE_CHANGE, "devices", F_STR, AT(node.devices), false, NULL, "" },
    { EVENT_NODE_CHANGE, "gpus", F_U32, AT(node.gpus), false, NULL, "" },
    { EVENT_NODE_CHANGE, "gpu_mem_mib", F_U32, AT(node.gpu_mem_mib), false, NULL, "" },
    { EVENT_NODE_CHANGE, "cpu_milli", F_U32, AT(node.cpu_milli), true, NULL, "" },
    { EVENT_NODE_CHANGE, "mem_mib", F_U32, AT(node.mem_mib), true, NULL, "" },
    { EVENT_NODE_CHANGE, "links", F_LINKS, AT(node.link), false, NULL, "" },

    { EVENT_NODE_POOL, "name", F_STR, AT(node_pool.name), true, NULL, "" },
    { EVENT_NODE_POOL, "pool", F_STR, AT(node_pool.pool), false, NULL, "absent: out of its pool" },

    { EVENT_NODE_TRAITS, "name", F_STR, AT(node_traits.name), true, NULL, "" },
    { EVENT_NODE_TRAITS, "traits", F_LONG, AT(node_traits.traits), false, NULL,
      "its class from now on; absent: none" },

    { EVENT_NODE_STATE, "name", F_STR, AT(node_state.name), true, NULL, "" },
    { EVENT_NODE_STATE, "state", F_ENUM, AT(node_state.state), true, names_node_state, "" },

    { EVENT_RESERVE, "name", F_STR, AT(reserve.name), true, NULL, "" },
    { EVENT_RESERVE, "tenant", F_STR, AT(reserve.tenant), false, NULL, "whose they are then" },
    { EVENT_RESERVE, "from_ms", F_I64, AT(reserve.from_ms), false, NULL, "" },
    { EVENT_RESERVE, "until_ms", F_I64, AT(reserve.until_ms), false, NULL, "" },
    { EVENT_RESERVE, "nodes", F_STR, AT(reserve.nodes), false, NULL,
      "machines, 'a,b'; absent: it is given up" },

    { EVENT_SUBMIT, "job", F_U64, AT(submit.id), true, NULL, "larger than every id before" },
    { EVENT_SUBMIT, "tenant", F_STR, AT(submit.tenant), true, NULL, "" },
    { EVENT_SUBMIT, "user", F_STR, AT(submit.user), true, NULL, "" },
    { EVENT_SUBMIT, "models", F_STR, AT(submit.models), false, NULL,
      "allowed GPU models, 'A|B'; absent: any" },
    { EVENT_SUBMIT, "devices", F_STR, AT(submit.devices), false, NULL,
      "devices of each replica beyond GPUs, 'name=count,…' in order of names" },
    { EVENT_SUBMIT, "replicas", F_U32, AT(submit.request.replicas), true, NULL, "" },
    { EVENT_SUBMIT, "gpus", F_U16, AT(submit.request.gpus), false, NULL,
      "whole GPUs of each replica" },
    { EVENT_SUBMIT, "gpu_milli", F_U16, AT(submit.request.gpu_milli), false, NULL,
      "or a share of one GPU" },
    { EVENT_SUBMIT, "gpu_mem_mib", F_U32, AT(submit.request.gpu_mem_mib), false, NULL,
      "least memory of each GPU, or of the share" },
    { EVENT_SUBMIT, "cpu_milli", F_U32, AT(submit.request.cpu_milli), false, NULL,
      "of each replica" },
    { EVENT_SUBMIT, "mem_mib", F_U32, AT(submit.request.mem_mib), false, NULL, "of each replica" },
    { EVENT_SUBMIT, "disk_mib", F_U32, AT(submit.request.disk_mib), false, NULL,
      "scratch space of each replica" },
    { EVENT_SUBMIT, "notebook", F_U8, AT(submit.request.notebook), false, NULL,
      "1: it counts as a notebook" },
    { EVENT_SUBMIT, "within", F_ENUM8, AT(submit.request.scope), false, names_scope,
      "how close the replicas are" },
    { EVENT_SUBMIT, "layout", F_ENUM8, AT(submit.request.layout), false, names_layout, "" },
    { EVENT_SUBMIT, "linked", F_U8, AT(submit.request.linked), false, NULL,
      "1: GPUs of one link group" },
    { EVENT_SUBMIT, "priority", F_ENUM, AT(submit.priority), true, names_priority, "" },
    { EVENT_SUBMIT, "held", F_BOOL, AT(submit.held), false, NULL, "" },
    { EVENT_SUBMIT, "begin_ms", F_I64, AT(submit.begin_ms), false, NULL,
      "it does not start before; absent: at once" },
    { EVENT_SUBMIT, "after", F_AFTER, AT(submit.after), false, names_after,
      "[job, how many from it on, how they end] for each it starts after" },
    { EVENT_SUBMIT, "known", F_BOOL, AT(submit.known), false, NULL,
      "it was taken before this journal begins" },
    { EVENT_SUBMIT, "frozen", F_U16, AT(submit.frozen), false, NULL,
      "1: it was frozen then; 2: and wanted to go on" },
    { EVENT_SUBMIT, "since_ms", F_I64, AT(submit.since_ms), false, NULL,
      "its wait counts from then; absent: since it came" },
    { EVENT_SUBMIT, "wait_ms", F_I64, AT(submit.wait_ms), false, NULL,
      "since when it waited then; absent: since then" },
    { EVENT_SUBMIT, "ran_ms", F_I64, AT(submit.ran_ms), false, NULL, "how long it had run then" },
    { EVENT_SUBMIT, "taken", F_U16, AT(submit.taken), false, NULL,
      "how often it had been taken back" },
    { EVENT_SUBMIT, "thaw_cost_ms", F_U32, AT(submit.thaw_cost_ms), false, NULL,
      "what a freeze and a thaw cost it; absent: it cannot be taken back" },
    { EVENT_SUBMIT, "restarts", F_BOOL, AT(submit.restarts), false, NULL,
      "a freeze loses its work" },
    { EVENT_SUBMIT, "limit_ms", F_I64, AT(submit.limit_ms), false, NULL,
      "how long it may run; absent: for ever" },
    { EVENT_SUBMIT, "family", F_U32, AT(submit.family), false, NULL,
      "one user's jobs with the same number are the same work" },
    { EVENT_SUBMIT, "reservation", F_STR, AT(submit.reservation), false, NULL,
      "it runs in this reservation until that ends" },
    { EVENT_SUBMIT, "traits", F_LONG, AT(submit.traits), false, NULL,
      "classes of machines it may use, 'a|b'; absent: all" },

    { EVENT_JOB, "job", F_U64, AT(job.id), true, NULL, "" },
    { EVENT_JOB, "what", F_ENUM, AT(job.what), true, names_job_event, "" },

    { EVENT_JOB_TRAITS, "job", F_U64, AT(job_traits.id), true, NULL, "" },
    { EVENT_JOB_TRAITS, "traits", F_LONG, AT(job_traits.traits), false, NULL,
      "as of a submit, from its next start on" },

    { EVENT_PLACE, "job", F_U64, AT(place.id), true, NULL, "" },
    { EVENT_PLACE, "slots", F_SLOTS, AT(place.slots), true, NULL,
      "[node, GPU mask, thousandths] for each replica" },

    { EVENT_TAKE, "job", F_U64, AT(take.id), true, NULL, "" },
    { EVENT_TAKE, "by", F_U64, AT(take.by), false, NULL,
      "the job that gets the room; absent: nobody, its machines are given back if it is for room" },
    { EVENT_TAKE, "why", F_ENUM, AT(take.why), false, names_take, "absent: for its room" },

    { EVENT_PROMISE, "job", F_U64, AT(place.id), true, NULL, "" },
    { EVENT_PROMISE, "slots", F_SLOTS, AT(place.slots), true, NULL, "as of a place" },

    { EVENT_RUNS, "tenant", F_STR, AT(runs.tenant), false, NULL, "absent: of everybody" },
    { EVENT_RUNS, "user", F_STR, AT(runs.user), false, NULL, "of a family: whose" },
    { EVENT_RUNS, "family", F_U32, AT(runs.family), false, NULL,
      "absent: of all that the tenant's users ran" },
    { EVENT_RUNS, "size", F_U32, AT(runs.size), false, NULL, "class by GPUs" },
    { EVENT_RUNS, "bin", F_U32, AT(runs.bin), false, NULL, "class by how long they had run" },
    { EVENT_RUNS, "ended_milli", F_I64, AT(runs.ended_milli), false, NULL,
      "jobs that ended, faded, in thousandths" },
    { EVENT_RUNS, "exposed_ms", F_I64, AT(runs.exposed_ms), false, NULL, "time they ran, faded" },
    { EVENT_RUNS, "works_milli", F_I64, AT(runs.works_milli), false, NULL,
      "of all: jobs that ended, faded" },
    { EVENT_RUNS, "work_ms", F_I64, AT(runs.work_ms), false, NULL,
      "of all: their GPU time, faded" },

    { EVENT_WAIT, "tenant", F_STR, AT(wait.tenant), true, NULL,
      "of older versions: read, and not used any more" },
    { EVENT_WAIT, "size", F_U32, AT(wait.size), false, NULL, "class by GPUs" },
    { EVENT_WAIT, "wait_ms", F_I64, AT(wait.wait_ms), true, NULL,
      "by the root of the GPUs before it" },

    { EVENT_TIMES, "class", F_U32, AT(times.class), false, NULL,
      "of older versions: read, and not used any more" },
    { EVENT_TIMES, "p50_milli", F_I64, AT(times.p50_milli), true, NULL,
      "times the usual wait, in thousandths" },
    { EVENT_TIMES, "p90_milli", F_I64, AT(times.p90_milli), true, NULL, "" },

    { EVENT_BURST, "tenant", F_STR, AT(burst.tenant), false, NULL,
      "absent: what all forecasts taught" },
    { EVENT_BURST, "hour", F_I64, AT(burst.hour), false, NULL,
      "in which its jobs began to wait, since 1970" },
    { EVENT_BURST, "jobs", F_I64, AT(burst.jobs), false, NULL, "" },
    { EVENT_BURST, "sum_milli", F_I64, AT(burst.sum_milli), false, NULL,
      "of the logarithms of their waits, less half of those of the GPUs before them" },
    { EVENT_BURST, "squares_milli", F_I64, AT(burst.squares_milli), false, NULL,
      "of their squares" },
    { EVENT_BURST, "p50_milli", F_I64, AT(burst.p50_milli), false, NULL,
      "the correction, in spreads" },
    { EVENT_BURST, "p90_milli", F_I64, AT(burst.p90_milli), false, NULL, "" },

    { EVENT_PAST, "tenant", F_STR, AT(past.tenant), false, NULL, "absent: everybody together" },
    { EVENT_PAST, "user", F_STR, AT(past.user), false, NULL, "absent: the tenant" },
    { EVENT_PAST, "cost_ms", F_I64, AT(past.past_cost_ms), true, NULL,
      "decayed cost x time, thousandths of the reference GPU x ms" },
    { EVENT_PAST, "job_milli", F_I64, AT(past.job_milli), true, NULL, "mean cost of a job" },
    { EVENT_PAST, "spent", F_I64, AT(past.spent), false, NULL,
      "of its budget in the period, thousandths of GPUs x ms" },
    { EVENT_PAST, "late", F_I64, AT(past.late), false, NULL, "the same since the period ended" },

    { EVENT_LEDGER, "day", F_I64, AT(ledger.day), true, NULL, "since 1970, in UTC" },
    { EVENT_LEDGER, "tenant", F_STR, AT(ledger.tenant), false, NULL,
      "absent: all machines, and nothing was counted before" },
#define SUM(member, help)                                                                          \
    {                                                                                              \
        EVENT_LEDGER, #member, F_I64, AT(ledger.sums.member), false, NULL, help                    \
    }
    SUM(entitled, "thousandths of a GPU x ms, as all that follow"),
    SUM(got, ""),
    SUM(lent, ""),
    SUM(borrowed, ""),
    SUM(frozen, ""),
    SUM(wanted, ""),
#undef SUM
#define SUM(key, member, help)                                                                     \
    {                                                                                              \
        EVENT_LEDGER, key, F_I64, AT(ledger.machines.member), false, NULL, help                    \
    }
    SUM("total", total, "of all machines: GPUs that there were"),
    SUM("held", got, "those that jobs held"),
    SUM("idle", idle, "free on machines that were up and open"),
    SUM("away", away, "the rest"),
#undef SUM

    { EVENT_DEMAND, "models", F_STR, AT(demand.models), false, NULL, "absent: any" },
    { EVENT_DEMAND, "gpus", F_U16, AT(demand.gpus), false, NULL, "" },
    { EVENT_DEMAND, "milli", F_U16, AT(demand.milli), false, NULL, "of each GPU" },
    { EVENT_DEMAND, "cpu_milli", F_U32, AT(demand.cpu_milli), false, NULL, "" },
    { EVENT_DEMAND, "mem_mib", F_U32, AT(demand.mem_mib), false, NULL, "" },
    { EVENT_DEMAND, "count", F_U32, AT(demand.count), true, NULL, "replicas that asked for it" },
#undef AT
};

/* ---- writing ---- */

static void write_amounts(struct json_out *w, const char *key, const struct amounts *a)
{
    bool any = false;
    for (int r = 0; r < RES_COUNT; r++)
        any = any || a->of[r] != NO_LIMIT;
    if (!any)
        return;
    json_begin(w, key, '{');
    for (int r = 0; r < RES_COUNT; r++)
        if (a->of[r] != NO_LIMIT)
            json_put_u64(w, resource_name((enum resource)r), a->of[r]);
    json_end(w, '}');
}

static void write_links(struct json_out *w, const char *key, const struct event_node *n)
{
    uint32_t gpus = MIN(n->gpus, (uint32_t)GPUS_PER_NODE_MAX); /* more are refused elsewhere */
    bool any = false;
    for (uint32_t g = 0; g < gpus; g++)
        any = any || n->link[g];
    if (!any)
        return;
    json_begin(w, key, '[');
    for (uint32_t g = 0; g < gpus; g++)
        json_put_u64(w, NULL, n->link[g]);
    json_end(w, ']');
}

static void write_slots(struct json_out *w, const char *key, const struct event_place *p)
{
    json_begin(w, key, '[');
    for (uint32_t i = 0; i < p->n; i++) {
        json_begin(w, NULL, '[');
        json_put_u64(w, NULL, p->slots[i].node);
        json_put_u64(w, NULL, p->slots[i].gpu_mask);
        json_put_u64(w, NULL, p->slots[i].milli);
        json_end(w, ']');
    }
    json_end(w, ']');
}

static void write_after(struct json_out *w, const char *key, const struct event_submit *s)
{
    if (s->afters == 0)
        return;
    json_begin(w, key, '[');
    for (uint32_t i = 0; i < s->afters; i++) {
        json_begin(w, NULL, '[');
        json_put_u64(w, NULL, s->after[i].first.v);
        json_put_u64(w, NULL, s->after[i].n);
        json_put_str(w, NULL, str_of(after_name((enum after_when)s->after[i].when)));
        json_end(w, ']');
    }
    json_end(w, ']');
}

static void write_models(struct json_out *w, const char *key, const struct event_tenant *t)
{
    if (t->model_limits == 0)
        return;
    json_begin(w, key, '[');
    for (uint32_t i = 0; i < t->model_limits; i++) {
        json_begin(w, NULL, '[');
        json_put_str(w, NULL, t->model_limit[i].models);
        json_put_u64(w, NULL, t->model_limit[i].gpu_milli);
        json_end(w, ']');
    }
    json_end(w, ']');
}

static uint64_t load(const struct field *f, const void *p)
{
    switch (types[f->type].bytes) {
    case 1: return *(const uint8_t *)p;
    case 2: return *(const uint16_t *)p;
    case 4: return *(const uint32_t *)p;
    case 8: return *(const uint64_t *)p;
    }
    return 0;
}

static void write_field(struct json_out *w, const struct event *ev, const struct field *f)
{
    const void *p = (const char *)ev + f->at;
    const struct str *s = p;
    uint64_t v = load(f, p);
    switch (f->type) {
    case F_STR:
    case F_LONG:
        if (s->n || f->needed)
            json_put_str(w, f->key, *s);
        break;
    case F_I64:
        if (*(const int64_t *)p || f->needed)
            json_put_i64(w, f->key, *(const int64_t *)p);
        break;
    case F_U8:
    case F_U16:
    case F_U32:
    case F_U64:
        if (v || f->needed)
            json_put_u64(w, f->key, v);
        break;
    case F_BOOL:
        if (v)
            json_put_bool(w, f->key, true);
        break;
    case F_ENUM8:
    case F_ENUM:
        if ((v || f->needed) && f->names((uint32_t)v))
            json_put_str(w, f->key, str_of(f->names((uint32_t)v)));
        break;
    case F_AMOUNTS: write_amounts(w, f->key, p); break;
    case F_LINKS: write_links(w, f->key, &ev->node); break;
    case F_SLOTS: write_slots(w, f->key, &ev->place); break;
    case F_AFTER: write_after(w, f->key, &ev->submit); break;
    case F_MODELS: write_models(w, f->key, &ev->tenant); break;
    }
}

/* Every number: one that is 0 is not one that is not said. */
static void write_policy(struct json_out *w, const struct policy *p)
{
    struct policy copy = *p;
    for (size_t i = 0; policy_key(i); i++)
        json_put_i64(w, policy_key(i)->name, *policy_value(&copy, policy_key(i)));
}

void journal_write_header(struct buf *out)
{
    buf_printf(out, "{\"journal\":\"nightshift\",\"version\":%d}\n", JOURNAL_VERSION);
}

void journal_write(const struct event *ev, struct buf *out)
{
    struct json_out w = { .b = out };
    json_begin(&w, NULL, '{');
    json_put_i64(&w, "t", ev->t_ms);
    json_put_str(&w, "ev", str_of(event_kind_name(ev->kind)));
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (fields[i].kind == ev->kind)
            write_field(&w, ev, &fields[i]);
    if (ev->kind == EVENT_POLICY)
        write_policy(&w, &ev->policy);
    json_end(&w, '}');
    buf_addc(out, '\n');
}

/* ---- reading ---- */

static int read_amounts(const struct json *obj, const char *key, struct amounts *out, struct err *e)
{
    static const char *const keys[] = {
#define X(id, name) name,
        RESOURCES(X)
#undef X
    };
    const struct json *o = json_find(obj, key);
    *out = AMOUNTS_NO_LIMIT;
    if (!o)
        return 0;
    if (!json_is_object(o))
        return err_set(e, ERR_INVALID, "field '%s': an object is needed", key);
    if (json_only(o, keys, RES_COUNT, e) < 0)
        return err_wrap(e, "field '%s'", key);
    for (int r = 0; r < RES_COUNT; r++)
        if (json_get_u64(o, keys[r], INT64_MAX, &out->of[r], e) < 0)
            return err_wrap(e, "field '%s'", key);
    return 0;
}

static int read_links(const struct json *obj, const char *key, struct event_node *n, struct err *e)
{
    const struct json *arr = json_find(obj, key);
    uint32_t g = 0;
    if (!arr)
        return 0;
    if (!json_is_array(arr) || json_len(arr) != n->gpus || n->gpus > GPUS_PER_NODE_MAX)
        return err_set(e, ERR_INVALID, "field '%s': one number for each GPU is needed", key);
    for (const struct json *v = json_first(arr); v; v = json_next(arr, v)) {
        uint64_t x;
        if (json_as_u64(v, GPUS_PER_NODE_MAX - 1, &x, e) < 0)
            return err_wrap(e, "field '%s'", key);
        n->link[g++] = (uint8_t)x;
    }
    return 0;
}

static int read_slot(const struct json *v, struct slot *out, struct err *e)
{
    static const uint64_t max[] = { NONE - 1, UINT16_MAX, GPU_MILLI };
    uint64_t x[3] = { 0 };
    size_t i = 0;
    if (!json_is_array(v) || json_len(v) != 3)
        return err_set(e, ERR_INVALID, "a slot is [node, GPU mask, thousandths]");
    for (const struct json *n = json_first(v); n && i < 3; n = json_next(v, n), i++)
        if (json_as_u64(n, max[i], &x[i], e) < 0)
            return -1;
    *out = (struct slot){ (uint32_t)x[0], (uint16_t)x[1], (uint16_t)x[2] };
    return 0;
}

static int read_slots(const struct json *obj, const char *key, struct arena *a,
                      struct event_place *p, struct err *e)
{
    const struct json *arr = json_find(obj, key);
    size_t n = arr && json_is_array(arr) ? json_len(arr) : 0;
    if (n == 0 || n > REPLICAS_MAX)
        return err_set(e, ERR_INVALID, "field '%s': a list of 1 to %d slots is needed", key,
                       REPLICAS_MAX);
    struct slot *slots = arena_array(a, struct slot, n);
    p->slots = slots;
    for (const struct json *v = json_first(arr); v; v = json_next(arr, v))
        if (read_slot(v, &slots[p->n++], e) < 0)
            return err_wrap(e, "field '%s'", key);
    return 0;
}

static int read_name(const struct field *f, struct str s, uint32_t *out, struct err *e)
{
    for (uint32_t i = 0; f->names(i); i++)
        if (str_is(s, f->names(i))) {
            *out = i;
            return 0;
        }
    err_set(e, ERR_INVALID, "field '%s': '%.*s' is not known", f->key, STR_ARG(s));
    return err_hint(e, "the first of the known ones is '%s'", f->names(0));
}

static int read_enum(const struct json *obj, const struct field *f, uint32_t *out, struct err *e)
{
    struct str s = { "", 0 };
    if (json_get_str(obj, f->key, 64, &s, e) < 0)
        return -1;
    return s.n == 0 && !f->needed ? 0 : read_name(f, s, out, e);
}

static int read_one_after(const struct json *v, const struct field *f, struct after *out,
                          struct err *e)
{
    uint64_t first, n;
    uint32_t when;
    struct str word;
    if (!json_is_array(v) || json_len(v) != 3)
        return err_set(e, ERR_INVALID, "field '%s': each is [job, how many, how they end]", f->key);
    const struct json *at = json_first(v), *count = json_next(v, at);
    if (json_as_u64(at, INT64_MAX, &first, e) < 0 ||
        json_as_u64(count, AFTER_JOBS_MAX, &n, e) < 0 ||
        json_as_str(json_next(v, count), 64, &word, e) < 0)
        return err_wrap(e, "field '%s'", f->key);
    if (read_name(f, word, &when, e) < 0)
        return -1;
    *out = (struct after){ { first }, (uint32_t)n, (uint8_t)when };
    return 0;
}

static int read_after(const struct json *obj, const struct field *f, struct arena *a,
                      struct event_submit *s, struct err *e)
{
    const struct json *arr = json_find(obj, f->key);
    if (!arr)
        return 0;
    if (!json_is_array(arr) || json_len(arr) > AFTER_MAX)
        return err_set(e, ERR_INVALID, "field '%s': a list of at most %d is needed", f->key,
                       AFTER_MAX);
    struct after *after = arena_array(a, struct after, json_len(arr) + 1);
    s->after = after;
    for (const struct json *v = json_first(arr); v; v = json_next(arr, v))
        if (read_one_after(v, f, &after[s->afters++], e) < 0)
            return -1;
    return 0;
}

static int read_model(const struct json *v, const struct field *f, struct arena *a,
                      struct model_limit *out, struct err *e)
{
    struct str models;
    if (!json_is_array(v) || json_len(v) != 2)
        return err_set(e, ERR_INVALID, "field '%s': each is [models, thousandths of GPUs]", f->key);
    const struct json *at = json_first(v);
    if (json_as_str(at, 4096, &models, e) < 0 ||
        json_as_u64(json_next(v, at), INT64_MAX, &out->gpu_milli, e) < 0)
        return err_wrap(e, "field '%s'", f->key);
    out->models = (struct str){ arena_strndup(a, models.p, models.n), models.n };
    return 0;
}

static int read_models(const struct json *obj, const struct field *f, struct arena *a,
                       struct event_tenant *t, struct err *e)
{
    const struct json *arr = json_find(obj, f->key);
    if (!arr)
        return 0;
    if (!json_is_array(arr) || json_len(arr) > MODEL_LIMITS_MAX)
        return err_set(e, ERR_INVALID, "field '%s': a list of at most %d is needed", f->key,
                       MODEL_LIMITS_MAX);
    struct model_limit *limit = arena_array(a, struct model_limit, json_len(arr) + 1);
    t->model_limit = limit;
    for (const struct json *v = json_first(arr); v; v = json_next(arr, v))
        if (read_model(v, f, a, &limit[t->model_limits++], e) < 0)
            return -1;
    return 0;
}

static void store(const struct field *f, void *p, uint64_t v)
{
    switch (types[f->type].bytes) {
    case 1: *(uint8_t *)p = (uint8_t)v; break;
    case 2: *(uint16_t *)p = (uint16_t)v; break;
    case 4: *(uint32_t *)p = (uint32_t)v; break;
    case 8: *(uint64_t *)p = v; break;
    }
}

static int read_str(const struct json *obj, const struct field *f, struct arena *a, struct str *out,
                    struct err *e)
{
    struct str s = { "", 0 };
    size_t max = types[f->type].max;
    int rc =
        f->needed ? json_need_str(obj, f->key, max, &s, e) : json_get_str(obj, f->key, max, &s, e);
    if (rc < 0)
        return -1;
    *out = (struct str){ arena_strndup(a, s.p, s.n), s.n };
    return 0;
}

static int read_field(const struct json *obj, const struct field *f, struct arena *a,
                      struct event *ev, struct err *e)
{
    void *p = (char *)ev + f->at;
    uint64_t v = 0;
    uint32_t i = 0;
    switch (f->type) {
    case F_STR:
    case F_LONG: return read_str(obj, f, a, p, e);
    case F_I64:
        return f->needed ? json_need_i64(obj, f->key, INT64_MIN, INT64_MAX, p, e)
                         : json_get_i64(obj, f->key, INT64_MIN, INT64_MAX, p, e);
    case F_BOOL: return json_get_bool(obj, f->key, p, e);
    case F_AMOUNTS: return read_amounts(obj, f->key, p, e);
    case F_LINKS: return read_links(obj, f->key, &ev->node, e);
    case F_SLOTS: return read_slots(obj, f->key, a, &ev->place, e);
    case F_AFTER: return read_after(obj, f, a, &ev->submit, e);
    case F_MODELS: return read_models(obj, f, a, &ev->tenant, e);
    case F_ENUM8:
    case F_ENUM:
        if (read_enum(obj, f, &i, e) < 0)
            return -1;
        v = i;
        break;
    case F_U8:
    case F_U16:
    case F_U32:
    case F_U64:
        if ((f->needed ? json_need_u64(obj, f->key, types[f->type].max, &v, e)
                       : json_get_u64(obj, f->key, types[f->type].max, &v, e)) < 0)
            return -1;
        break;
    }
    store(f, p, v);
    return 0;
}

static int check_keys(const struct json *obj, enum event_kind kind, struct err *e)
{
    const char *keys[ARRAY_LEN(fields) + POLICY_KEYS_MAX + 2] = { "t", "ev" };
    size_t n = 2;
    for (size_t i = 0; kind == EVENT_POLICY && policy_key(i) && i < POLICY_KEYS_MAX; i++)
        keys[n++] = policy_key(i)->name;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (fields[i].kind == kind)
            keys[n++] = fields[i].key;
    return json_only(obj, keys, n, e);
}

/* What a journal does not say is as it is by default: it is older than that number. */
static int read_policy(const struct json *obj, struct policy *out, struct err *e)
{
    *out = policy_default();
    for (size_t i = 0; policy_key(i); i++)
        if (json_find(obj, policy_key(i)->name) &&
            json_need_i64(obj, policy_key(i)->name, INT64_MIN, INT64_MAX,
                          policy_value(out, policy_key(i)), e) < 0)
            return -1;
    return 0;
}

static int read_event(const struct json *obj, struct arena *a, struct event *ev, struct err *e)
{
    static const struct field kind_field = {
        .key = "ev", .type = F_ENUM, .needed = true, .names = names_kind
    };
    uint32_t kind = 0;
    if (!json_is_object(obj))
        return err_set(e, ERR_INVALID, "a journal line is a JSON object");
    if (json_need_i64(obj, "t", -TIME_MAX_MS, TIME_MAX_MS, &ev->t_ms, e) < 0 ||
        read_enum(obj, &kind_field, &kind, e) < 0)
        return -1;
    ev->kind = (enum event_kind)kind;
    if (check_keys(obj, ev->kind, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (fields[i].kind == ev->kind && read_field(obj, &fields[i], a, ev, e) < 0)
            return -1;
    return ev->kind == EVENT_POLICY ? read_policy(obj, &ev->policy, e) : 0;
}

int journal_read(struct str line, struct arena *a, struct event *out, struct err *e)
{
    if (line.n > JOURNAL_LINE_MAX)
        return err_set(e, ERR_TOO_LARGE, "a journal line of %zu bytes; at most %u", line.n,
                       JOURNAL_LINE_MAX);
    AUTO(json_free_p) struct json_doc *doc = json_read(line, e);
    struct event ev = { 0 };
    if (!doc || read_event(json_root(doc), a, &ev, e) < 0)
        return -1;
    *out = ev;
    return 0;
}

int journal_read_header(struct str line, struct err *e)
{
    AUTO(json_free_p) struct json_doc *doc = json_read(line, e);
    struct str name = { "", 0 };
    uint64_t version = 0;
    if (!doc)
        return -1;
    const struct json *root = json_root(doc);
    if (!json_is_object(root) || json_need_str(root, "journal", 64, &name, e) < 0 ||
        !str_is(name, "nightshift")) {
        err_set(e, ERR_INVALID, "this is not a Nightshift journal");
        return err_hint(e, "its first line is {\"journal\":\"nightshift\",\"version\":%d}",
                        JOURNAL_VERSION);
    }
    if (json_need_u64(root, "version", UINT32_MAX, &version, e) < 0)
        return -1;
    if (version == JOURNAL_VERSION)
        return json_only(root, (const char *const[]){ "journal", "version" }, 2, e);
    err_set(e, ERR_INVALID, "the journal has version %llu; this program reads version %d",
            (unsigned long long)version, JOURNAL_VERSION);
    return err_hint(e, "use the nightshift that wrote it, or a newer one");
}

void journal_print_reference(struct buf *out)
{
    for (uint32_t k = 0; k < EVENT_KIND_COUNT; k++) {
        buf_printf(out, "\n### `%s`\n\n", names_kind(k));
        bool any = false;
        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
            const struct field *f = &fields[i];
            if ((uint32_t)f->kind != k)
                continue;
            if (!any)
                buf_addz(out, "| field | value | needed | |\n|---|---|---|---|\n");
            any = true;
            buf_printf(out, "| `%s` | %s | %s | %s", f->key, types[f->type].word,
                       f->needed ? "yes" : "", f->help);
            for (uint32_t n = 0; f->names && f->names(n); n++)
                buf_printf(out, "%s`%s`", n ? ", " : (f->help[0] ? ": " : ""), f->names(n));
            buf_addz(out, " |\n");
        }
        for (size_t i = 0; k == EVENT_POLICY && policy_key(i); i++) {
            if (i == 0)
                buf_addz(out, "| field | value | needed | |\n|---|---|---|---|\n");
            buf_printf(out, "| `%s` | number |  | see the policy |\n", policy_key(i)->name);
            any = true;
        }
        if (!any)
            buf_addz(out, "No fields beyond `t` and `ev`.\n");
    }
}
