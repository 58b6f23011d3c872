/* Events of a journal that outlive their line: their names move into an arena. */
#include "simulate/journal_walk.h"

/* A trace's names are C strings. */
static int check_name(struct str s, const char *field, struct err *e)
{
    if (s.n == 0 || !memchr(s.p, 0, s.n))
        return 0;
    return err_set(e, ERR_INVALID, "field '%s': a name with a zero byte", field);
}

int event_check_names(const struct event *ev, struct err *e)
{
    if (ev->kind == EVENT_TENANT)
        return check_name(ev->tenant.name, "name", e);
    if (ev->kind == EVENT_NODE || ev->kind == EVENT_NODE_CHANGE)
        return check_name(ev->node.name, "name", e) < 0 ? -1
                                                        : check_name(ev->node.model, "model", e);
    if (ev->kind == EVENT_SUBMIT)
        return check_name(ev->submit.user, "user", e);
    return 0;
}

static struct str keep_str(struct arena *a, struct str s)
{
    return (struct str){ arena_strndup(a, s.p, s.n), s.n };
}

const void *keep_bytes(struct arena *a, const void *p, size_t n, size_t size)
{
    void *out = arena_alloc(a, n + 1, size);
    if (n)
        memcpy(out, p, n * size);
    return out;
}

static void keep_submit(struct arena *a, struct event_submit *s)
{
    s->tenant = keep_str(a, s->tenant);
    s->user = keep_str(a, s->user);
    s->models = keep_str(a, s->models);
    s->devices = keep_str(a, s->devices);
    s->reservation = keep_str(a, s->reservation);
    s->traits = keep_str(a, s->traits);
    s->after = keep_bytes(a, s->after, s->afters, sizeof *s->after);
}

static void keep_tenant(struct arena *a, struct event_tenant *t)
{
    struct model_limit *limits = arena_array(a, struct model_limit, t->model_limits + 1);
    t->name = keep_str(a, t->name);
    t->parent = keep_str(a, t->parent);
    t->pools = keep_str(a, t->pools);
    for (uint32_t i = 0; i < t->model_limits; i++)
        limits[i] = (struct model_limit){ keep_str(a, t->model_limit[i].models),
                                          t->model_limit[i].gpu_milli };
    t->model_limit = limits;
}

void event_keep(struct arena *a, struct event *ev)
{
    switch (ev->kind) {
    case EVENT_MODEL: ev->model.name = keep_str(a, ev->model.name); break;
    case EVENT_TENANT: keep_tenant(a, &ev->tenant); break;
    case EVENT_USER:
        ev->user.tenant = keep_str(a, ev->user.tenant);
        ev->user.user = keep_str(a, ev->user.user);
        break;
    case EVENT_NODE:
    case EVENT_NODE_CHANGE:
        ev->node.name = keep_str(a, ev->node.name);
        ev->node.model = keep_str(a, ev->node.model);
        ev->node.net_switch = keep_str(a, ev->node.net_switch);
        ev->node.pool = keep_str(a, ev->node.pool);
        ev->node.traits = keep_str(a, ev->node.traits);
        ev->node.devices = keep_str(a, ev->node.devices);
        break;
    case EVENT_RESERVE:
        ev->reserve.name = keep_str(a, ev->reserve.name);
        ev->reserve.tenant = keep_str(a, ev->reserve.tenant);
        ev->reserve.nodes = keep_str(a, ev->reserve.nodes);
        break;
    case EVENT_POOL:
        ev->pool.name = keep_str(a, ev->pool.name);
        ev->pool.calendar = keep_str(a, ev->pool.calendar);
        break;
    case EVENT_NODE_POOL:
        ev->node_pool.name = keep_str(a, ev->node_pool.name);
        ev->node_pool.pool = keep_str(a, ev->node_pool.pool);
        break;
    case EVENT_NODE_TRAITS:
        ev->node_traits.name = keep_str(a, ev->node_traits.name);
        ev->node_traits.traits = keep_str(a, ev->node_traits.traits);
        break;
    case EVENT_JOB_TRAITS: ev->job_traits.traits = keep_str(a, ev->job_traits.traits); break;
    case EVENT_NODE_STATE: ev->node_state.name = keep_str(a, ev->node_state.name); break;
    case EVENT_PAST:
        ev->past.tenant = keep_str(a, ev->past.tenant);
        ev->past.user = keep_str(a, ev->past.user);
        break;
    case EVENT_DEMAND: ev->demand.models = keep_str(a, ev->demand.models); break;
    case EVENT_RUNS:
        ev->runs.tenant = keep_str(a, ev->runs.tenant);
        ev->runs.user = keep_str(a, ev->runs.user);
        break;
    case EVENT_BURST: ev->burst.tenant = keep_str(a, ev->burst.tenant); break;
    case EVENT_LEDGER: ev->ledger.tenant = keep_str(a, ev->ledger.tenant); break;
    case EVENT_WAIT: ev->wait.tenant = keep_str(a, ev->wait.tenant); break;
    case EVENT_PLACE:
    case EVENT_PROMISE:
        ev->place.slots = keep_bytes(a, ev->place.slots, ev->place.n, sizeof *ev->place.slots);
        break;
    case EVENT_SUBMIT: keep_submit(a, &ev->submit); break;
    case EVENT_POLICY:
    case EVENT_JOB:
    case EVENT_TAKE:
    case EVENT_TIMES:
    case EVENT_PASS:
    case EVENT_KIND_COUNT: break;
    }
}
