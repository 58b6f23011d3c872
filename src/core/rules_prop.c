/* Tenants' rules on generated worlds, against books that are kept beside the core: from what was told
 * and from where jobs are, and nothing of the core's own. */
#include <stdio.h>

#include "core/core.h"
#include "tests/lib/test.h"
#include "tests/lib/world.h"

#define SEEDS 600
#define STEPS 200

struct tenant_book {
    struct event_tenant told;
    bool there;
    int64_t spent, late; /* of its budget */
    uint64_t used[2];    /* of its limits by model, before the pass */
};

struct books {
    struct world w;
    struct core *c;
    struct tenant_book tenant[WORLD_TENANTS];
    uint64_t starts, kept_back, narrowed;
};

static uint32_t number_of(struct str name)
{
    return (uint32_t)(name.p[1] - '0');
}

/* The tenant of a job, and then those above it; NONE: there is none. */
static uint32_t tenant_of(const struct books *b, uint64_t job)
{
    struct job_view j;
    struct share_view leaf, tenant;
    if (!core_job(b->c, (job_id){ job }, &j) || !core_share(b->c, j.leaf, b->w.now_ms, &leaf) ||
        !core_share(b->c, leaf.parent, b->w.now_ms, &tenant))
        return NONE;
    return number_of(str_of(tenant.name));
}

static uint32_t above(const struct books *b, uint32_t tenant)
{
    struct str parent = b->tenant[tenant].told.parent;
    return parent.n ? number_of(parent) : NONE;
}

static bool list_has(struct str list, struct str name)
{
    struct str one;
    while (list.n) {
        str_cut(list, '|', &one, &list);
        if (str_eq(one, name))
            return true;
    }
    return false;
}

/* GPU thousandths of a job on these models; of none: on all. */
static uint64_t held_by(const struct books *b, uint64_t job, struct str models)
{
    struct job_view j;
    struct node_view n;
    uint64_t sum = 0;
    if (!core_job(b->c, (job_id){ job }, &j))
        return 0;
    for (uint32_t i = 0; i < j.n; i++)
        if (core_node(b->c, (node_id){ j.slots[i].node }, &n) &&
            (models.n == 0 || list_has(models, str_of(n.model))))
            sum += (uint64_t)__builtin_popcount(j.slots[i].gpu_mask) * j.slots[i].milli;
    return sum;
}

static bool is_below(const struct books *b, uint32_t tenant, uint32_t top)
{
    while (tenant != NONE && tenant != top)
        tenant = above(b, tenant);
    return tenant == top;
}

static uint64_t tenant_holds(const struct books *b, uint32_t tenant, struct str models)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < b->w.lives; i++)
        if (is_below(b, tenant_of(b, b->w.live[i]), tenant))
            sum += held_by(b, b->w.live[i], models);
    return sum;
}

/* ---- what was told ---- */

static int64_t overlap_ms(int64_t from_ms, int64_t to_ms, int64_t lo_ms, int64_t hi_ms)
{
    int64_t first_ms = MAX(from_ms, lo_ms), last_ms = MIN(to_ms, hi_ms);
    return MAX(last_ms - first_ms, INT64_C(0));
}

/* All that is held is held from then until now. */
static void pass_time(struct books *b, int64_t from_ms)
{
    for (uint32_t i = 0; i < b->w.tenants; i++) {
        struct tenant_book *t = &b->tenant[i];
        if (!t->there || !t->told.budget_gpu_milli_ms)
            continue;
        int64_t held = (int64_t)tenant_holds(b, i, STR("")), now_ms = b->w.now_ms;
        t->spent +=
            held * overlap_ms(from_ms, now_ms, t->told.budget_from_ms, t->told.budget_until_ms);
        t->late += held * overlap_ms(from_ms, now_ms, t->told.budget_until_ms, INT64_MAX);
    }
}

static int64_t spent_in(const struct books *b, uint32_t tenant)
{
    struct share_view v;
    for (uint32_t i = 0; core_share(b->c, (share_id){ i }, b->w.now_ms, &v); i++)
        if (!v.is_user && i && number_of(str_of(v.name)) == tenant)
            return v.spent_gpu_milli_ms;
    return 0;
}

static void note_tenant(struct books *b, const struct event_tenant *t)
{
    uint32_t i = number_of(t->name);
    struct tenant_book *to = &b->tenant[i], was = *to;
    to->there = !t->removed;
    if (t->removed) {
        to->told.budget_gpu_milli_ms = 0;
        return;
    }
    to->told = *t;
    to->late = 0;
    bool had = was.there && was.told.budget_gpu_milli_ms;
    if (had && was.told.budget_from_ms == t->budget_from_ms)
        to->spent += t->budget_until_ms > was.told.budget_until_ms ? was.late : 0;
    else if (had && was.told.budget_until_ms == t->budget_from_ms)
        to->spent = was.late;
    else
        to->spent = spent_in(b, i); /* of what was before, the core knows what runs */
}

/* ---- what is allowed ---- */

static bool is_closed(const struct books *b, uint32_t tenant)
{
    for (; tenant != NONE; tenant = above(b, tenant)) {
        const struct tenant_book *t = &b->tenant[tenant];
        bool in_period = t->told.budget_gpu_milli_ms && t->told.budget_from_ms <= b->w.now_ms &&
                         b->w.now_ms < t->told.budget_until_ms;
        if ((t->told.until_ms && b->w.now_ms >= t->told.until_ms) ||
            (in_period && t->spent >= t->told.budget_gpu_milli_ms))
            return true;
    }
    return false;
}

static bool may_use(const struct books *b, uint32_t tenant, const char *pool)
{
    struct str name = *pool ? str_of(pool) : STR("-");
    for (; tenant != NONE; tenant = above(b, tenant)) {
        struct str pools = b->tenant[tenant].told.pools;
        if (pools.n && !list_has(pools, name))
            return false;
    }
    return true;
}

/* What starts may, and where it does; what is taken for it has to leave. */
static bool is_right(struct books *b, const struct action *a)
{
    uint32_t tenant = tenant_of(b, a->job.v);
    struct node_view n;
    bool closed = is_closed(b, tenant);
    if (a->kind == ACT_TAKE)
        return (a->why == TAKE_ROOM) || closed;
    for (uint32_t i = 0; i < a->n; i++)
        if (!core_node(b->c, (node_id){ a->slots[i].node }, &n) || !may_use(b, tenant, n.pool))
            return false;
    b->starts++;
    return !closed;
}

static void note_used(struct books *b)
{
    for (uint32_t i = 0; i < b->w.tenants; i++)
        for (uint32_t k = 0; k < b->tenant[i].told.model_limits; k++)
            b->tenant[i].used[k] = tenant_holds(b, i, b->tenant[i].told.model_limit[k].models);
}

static bool keeps_models(struct books *b)
{
    for (uint32_t i = 0; i < b->w.tenants; i++)
        for (uint32_t k = 0; b->tenant[i].there && k < b->tenant[i].told.model_limits; k++) {
            const struct model_limit *m = &b->tenant[i].told.model_limit[k];
            uint64_t used = tenant_holds(b, i, m->models);
            if (used > m->gpu_milli && used > b->tenant[i].used[k])
                return false;
            b->narrowed += used && used + GPU_MILLI > m->gpu_milli;
        }
    return true;
}

/* Each that waits for a budget or an end has one that is closed, and the other way round. */
static bool reasons_are_right(struct books *b)
{
    for (size_t i = 0; i < b->w.lives; i++) {
        struct job_view j;
        uint32_t tenant = tenant_of(b, b->w.live[i]);
        if (tenant == NONE || !core_job(b->c, (job_id){ b->w.live[i] }, &j))
            continue;
        bool said = j.why == WHY_BUDGET || j.why == WHY_EXPIRED;
        if (!job_state_holds(j.state) && said && !is_closed(b, tenant))
            return false;
        b->kept_back += !job_state_holds(j.state) && said;
    }
    return true;
}

static bool budgets_are_right(const struct books *b)
{
    for (uint32_t i = 0; i < b->w.tenants; i++)
        if (b->tenant[i].there && b->tenant[i].told.budget_gpu_milli_ms &&
            b->tenant[i].spent != spent_in(b, i))
            return false;
    return true;
}

static void one_step(struct books *b, struct arena *a, uint64_t seed)
{
    struct plan p;
    struct err e;
    int64_t was_ms = b->w.now_ms;
    struct event ev = world_event(&b->w);
    pass_time(b, was_ms);
    CHECK_AT(seed, budgets_are_right(b));
    if (core_apply(b->c, &ev, &e) == 0) {
        world_accepted(&b->w, &ev);
        if (ev.kind == EVENT_TENANT)
            note_tenant(b, &ev.tenant);
    }
    CHECK_AT(seed, budgets_are_right(b));
    note_used(b);
    core_pass(b->c, b->w.now_ms, a, &p);
    for (size_t i = 0; i < p.n; i++)
        CHECK_AT(seed, is_right(b, &p.action[i]));
    CHECK_AT(seed, keeps_models(b) && reasons_are_right(b));
    CHECK_AT(seed, core_wake_ms(b->c) > b->w.now_ms);
    arena_reset(a);
}

static void the_core_keeps_the_rules_that_its_tenants_were_given(void)
{
    uint64_t starts = 0, kept_back = 0, narrowed = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        AUTO(arena_free) struct arena a = { 0 };
        static struct books b;
        struct event ev[64];
        struct err e;
        b = (struct books){ .c = c };
        world_init(&b.w, seed);
        b.w.rules = true;
        size_t n = world_build(&b.w, ev, ARRAY_LEN(ev));
        for (size_t i = 0; i < n; i++) {
            CHECK(core_apply(c, &ev[i], &e) == 0);
            if (ev[i].kind == EVENT_TENANT)
                note_tenant(&b, &ev[i].tenant);
        }
        for (int step = 0; step < STEPS; step++)
            one_step(&b, &a, seed);
        starts += b.starts;
        kept_back += b.kept_back;
        narrowed += b.narrowed;
        world_free(&b.w);
    }
    printf("# %llu starts, %llu kept back, %llu limits by model nearly full\n",
           (unsigned long long)starts, (unsigned long long)kept_back, (unsigned long long)narrowed);
    CHECK(starts > SEEDS && kept_back > SEEDS && narrowed > SEEDS); /* worth looking at */
}

static const struct test tests[] = {
    { "the core keeps the rules that its tenants were given",
      the_core_keeps_the_rules_that_its_tenants_were_given },
};
TEST_CASES(tests)
