#include "simulate/trace.h"

#include "base/calendar.h"
#include "base/map.h"

void trace_free(struct trace *t)
{
    arena_free(&t->arena);
    *t = (struct trace){ 0 };
}

void trace_copy(const struct trace *from, struct trace *out)
{
    struct trace t = *from;
    t.arena = (struct arena){ .limit = from->arena.limit };
#define COPY(array, n)                                                                             \
    if (from->array) {                                                                             \
        t.array = arena_alloc(&t.arena, (size_t)(n) + 1, sizeof *t.array);                         \
        memcpy(t.array, from->array, (size_t)(n) * sizeof *t.array);                               \
    }
    COPY(node, t.nodes)
    COPY(node_tenant, t.nodes)
    COPY(tenant, t.tenants)
    COPY(window, t.windows)
    COPY(job, t.jobs)
    COPY(step, t.steps)
    COPY(pass, t.passes)
#undef COPY
    *out = t;
}

static int bad(const struct trace *t, struct err *e)
{
    err_wrap(e, "trace '%s'", t->name ? t->name : "");
    return err_hint(e, "the trace cannot be replayed like this; correct it where it was made");
}

static bool name_ok(const char *name)
{
    return name && name[0] && strlen(name) <= NAME_MAX_BYTES;
}

static int check_tenants(const struct trace *t, struct err *e)
{
    AUTO(names_free) struct names seen = { 0 };
    for (uint32_t i = 0; i < t->tenants; i++) {
        const struct trace_tenant *w = &t->tenant[i];
        if (!name_ok(w->name))
            return err_set(e, ERR_INVALID, "tenant %u has no name, or a too long one", i);
        if (w->weight_milli == 0)
            return err_set(e, ERR_INVALID, "tenant '%s': its weight is 0", w->name);
        if (names_find(&seen, str_of(w->name)) != NAME_NONE)
            return err_set(e, ERR_INVALID, "tenant '%s' is there twice", w->name);
        /* Looking only at those before it finds an unknown parent and a cycle alike. */
        if (w->parent[0] && names_find(&seen, str_of(w->parent)) == NAME_NONE)
            return err_set(e, ERR_INVALID, "tenant '%s': no tenant '%s' stands before it", w->name,
                           w->parent);
        names_intern(&seen, str_of(w->name));
    }
    return 0;
}

static int check_windows(const struct trace *t, struct err *e)
{
    struct calendar c;
    for (uint32_t w = 0; w < t->windows; w++)
        if (!name_ok(t->window[w].pool) || !t->window[w].calendar ||
            (t->window[w].calendar[0] &&
             calendar_parse(str_of(t->window[w].calendar), NULL, NULL, &c, e) < 0))
            return err_set(e, ERR_INVALID, "pool %u has no name, or no calendar", w);
    return 0;
}

uint32_t trace_window_of(const struct trace *t, uint32_t node)
{
    for (uint32_t w = 0; w < t->windows && t->node[node].pool.n; w++)
        if (str_is(t->node[node].pool, t->window[w].pool))
            return w;
    return NONE;
}

static int check_nodes(const struct trace *t, struct err *e)
{
    AUTO(names_free) struct names seen = { 0 };
    for (uint32_t i = 0; i < t->nodes; i++) {
        const struct event_node *n = &t->node[i];
        if (n->name.n == 0 || n->name.n > NAME_MAX_BYTES)
            return err_set(e, ERR_INVALID, "node %u has no name, or a too long one", i);
        if (names_intern(&seen, n->name) != i)
            return err_set(e, ERR_INVALID, "node '%.*s' is there twice", STR_ARG(n->name));
        if (n->gpus > GPUS_PER_NODE_MAX || (n->gpus && n->model.n == 0))
            return err_set(e, ERR_INVALID, "node '%.*s': %u GPUs of model '%.*s'", STR_ARG(n->name),
                           n->gpus, STR_ARG(n->model));
        if (t->node_tenant && t->node_tenant[i] != NONE && t->node_tenant[i] >= t->tenants)
            return err_set(e, ERR_INVALID, "node '%.*s' belongs to no known tenant",
                           STR_ARG(n->name));
        if (n->pool.n && t->steps == 0 && trace_window_of(t, i) == NONE)
            return err_set(e, ERR_INVALID, "node '%.*s': its pool '%.*s' is not there",
                           STR_ARG(n->name), STR_ARG(n->pool));
    }
    return 0;
}

static int check_job(const struct trace *t, const struct trace_job *j, struct err *e)
{
    const struct request *r = &j->request;
    const char *wrong = NULL;
    if (j->tenant >= t->tenants)
        wrong = "its tenant is unknown";
    else if (!name_ok(j->user))
        wrong = "its user has no name, or a too long one";
    else if (!j->models)
        wrong = "its models are missing";
    else if (j->duration_ms <= 0)
        wrong = "its duration is not above 0";
    else if (r->replicas < 1 || r->replicas > REPLICAS_MAX || r->gpus > GPUS_PER_NODE_MAX)
        wrong = "its replicas or GPUs are out of range";
    else if (r->gpu_milli >= GPU_MILLI || (r->gpus && r->gpu_milli))
        wrong = "its share of a GPU is out of range";
    else if (j->gpus != r->gpus * r->replicas)
        wrong = "its GPUs are not those of its replicas";
    else if (j->priority >= PRIO_COUNT)
        wrong = "its priority is unknown";
    if (!wrong)
        return 0;
    return err_set(e, ERR_INVALID, "job %llu: %s", (unsigned long long)j->id, wrong);
}

static int check_jobs(const struct trace *t, struct err *e)
{
    AUTO(map_free) struct map seen = { 0 };
    for (uint32_t i = 0; i < t->jobs; i++) {
        if (check_job(t, &t->job[i], e) < 0)
            return -1;
        uint64_t first;
        if (map_get(&seen, t->job[i].id, &first))
            return err_set(e, ERR_INVALID, "job %llu is there twice",
                           (unsigned long long)t->job[i].id);
        map_set(&seen, t->job[i].id, i);
    }
    return 0;
}

static int by_submit_then_id(const void *a, const void *b)
{
    const struct trace_job *x = a, *y = b;
    if (x->submit_ms != y->submit_ms)
        return x->submit_ms < y->submit_ms ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

int trace_finish(struct trace *t, struct err *e)
{
    if (check_windows(t, e) < 0 || check_tenants(t, e) < 0 || check_nodes(t, e) < 0 ||
        check_jobs(t, e) < 0)
        return bad(t, e);
    if (t->jobs)
        qsort(t->job, t->jobs, sizeof *t->job, by_submit_then_id);
    return 0;
}

/* How many parts of this size the empty racks hold. */
static uint64_t room_for(const struct trace_rack rack[static 2], uint32_t each)
{
    return (uint64_t)rack[0].nodes * (rack[0].units / each) +
           (uint64_t)rack[1].nodes * (rack[1].units / each);
}

static bool fills_nodes(const struct trace_rack *r, uint32_t each)
{
    return r->nodes && r->units % each == 0;
}

bool trace_split(uint32_t total, const struct trace_rack rack[static 2], uint32_t *out_replicas,
                 uint32_t *out_each)
{
    if (total == 0 || room_for(rack, 1) < total)
        return false;
    uint32_t found = 0, most = 0;
    for (int i = 0; i < 2; i++)
        most = MAX(most, rack[i].nodes ? rack[i].units : 0);
    for (uint32_t each = MIN(total, most); each > 0; each--) {
        uint32_t n = total / each;
        if (total % each || n > REPLICAS_MAX || room_for(rack, each) < n)
            continue;
        if (!found)
            found = each;
        if (n == 1 || fills_nodes(&rack[0], each) || fills_nodes(&rack[1], each)) {
            found = each;
            break;
        }
    }
    if (!found)
        return false;
    *out_replicas = total / found;
    *out_each = found;
    return true;
}
