/* Properties of the whole core on generated worlds. */
#include <stdio.h>

#include "core/core.h"
#include "core/state.h"
#include "tests/lib/test.h"
#include "tests/lib/world.h"

#define SEEDS 400
#define STEPS 250

static void build(struct world *w, struct core *c)
{
    struct event ev[64];
    struct err e;
    size_t n = world_build(w, ev, ARRAY_LEN(ev));
    for (size_t i = 0; i < n; i++)
        CHECK(core_apply(c, &ev[i], &e) == 0);
}

static bool same_plan(const struct plan *a, const struct plan *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->action[i].job.v != b->action[i].job.v || a->action[i].kind != b->action[i].kind ||
            a->action[i].n != b->action[i].n ||
            memcmp(a->action[i].slots, b->action[i].slots, a->action[i].n * sizeof(struct slot)) !=
                0)
            return false;
    return true;
}

/* Whole, and as close together as it asked. */
static bool gang_is_right(const struct core *c, const struct action *a)
{
    struct job_view j;
    uint32_t nodes = 1;
    if (a->kind == ACT_TAKE)
        return core_job(c, a->job, &j) && j.state == JOB_FREEZING;
    if (!core_job(c, a->job, &j) || a->n != j.request.replicas)
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t gpus = (uint32_t)__builtin_popcount(a->slots[i].gpu_mask);
        if (j.request.gpus ? gpus != j.request.gpus || a->slots[i].milli != GPU_MILLI
                           : gpus != (request_shares_gpu(&j.request) ? 1 : 0))
            return false;
        nodes += i && a->slots[i].node != a->slots[i - 1].node;
    }
    if (j.request.scope == SCOPE_NODE && nodes != 1)
        return false;
    for (uint32_t i = 0; j.request.scope == SCOPE_SWITCH && nodes > 1 && i < a->n; i++) {
        uint32_t behind = c->cluster.node[a->slots[i].node].net_switch;
        if (behind == NONE || behind != c->cluster.node[a->slots[0].node].net_switch)
            return false;
    }
    return j.request.layout != LAYOUT_SPREAD || nodes == a->n;
}

/* What every share uses; lives in `a`. */
static struct amounts *all_used(const struct core *c, struct arena *a)
{
    struct amounts *used = arena_array(a, struct amounts, c->shares.n);
    for (uint32_t i = 0; i < c->shares.n; i++)
        used[i] = c->shares.at[i].used;
    return used;
}

/* A limit may be set below what is used; a pass never goes further beyond it. */
static bool keeps_limits(const struct core *c, const struct amounts *before)
{
    for (uint32_t i = 0; i < c->shares.n; i++)
        for (int r = 0; r < RES_COUNT; r++) {
            uint64_t used = c->shares.at[i].used.of[r];
            if (used > c->shares.at[i].limit.of[r] && used > before[i].of[r])
                return false;
        }
    return true;
}

/* What jobs hold of a device on a machine, by what the world said of them. */
static uint64_t devices_held(const struct core *c, uint32_t node, struct str name,
                             const struct str *asked, uint64_t last_job)
{
    uint64_t held = 0;
    for (uint64_t id = 1; id <= last_job; id++) {
        struct job_view j;
        if (asked[id].n && core_job(c, (job_id){ id }, &j))
            held += (uint64_t)devices_count(asked[id], name) * slots_on(j.slots, j.n, node);
    }
    return held;
}

/* What the world said of each machine is what jobs hold there, and what is free. */
static bool devices_add_up(const struct core *c, const struct str *has, const struct str *asked,
                           uint64_t last_job)
{
    struct node_view v;
    for (uint32_t n = 0; core_node(c, (node_id){ n }, &v); n++) {
        struct str rest = has[n];
        struct device d;
        for (uint32_t at = 0; devices_next(&rest, &d); at++)
            if (devices_held(c, n, d.name, asked, last_job) + v.device_free[at] != d.n)
                return false;
    }
    return true;
}

/* Devices are never given out twice, nor lost. */
static void devices_used_and_free_are_all_there_are(void)
{
    uint64_t held = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(world_free) struct world w;
        struct event built[64];
        struct str asked[STEPS + 8] = { 0 }, has[64];
        struct err e;
        world_init(&w, seed);
        if (w.devices == 0)
            continue;
        size_t n = world_build(&w, built, ARRAY_LEN(built));
        for (size_t i = 0, node = 0; i < n; i++) {
            CHECK_AT(seed, core_apply(c, &built[i], &e) == 0);
            if (built[i].kind == EVENT_NODE)
                has[node++] = built[i].node.devices;
        }
        for (int step = 0; step < STEPS; step++) {
            struct plan p;
            struct event ev = world_event(&w);
            bool taken = core_apply(c, &ev, &e) == 0;
            if (taken)
                world_accepted(&w, &ev);
            unsigned node;
            if (taken && ev.kind == EVENT_NODE_CHANGE && sscanf(ev.node.name.p, "n%u", &node) == 1)
                has[node] = ev.node.devices;
            if (taken && ev.kind == EVENT_SUBMIT)
                asked[ev.submit.id.v] = ev.submit.devices;
            core_pass(c, w.now_ms, &a, &p);
            for (size_t i = 0; i < p.n; i++)
                held += asked[p.action[i].job.v].n && p.action[i].kind == ACT_START;
            CHECK_AT(seed, devices_add_up(c, has, asked, w.last_job));
            arena_reset(&a);
        }
    }
    CHECK(held > SEEDS); /* the worlds are worth looking at */
}

static void every_pass_keeps_the_sums_the_limits_and_the_gangs(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(world_free) struct world w;
        struct err e;
        world_init(&w, seed);
        build(&w, c);
        for (int step = 0; step < STEPS; step++) {
            struct plan p;
            struct event ev = world_event(&w);
            if (core_apply(c, &ev, &e) == 0)
                world_accepted(&w, &ev);
            CHECK_AT(seed, core_audit(c, &e) == 0);
            struct amounts *used = all_used(c, &a);
            core_pass(c, w.now_ms, &a, &p);
            CHECK_AT(seed, keeps_limits(c, used));
            for (size_t i = 0; i < p.n; i++)
                CHECK_AT(seed, gang_is_right(c, &p.action[i]));
            CHECK_AT(seed, core_audit(c, &e) == 0);
            arena_reset(&a);
        }
    }
}

static void looking_only_where_something_changed_decides_the_same(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *inc = core_new();
        AUTO(core_free_p) struct core *full = core_new();
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(world_free) struct world w;
        struct err e;
        world_init(&w, seed);
        struct world twin = w;
        build(&w, inc);
        build(&twin, full);
        arena_free(&twin.arena);
        for (int step = 0; step < STEPS; step++) {
            struct plan p, q;
            struct event ev = world_event(&w);
            int rc = core_apply(inc, &ev, &e);
            CHECK_AT(seed, core_apply(full, &ev, &e) == rc);
            if (rc == 0)
                world_accepted(&w, &ev);
            core_pass(inc, w.now_ms, &a, &p);
            core_pass_full(full, w.now_ms, &a, &q);
            CHECK_AT(seed, same_plan(&p, &q));
            arena_reset(&a);
        }
    }
}

/* ---- begin and after ---- */

/* What the world said of each job, and how it ended: nothing of the core's own. */
struct fate {
    int64_t begin_ms;
    struct after after[3];
    uint32_t afters;
    bool ended, ok;
};

static bool is_met(const struct fate *f, const struct after *a)
{
    bool over = true, spoiled = false;
    for (uint64_t id = a->first.v; id < a->first.v + a->n; id++) {
        over = over && f[id].ended;
        spoiled = spoiled || (f[id].ended && !f[id].ok);
    }
    return over && (a->when == AFTER_ANY || (a->when == AFTER_BAD) == spoiled);
}

static bool may_start(const struct fate *f, uint64_t id, int64_t now_ms)
{
    bool may = f[id].begin_ms <= now_ms;
    for (uint32_t i = 0; i < f[id].afters; i++)
        may = may && is_met(f, &f[id].after[i]);
    return may;
}

/* Those of a span that had ended before are the caller's to judge: the core sees the others. */
static void note_submit(struct fate *f, const struct event_submit *s)
{
    struct fate *to = &f[s->id.v];
    to->begin_ms = s->begin_ms;
    to->afters = s->afters;
    for (uint32_t i = 0; i < s->afters; i++) {
        struct after *a = &to->after[i];
        *a = s->after[i];
        for (; a->n && f[a->first.v].ended; a->n--)
            a->first.v++;
    }
}

static void note_ends(const struct core *c, struct fate *f, uint64_t last, const struct event *ev)
{
    struct job_view v;
    for (uint64_t id = 1; id <= last; id++)
        if (!f[id].ended && !core_job(c, (job_id){ id }, &v)) {
            f[id].ended = true;
            f[id].ok = ev->job.what == JOB_EV_EXITED_OK;
        }
}

static void do_event(struct core *c, struct world *w, struct fate *f, struct event ev)
{
    struct err e;
    if (core_apply(c, &ev, &e) < 0)
        return;
    world_accepted(w, &ev);
    if (ev.kind == EVENT_SUBMIT)
        note_submit(f, &ev.submit);
    note_ends(c, f, w->last_job, &ev);
}

/* A span of which one in the middle had ended already: the model does not follow those. */
static bool is_plain(const struct fate *f, const struct event *ev)
{
    for (uint32_t i = 0; ev->kind == EVENT_SUBMIT && i < ev->submit.afters; i++)
        for (uint32_t k = 0; k < ev->submit.after[i].n; k++)
            if (f[ev->submit.after[i].first.v + k].ended)
                return false;
    return true;
}

/* Each that waits is kept from the queue or not, as the model says; counts those that are. */
static uint64_t count_kept(const struct core *c, const struct world *w, const struct fate *f,
                           uint64_t seed)
{
    uint64_t n = 0;
    struct job_view v;
    for (uint64_t id = 1; id <= w->last_job; id++) {
        if (!core_job(c, (job_id){ id }, &v) || v.state != JOB_QUEUED)
            continue;
        bool kept = v.why == WHY_BEGIN || v.why == WHY_AFTER;
        CHECK_AT(seed, kept != may_start(f, id, w->now_ms));
        n += kept;
    }
    CHECK_AT(seed, core_wake_ms(c) > w->now_ms);
    return n;
}

static void a_job_starts_when_its_time_has_come_and_what_it_waits_for_has_ended(void)
{
    uint64_t waited = 0, ended = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(world_free) struct world w;
        static struct fate f[STEPS + 8];
        memset(f, 0, sizeof f);
        world_init(&w, seed);
        build(&w, c);
        for (int step = 0; step < STEPS; step++) {
            struct plan p;
            struct event ev = world_event(&w);
            if (!is_plain(f, &ev))
                continue;
            do_event(c, &w, f, ev);
            for (; world_never(&w, c, &ev); ended++) {
                CHECK_AT(seed, !may_start(f, ev.job.id.v, INT64_MAX));
                do_event(c, &w, f, ev);
            }
            core_pass(c, w.now_ms, &a, &p);
            for (size_t i = 0; i < p.n; i++)
                CHECK_AT(seed, may_start(f, p.action[i].job.v, w.now_ms));
            waited += count_kept(c, &w, f, seed);
            arena_reset(&a);
        }
    }
    CHECK(waited > SEEDS && ended > SEEDS); /* the worlds are worth looking at */
}

/* ---- classes of machines ---- */

/* What the world said last of machines and jobs: nothing of the core's own. */
struct said {
    struct str node[64], job[STEPS + 8];
};

static void note_traits(struct said *s, const struct event *ev)
{
    unsigned node;
    if (ev->kind == EVENT_NODE && sscanf(ev->node.name.p, "n%u", &node) == 1)
        s->node[node] = ev->node.traits;
    else if (ev->kind == EVENT_NODE_TRAITS && sscanf(ev->node_traits.name.p, "n%u", &node) == 1)
        s->node[node] = ev->node_traits.traits;
    else if (ev->kind == EVENT_SUBMIT)
        s->job[ev->submit.id.v] = ev->submit.traits;
    else if (ev->kind == EVENT_JOB_TRAITS)
        s->job[ev->job_traits.id.v] = ev->job_traits.traits;
}

static bool may_use(struct str list, struct str class)
{
    bool may = list.n == 0;
    while (list.n && !may) {
        struct str one;
        str_cut(list, '|', &one, &list);
        may = str_eq(one, class);
    }
    return may;
}

/* Of the slots that a pass gave away; counts those whose job asks for classes. */
static uint64_t check_classes(const struct said *s, const struct plan *p, uint64_t seed)
{
    uint64_t asked = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct action *a = &p->action[i];
        struct str list = s->job[a->job.v];
        for (uint32_t k = 0; a->kind != ACT_TAKE && k < a->n; k++)
            CHECK_AT(seed, may_use(list, s->node[a->slots[k].node]));
        asked += a->kind != ACT_TAKE && list.n;
    }
    return asked;
}

static void a_job_is_placed_on_machines_of_its_classes_only(void)
{
    uint64_t asked = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(world_free) struct world w;
        static struct said s;
        struct event ev[64];
        struct err e;
        world_init(&w, seed);
        w.traits = MAX(w.traits, 2u);
        size_t n = world_build(&w, ev, ARRAY_LEN(ev));
        for (size_t i = 0; i < n; i++) {
            CHECK(core_apply(c, &ev[i], &e) == 0);
            note_traits(&s, &ev[i]);
        }
        for (int step = 0; step < STEPS; step++) {
            struct plan p;
            ev[0] = world_event(&w);
            if (core_apply(c, &ev[0], &e) == 0) {
                world_accepted(&w, &ev[0]);
                note_traits(&s, &ev[0]);
            }
            core_pass(c, w.now_ms, &a, &p);
            asked += check_classes(&s, &p, seed);
            arena_reset(&a);
        }
    }
    CHECK(asked > SEEDS); /* the worlds are worth looking at */
}

/* ---- no job starves ---- */

struct crowd {
    struct core *c;
    struct arena a;
    struct rng rng;
    int64_t now_ms;
    uint64_t last;
    struct {
        uint64_t job;
        int64_t end_ms;
    } run[512];
    size_t running;
};

static uint64_t crowd_submit(struct crowd *w, const char *tenant, uint32_t replicas, uint32_t gpus)
{
    struct err e;
    struct event ev = { .t_ms = w->now_ms, .kind = EVENT_SUBMIT };
    ev.submit = (struct event_submit){ .id = { ++w->last },
                                       .tenant = str_of(tenant),
                                       .user = STR("u"),
                                       .request = { .replicas = replicas, .gpus = (uint16_t)gpus },
                                       .priority = PRIO_NORMAL };
    CHECK(core_apply(w->c, &ev, &e) == 0);
    return w->last;
}

static void crowd_job(struct crowd *w, uint64_t job, enum job_event what)
{
    struct err e;
    struct event ev = { .t_ms = w->now_ms, .kind = EVENT_JOB };
    ev.job = (struct event_job){ { job }, what };
    CHECK(core_apply(w->c, &ev, &e) == 0);
}

/* One step: ends what is over, makes a pass, gives what starts a random life of at most an hour. */
static bool crowd_step(struct crowd *w, uint64_t watched)
{
    struct plan p;
    bool started = false;
    for (size_t i = 0; i < w->running;) {
        if (w->run[i].end_ms > w->now_ms) {
            i++;
            continue;
        }
        crowd_job(w, w->run[i].job, JOB_EV_EXITED_OK);
        w->run[i] = w->run[--w->running];
    }
    core_pass(w->c, w->now_ms, &w->a, &p);
    for (size_t i = 0; i < p.n; i++) {
        crowd_job(w, p.action[i].job.v, JOB_EV_STARTED);
        started = started || p.action[i].job.v == watched;
        w->run[w->running].job = p.action[i].job.v;
        w->run[w->running++].end_ms = w->now_ms + rng_between(&w->rng, 60000, 3600000);
    }
    arena_reset(&w->a);
    return started;
}

static void a_gang_starts_though_small_jobs_never_stop_coming(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        struct crowd w = { .c = c, .rng = { seed }, .now_ms = 0 };
        struct err e;
        bool started = false;
        for (uint32_t t = 0; t < 4; t++) {
            struct event ev = { .kind = EVENT_TENANT };
            ev.tenant =
                (struct event_tenant){ .name = str_of((const char *[]){ "a", "b", "c", "d" }[t]),
                                       .weight_milli = 1000,
                                       .limit = AMOUNTS_NO_LIMIT,
                                       .user_limit = AMOUNTS_NO_LIMIT };
            CHECK(core_apply(c, &ev, &e) == 0);
        }
        for (uint32_t i = 0; i < 8; i++) {
            char nm[] = { 'n', (char)('0' + i), 0 };
            struct event ev = { .kind = EVENT_NODE };
            ev.node = (struct event_node){
                .name = str_of(nm), .model = STR("m"), .gpus = 4, .cpu_milli = 1000, .mem_mib = 1000
            };
            CHECK(core_apply(c, &ev, &e) == 0);
        }
        for (int i = 0; i < 40; i++)
            crowd_submit(&w, (const char *[]){ "a", "b", "c", "d" }[rng_below(&w.rng, 4)], 1, 1);
        uint64_t gang = crowd_submit(&w, "a", 6, 4);
        for (int minute = 0; minute < 24 * 60 && !started; minute++, w.now_ms += 60000) {
            struct core_totals t = core_totals(c);
            for (uint64_t i = t.waiting; i < 40; i++) /* somebody always waits with a small job */
                crowd_submit(&w, (const char *[]){ "a", "b", "c", "d" }[rng_below(&w.rng, 4)], 1,
                             1);
            started = crowd_step(&w, gang);
        }
        arena_free(&w.a);
        CHECK_AT(seed, started);
    }
}

/* ---- fairness ---- */

enum {
    TENANTS = 20,
    NODES = 40,
    GPUS = 8
};

/* Twenty tenants of different weights, all with endless work. */
struct contest {
    struct crowd crowd;
    char name[TENANTS][8];
    double weight[TENANTS], all_weight;
    double got[TENANTS], all_got;
};

static void contest_begin(struct contest *f)
{
    struct err e;
    for (uint32_t t = 0; t < TENANTS; t++) {
        struct event ev = { .kind = EVENT_TENANT };
        snprintf(f->name[t], sizeof f->name[t], "t%u", t);
        f->weight[t] = 1 + t % 4;
        f->all_weight += f->weight[t];
        ev.tenant = (struct event_tenant){ .name = str_of(f->name[t]),
                                           .weight_milli = (uint32_t)f->weight[t] * 1000,
                                           .limit = AMOUNTS_NO_LIMIT,
                                           .user_limit = AMOUNTS_NO_LIMIT };
        CHECK(core_apply(f->crowd.c, &ev, &e) == 0);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        char nm[8];
        struct event ev = { .kind = EVENT_NODE };
        snprintf(nm, sizeof nm, "n%u", i);
        ev.node = (struct event_node){
            .name = str_of(nm), .model = STR("m"), .gpus = GPUS, .cpu_milli = 1000, .mem_mib = 1000
        };
        CHECK(core_apply(f->crowd.c, &ev, &e) == 0);
    }
}

/* Everybody has twenty jobs of many sizes waiting, always. */
static void contest_fill(struct contest *f, uint32_t tenant)
{
    struct share_view v;
    core_share(f->crowd.c, (share_id){ 1 + tenant }, f->crowd.now_ms, &v);
    for (uint64_t i = v.waiting; i < 20; i++)
        crowd_submit(&f->crowd, f->name[tenant], 1, 1u << rng_below(&f->crowd.rng, 4));
}

static void contest_count(struct contest *f, uint32_t tenant)
{
    struct share_view v;
    core_share(f->crowd.c, (share_id){ 1 + tenant }, f->crowd.now_ms, &v);
    f->got[tenant] += (double)v.used.of[RES_GPU];
    f->all_got += (double)v.used.of[RES_GPU];
}

static void backlogged_tenants_get_their_share_within_three_percent(void)
{
    const int64_t half_life_ms = policy_default().half_life_ms;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        struct contest f = { .crowd = { .c = c, .rng = { seed } } };
        contest_begin(&f);
        for (; f.crowd.now_ms < half_life_ms; f.crowd.now_ms += 300000) {
            for (uint32_t t = 0; t < TENANTS; t++)
                contest_fill(&f, t);
            crowd_step(&f.crowd, 0);
            for (uint32_t t = 0; t < TENANTS; t++)
                contest_count(&f, t);
        }
        arena_free(&f.crowd.a);
        for (uint32_t t = 0; t < TENANTS; t++) {
            double part = f.got[t] / f.all_got / (f.weight[t] / f.all_weight);
            CHECK_AT(seed, part > 0.97 && part < 1.03);
        }
    }
}

static const struct test tests[] = {
    { "every pass keeps the sums, the limits and the gangs",
      every_pass_keeps_the_sums_the_limits_and_the_gangs },
    { "devices used and free are all there are", devices_used_and_free_are_all_there_are },
    { "looking only where something changed decides the same",
      looking_only_where_something_changed_decides_the_same },
    { "a job starts when its time has come and what it waits for has ended",
      a_job_starts_when_its_time_has_come_and_what_it_waits_for_has_ended },
    { "a job is placed on machines of its classes only",
      a_job_is_placed_on_machines_of_its_classes_only },
    { "a gang starts though small jobs never stop coming",
      a_gang_starts_though_small_jobs_never_stop_coming },
    { "backlogged tenants get their share within three percent",
      backlogged_tenants_get_their_share_within_three_percent },
};
TEST_CASES(tests)
