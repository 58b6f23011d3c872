#include "tests/lib/world.h"

void world_init(struct world *w, uint64_t seed)
{
    *w = (struct world){ .rng = { seed * 0x9E3779B97F4A7C15ull + 1 }, .now_ms = 1000000 };
    w->nodes = rng_between(&w->rng, 1, 24);
    w->tenants = rng_between(&w->rng, 1, WORLD_TENANTS);
    w->users = rng_between(&w->rng, 1, 3);
    w->limits = rng_below(&w->rng, 2);
    w->faults = rng_below(&w->rng, 2);
    w->freezes = rng_below(&w->rng, 3) > 0;
    w->pools = rng_below(&w->rng, 2) ? rng_between(&w->rng, 1, 3) : 0;
    w->reserves = rng_below(&w->rng, 2);
    w->rules = rng_below(&w->rng, 2);
    w->traits = rng_below(&w->rng, 2) ? rng_between(&w->rng, 1, 4) : 0;
    w->device_rng = (struct rng){ seed * 0xD1342543DE82EF95ull + 3 };
    w->devices = rng_below(&w->device_rng, 2) ? rng_between(&w->device_rng, 1, 3) : 0;
}

void world_free(struct world *w)
{
    free(w->live);
    arena_free(&w->arena);
}

static struct str name(struct world *w, const char *prefix, uint32_t i)
{
    return str_of(arena_printf(&w->arena, "%s%u", prefix, i));
}

/* The class of a machine; some have none. */
static struct str class_of_node(struct world *w)
{
    return w->traits && rng_below(&w->rng, 4) ? name(w, "c", rng_below(&w->rng, w->traits))
                                              : STR("");
}

/* The classes that a job asks for: mostly none, at times one that no machine has. */
static struct str classes_of_job(struct world *w)
{
    if (w->traits == 0 || rng_below(&w->rng, 3))
        return STR("");
    struct str text = name(w, "c", rng_below(&w->rng, w->traits + 1));
    while (rng_below(&w->rng, 2) && text.n < 16)
        text = str_of(
            arena_printf(&w->arena, "%.*s|c%u", STR_ARG(text), rng_below(&w->rng, w->traits + 1)));
    return text;
}

static const char *const device_names[] = { "x/mig-1g", "x/mig-3g", "y/nic" };

/* Some of each kind of device, at times none; only machines say what one is worth. */
static struct str devices_of(struct world *w, uint32_t most, bool is_node)
{
    const char *text = "";
    for (uint32_t i = 0; i < w->devices && i < ARRAY_LEN(device_names); i++)
        if (rng_below(&w->device_rng, 2))
            text =
                arena_printf(&w->arena, "%s%s%s=%u%s", text, *text ? "," : "", device_names[i],
                             rng_between(&w->device_rng, 1, most), is_node && i < 2 ? "@200" : "");
    return str_of(text);
}

static struct event node_event(struct world *w, uint32_t i)
{
    static const struct {
        const char *model;
        uint32_t gpus, gpu_mem_mib, cpu_milli, mem_mib;
    } builds[] = {
        { "t4", 1, 16384, 16000, 65536 },      { "4090", 2, 24576, 32000, 131072 },
        { "a100", 8, 81920, 128000, 1048576 }, { "a100", 4, 40960, 64000, 262144 },
        { "", 0, 0, 64000, 262144 },
    };
    uint32_t b = rng_below(&w->rng, ARRAY_LEN(builds));
    struct event ev = { .t_ms = w->now_ms, .kind = EVENT_NODE };
    ev.node = (struct event_node){
        .name = name(w, "n", i),
        .model = str_of(builds[b].model),
        .net_switch = rng_below(&w->rng, 4) ? name(w, "sw", i / 4) : STR(""),
        .pool = w->pools && rng_below(&w->rng, 3) ? name(w, "p", rng_below(&w->rng, w->pools))
                                                  : STR(""),
        .traits = class_of_node(w),
        .devices = w->devices ? devices_of(w, 6, true) : STR(""),
        .gpus = builds[b].gpus,
        .gpu_mem_mib = builds[b].gpu_mem_mib,
        .cpu_milli = builds[b].cpu_milli,
        .mem_mib = builds[b].mem_mib,
    };
    if (builds[b].gpus >= 4 && rng_below(&w->rng, 2))
        for (uint32_t g = 0; g < builds[b].gpus; g++)
            ev.node.link[g] = (uint8_t)(g % 2);
    return ev;
}

/* Hours of every day, in some worlds with daylight time and a day that is closed. */
static struct event pool_event(struct world *w, uint32_t i)
{
    struct event ev = { .t_ms = w->now_ms, .kind = EVENT_POOL };
    uint32_t from = rng_below(&w->rng, 24), to = (from + rng_between(&w->rng, 1, 23)) % 24;
    const char *zone = rng_below(&w->rng, 2) ? "zone=CET-1CEST,M3.5.0,M10.5.0/3; " : "";
    const char *closed = rng_below(&w->rng, 4) ? "" : "; closed 1970-01-03";
    ev.pool.name = name(w, "p", i);
    if (rng_below(&w->rng, 6))
        ev.pool.calendar = str_of(arena_printf(&w->arena, "%sMon-Sun %02u:%02u-%02u:30%s", zone,
                                               from, rng_below(&w->rng, 30), to, closed));
    return ev;
}

/* One or two machines for a tenant, soon and for some hours; now and then it is given up. */
static struct event reserve_event(struct world *w)
{
    struct event ev = { .t_ms = w->now_ms, .kind = EVENT_RESERVE };
    uint32_t i = rng_below(&w->rng, 4);
    ev.reserve.name = name(w, "r", i);
    ev.reserve.tenant = name(w, "t", i % w->tenants);
    ev.reserve.from_ms = w->now_ms + rng_below(&w->rng, 4 * 3600000);
    ev.reserve.until_ms = ev.reserve.from_ms + rng_between(&w->rng, 60000, 8 * 3600000);
    uint32_t first = rng_below(&w->rng, w->nodes), n = rng_below(&w->rng, 4);
    ev.reserve.nodes =
        n == 0   ? STR("")
        : n == 1 ? name(w, "n", first)
                 : str_of(arena_printf(&w->arena, "n%u,n%u", first, (first + 1) % w->nodes));
    return ev;
}

static void put_models(struct world *w, struct event_tenant *t)
{
    static const char *const models[] = { "a100", "t4|4090", "4090", "a100|t4|4090|b200" };
    struct model_limit *m = arena_array(&w->arena, struct model_limit, 2);
    t->model_limit = m;
    t->model_limits = rng_between(&w->rng, 1, 2);
    for (uint32_t i = 0; i < t->model_limits; i++) {
        m[i].models = str_of(models[rng_below(&w->rng, ARRAY_LEN(models))]);
        m[i].gpu_milli = rng_between(&w->rng, 1, 16) * 500;
    }
}

/* Some hours in which it may have some GPU-hours; mostly the period after the last one. */
static void put_budget(struct world *w, uint32_t i, struct event_tenant *t)
{
    int64_t *period_ms = &w->period_ms[i];
    bool follows = *period_ms && rng_below(&w->rng, 4);
    t->budget_gpu_milli_ms = (int64_t)rng_between(&w->rng, 1, 60) * 1000 * 3600000 / 4;
    t->budget_from_ms = follows ? *period_ms : w->now_ms - rng_below(&w->rng, 3600000);
    t->budget_until_ms = t->budget_from_ms + rng_between(&w->rng, 1, 24) * 3600000;
    *period_ms = t->budget_until_ms;
}

static void put_rules(struct world *w, uint32_t i, struct event_tenant *t)
{
    static const char *const pools[] = { "p0", "-", "p0|p1", "p2|-|p1", "p9|p0|-" };
    if (rng_below(&w->rng, 2))
        put_models(w, t);
    if (rng_below(&w->rng, 3) == 0)
        t->pools = str_of(pools[rng_below(&w->rng, ARRAY_LEN(pools))]);
    if (rng_below(&w->rng, 4) == 0)
        t->until_ms = w->now_ms + rng_between(&w->rng, 1, 36) * 3600000;
    if (rng_below(&w->rng, 2))
        put_budget(w, i, t);
    if (w->limits && rng_below(&w->rng, 2)) {
        t->limit.of[RES_NOTEBOOKS] = rng_between(&w->rng, 1, 4);
        t->user_limit.of[RES_STORAGE] = rng_between(&w->rng, 1, 64) * 1024;
    }
}

static struct event tenant_event(struct world *w, uint32_t i)
{
    struct event ev = { .t_ms = w->now_ms, .kind = EVENT_TENANT };
    ev.tenant = (struct event_tenant){
        .name = name(w, "t", i),
        .parent =
            i && rng_below(&w->rng, 3) == 0 ? name(w, "t", rng_below(&w->rng, i) / 2) : STR(""),
        .weight_milli = rng_between(&w->rng, 1, 5) * 1000,
        .guarantee_milli = rng_below(&w->rng, 3) ? 0 : rng_between(&w->rng, 1, 4) * 1000,
        .limit = AMOUNTS_NO_LIMIT,
        .user_limit = AMOUNTS_NO_LIMIT,
    };
    if (w->limits && rng_below(&w->rng, 2)) {
        ev.tenant.limit.of[RES_GPU] = rng_between(&w->rng, 1, 12) * 1000;
        ev.tenant.limit.of[RES_JOBS] = rng_between(&w->rng, 1, 12);
    }
    if (w->limits && rng_below(&w->rng, 2)) {
        ev.tenant.user_limit.of[RES_CPU] = rng_between(&w->rng, 8, 64) * 1000;
        ev.tenant.user_limit.of[RES_MEM] = rng_between(&w->rng, 32, 512) * 1024;
    }
    if (w->rules && rng_below(&w->rng, 2))
        put_rules(w, i, &ev.tenant);
    return ev;
}

/* A tenant is changed, moves, goes, or comes back; cycles are among it, which the core refuses. */
static struct event change_tenant(struct world *w)
{
    uint32_t i = rng_below(&w->rng, w->tenants);
    struct event ev = tenant_event(w, i);
    if (rng_below(&w->rng, 3) == 0)
        ev.tenant.parent = name(w, "t", rng_below(&w->rng, w->tenants));
    ev.tenant.removed = rng_below(&w->rng, 8) == 0;
    return ev;
}

size_t world_build(struct world *w, struct event *out, size_t max)
{
    size_t n = 0;
    for (uint32_t i = 0; i < w->tenants && n < max; i++)
        out[n++] = tenant_event(w, i);
    for (uint32_t i = 0; i < w->pools && n < max; i++)
        out[n++] = pool_event(w, i);
    for (uint32_t i = 0; i < w->nodes && n < max; i++)
        out[n++] = node_event(w, i);
    return n;
}

/* Begins later, or starts after others: some that have ended, which the core refuses. */
static void put_later(struct world *w, struct event_submit *s)
{
    if (rng_below(&w->rng, 8) == 0)
        s->begin_ms = w->now_ms + rng_below(&w->rng, 7200000);
    if (w->lives == 0 || rng_below(&w->rng, 5))
        return;
    uint32_t n = rng_between(&w->rng, 1, 3);
    struct after *a = arena_array(&w->arena, struct after, n);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t back = rng_below(&w->rng, (uint32_t)MIN(w->lives, (size_t)12));
        a[i].first.v = w->live[w->lives - 1 - back];
        a[i].n = rng_below(&w->rng, 2) ? 1 : rng_between(&w->rng, 1, 4);
        a[i].when = (uint8_t)rng_below(&w->rng, AFTER_NEVER);
    }
    s->after = a;
    s->afters = n;
}

struct event world_submit(struct world *w)
{
    struct event ev = { .t_ms = w->now_ms, .kind = EVENT_SUBMIT };
    struct request r = { .replicas = 1 };
    switch (rng_below(&w->rng, 4)) {
    case 0: r.gpu_milli = (uint16_t)(rng_between(&w->rng, 1, 9) * 100); break;
    case 1: r.gpu_mem_mib = rng_between(&w->rng, 1, 12) * 1024; break;
    case 2: r.gpus = (uint16_t)rng_between(&w->rng, 0, 2); break;
    default: r.gpus = (uint16_t)(1u << rng_below(&w->rng, 4)); break;
    }
    r.cpu_milli = rng_below(&w->rng, 9) * 1000;
    r.mem_mib = rng_below(&w->rng, 9) * 4096;
    if (rng_below(&w->rng, 3) == 0) {
        r.replicas = rng_between(&w->rng, 2, 6);
        r.scope = (uint8_t)rng_below(&w->rng, SCOPE_COUNT);
        r.layout = (uint8_t)rng_below(&w->rng, LAYOUT_COUNT);
    }
    r.linked = r.gpus > 1 && rng_below(&w->rng, 3) == 0;
    r.notebook = w->rules && rng_below(&w->rng, 4) == 0;
    r.disk_mib = w->rules ? rng_below(&w->rng, 4) * 4096 : 0;
    ev.submit = (struct event_submit){
        .id = { w->last_job + 1 },
        .tenant = name(w, "t", rng_below(&w->rng, w->tenants)),
        .user = name(w, "u", rng_below(&w->rng, w->users)),
        .models = rng_below(&w->rng, 5) ? STR("") : STR("a100|4090"),
        .request = r,
        .priority = (enum priority)rng_below(&w->rng, PRIO_COUNT),
        .held = w->faults && rng_below(&w->rng, 10) == 0,
        .family = (uint32_t)(w->last_job % 3),
        .traits = classes_of_job(w),
    };
    if (w->devices && rng_below(&w->device_rng, 3) == 0)
        ev.submit.devices = devices_of(w, 3, false);
    if (w->freezes && rng_below(&w->rng, 4)) {
        ev.submit.thaw_cost_ms = rng_between(&w->rng, 1, 60) * 1000;
        ev.submit.restarts = rng_below(&w->rng, 6) == 0;
    }
    if (rng_below(&w->rng, 4) == 0)
        ev.submit.limit_ms = rng_between(&w->rng, 1, 600) * 60000;
    if (w->reserves && rng_below(&w->rng, 4) == 0) {
        uint32_t i = rng_below(&w->rng, 4);
        ev.submit.reservation = name(w, "r", i);
        ev.submit.tenant = name(w, "t", i % w->tenants);
    }
    put_later(w, &ev.submit);
    return ev;
}

/* A machine is of another class, or a job may use others. */
static struct event change_traits(struct world *w)
{
    struct event ev = { .t_ms = w->now_ms, .kind = EVENT_NODE_TRAITS };
    if (rng_below(&w->rng, 2)) {
        ev.node_traits.name = name(w, "n", rng_below(&w->rng, w->nodes));
        ev.node_traits.traits = class_of_node(w);
        return ev;
    }
    ev.kind = EVENT_JOB_TRAITS;
    ev.job_traits.id.v = w->live[rng_below(&w->rng, (uint32_t)w->lives)];
    ev.job_traits.traits = classes_of_job(w);
    return ev;
}

/* A machine of another build, or one of which others take more or less.  Often refused: it is in use. */
static struct event change_node(struct world *w)
{
    uint32_t i = rng_below(&w->rng, w->nodes);
    struct event ev = node_event(w, i);
    ev.kind = EVENT_NODE_CHANGE;
    ev.node.net_switch = ev.node.pool = ev.node.traits = STR("");
    ev.node.cpu_milli -= rng_below(&w->rng, 4) * 1000;
    ev.node.mem_mib -= rng_below(&w->rng, 4) * 1024;
    return ev;
}

struct event world_event(struct world *w)
{
    struct event ev = { .kind = EVENT_JOB };
    w->now_ms += rng_below(&w->rng, 4) ? rng_below(&w->rng, 60000) : rng_below(&w->rng, 7200000);
    if (w->lives == 0 || rng_below(&w->rng, 5) < 2)
        return world_submit(w);
    if (w->rules && rng_below(&w->rng, 25) == 0)
        return change_tenant(w);
    if (w->faults && w->pools && rng_below(&w->rng, 50) == 0)
        return pool_event(w, rng_below(&w->rng, w->pools));
    if (w->reserves && rng_below(&w->rng, 20) == 0)
        return reserve_event(w);
    if (w->traits && rng_below(&w->rng, 12) == 0)
        return change_traits(w);
    if (w->faults && rng_below(&w->rng, 15) == 0)
        return change_node(w);
    if (w->faults && w->pools && rng_below(&w->rng, 50) == 0) {
        ev.kind = EVENT_NODE_POOL;
        ev.node_pool.name = name(w, "n", rng_below(&w->rng, w->nodes));
        if (rng_below(&w->rng, 3))
            ev.node_pool.pool = name(w, "p", rng_below(&w->rng, w->pools));
    } else if (w->faults && rng_below(&w->rng, 12) == 0) {
        ev.kind = EVENT_NODE_STATE;
        ev.node_state.name = name(w, "n", rng_below(&w->rng, w->nodes));
        ev.node_state.state = (enum node_state)rng_below(&w->rng, NODE_STATE_COUNT);
    } else {
        static const enum job_event common[] = { JOB_EV_STARTED,    JOB_EV_EXITED_OK,
                                                 JOB_EV_EXITED_BAD, JOB_EV_FROZE,
                                                 JOB_EV_STARTED,    JOB_EV_EXITED_OK };
        static const enum job_event faulty[] = { JOB_EV_HOLD,    JOB_EV_RELEASE, JOB_EV_RETURNED,
                                                 JOB_EV_FREEZE,  JOB_EV_FROZE,   JOB_EV_THAW,
                                                 JOB_EV_CANCEL,  JOB_EV_STOP,    JOB_EV_ENDED,
                                                 JOB_EV_STARTED, JOB_EV_PLACED };
        ev.job.id.v = w->live[rng_below(&w->rng, (uint32_t)w->lives)];
        ev.job.what = w->faults && rng_below(&w->rng, 2)
                        ? faulty[rng_below(&w->rng, ARRAY_LEN(faulty))]
                        : common[rng_below(&w->rng, ARRAY_LEN(common))];
    }
    ev.t_ms = w->now_ms;
    return ev;
}

void world_accepted(struct world *w, const struct event *ev)
{
    w->changed = w->changed || ev->kind == EVENT_NODE_CHANGE;
    if (ev->kind != EVENT_SUBMIT)
        return;
    w->last_job = ev->submit.id.v;
    vec_grow(w->live, w->lives, w->live_cap);
    w->live[w->lives++] = w->last_job;
}

bool world_never(const struct world *w, const struct core *c, struct event *out)
{
    struct never n;
    if (!core_never(c, &n))
        return false;
    *out = (struct event){ .t_ms = w->now_ms, .kind = EVENT_JOB };
    out->job = (struct event_job){ n.job, JOB_EV_CANCEL };
    return true;
}
