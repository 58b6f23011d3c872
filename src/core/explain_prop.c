/* Reasons on generated worlds: with all of them out of the way, and those whose turn is before, the
 * next pass starts the job; with one of them left, it does not. */
#include <stdio.h>

#include "core/state.h"
#include "tests/lib/test.h"
#include "tests/lib/world.h"

#define SEEDS 1000
#define STEPS 70
#define JOBS_EACH 6 /* of one world */
#define ROUNDS 50   /* in which those before a job go */
#define NOBODY SIZE_MAX

/* All that was told to a core, to make a second one like it: a snapshot has no claims. */
struct told {
    struct event ev;
    int64_t pass_ms; /* a pass instead; 0: none */
};

struct scene {
    struct world w;
    struct told *told;
    size_t n, cap;
    uint64_t named[REASON_COUNT], jobs;
};

static void scene_free(struct scene *s)
{
    free(s->told);
    world_free(&s->w);
}

/* ---- the world ---- */

static void do_pass(struct core *c, int64_t now_ms)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct plan p;
    core_pass(c, now_ms, &a, &p);
}

static bool tell(struct scene *s, struct core *c, const struct event *ev)
{
    struct err e;
    if (core_apply(c, ev, &e) < 0)
        return false;
    vec_grow(s->told, s->n, s->cap);
    s->told[s->n++] = (struct told){ .ev = *ev };
    world_accepted(&s->w, ev);
    return true;
}

static void tell_pass(struct scene *s, struct core *c)
{
    vec_grow(s->told, s->n, s->cap);
    s->told[s->n++] = (struct told){ .pass_ms = s->w.now_ms };
    do_pass(c, s->w.now_ms);
}

static struct core *make_again(const struct scene *s)
{
    struct core *c = core_new();
    struct err e;
    for (size_t i = 0; i < s->n; i++)
        if (s->told[i].pass_ms)
            do_pass(c, s->told[i].pass_ms);
        else
            CHECK(core_apply(c, &s->told[i].ev, &e) == 0);
    return c;
}

/* One that was taken when a machine was larger. */
static struct event too_large(struct world *w)
{
    struct event ev = world_submit(w);
    ev.submit.request = (struct request){ .replicas = 1, .gpus = GPUS_PER_NODE_MAX };
    ev.submit.models = ev.submit.devices = STR("");
    ev.submit.known = true;
    return ev;
}

/* CPUs, or memory, and no GPU: what stands beside it has GPUs and not the rest. */
static struct event hungry(struct world *w)
{
    struct event ev = world_submit(w);
    bool cpu = rng_below(&w->rng, 2), both = rng_below(&w->rng, 3) == 0;
    ev.submit.request.replicas = 1;
    ev.submit.request.gpu_milli = 0;
    ev.submit.request.gpu_mem_mib = 0;
    ev.submit.request.gpus = (uint16_t)rng_below(&w->rng, 2);
    ev.submit.request.linked = 0;
    if (cpu || both)
        ev.submit.request.cpu_milli = rng_between(&w->rng, 8, 16) * 1000;
    if (!cpu || both)
        ev.submit.request.mem_mib = rng_between(&w->rng, 32, 64) * 1024;
    return ev;
}

static struct event next_event(struct world *w)
{
    uint32_t what = rng_below(&w->rng, 40);
    struct event ev = world_event(w);
    return what == 0 ? too_large(w) : what < 10 ? hungry(w) : ev;
}

static void build(struct scene *s, struct core *c)
{
    struct event ev[64],
        p = { .t_ms = s->w.now_ms, .kind = EVENT_POLICY, .policy = policy_default() };
    p.policy.claim_after_ms = rng_below(&s->w.rng, 2) ? 600000 : p.policy.claim_after_ms;
    p.policy.min_run_ms = 0;
    CHECK(tell(s, c, &p));
    size_t n = world_build(&s->w, ev, ARRAY_LEN(ev));
    for (size_t i = 0; i < n; i++)
        CHECK(tell(s, c, &ev[i]));
}

/* Somebody freezes a job, if it runs. */
static void freeze_one(struct scene *s, struct core *c)
{
    static const enum job_event steps[] = { JOB_EV_STARTED, JOB_EV_FREEZE, JOB_EV_FROZE };
    if (s->w.lives == 0)
        return;
    struct event ev = { .t_ms = s->w.now_ms, .kind = EVENT_JOB };
    ev.job.id.v = s->w.live[rng_below(&s->w.rng, (uint32_t)s->w.lives)];
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        ev.job.what = steps[i];
        tell(s, c, &ev);
    }
}

static void live(struct scene *s, struct core *c)
{
    for (int step = 0; step < STEPS; step++) {
        struct event ev = next_event(&s->w);
        tell(s, c, &ev);
        if (rng_below(&s->w.rng, 20) == 0)
            freeze_one(s, c);
        while (world_never(&s->w, c, &ev))
            CHECK(tell(s, c, &ev));
        if (step + 1 < STEPS || s->w.last_job % 2 || c->cluster.windows ||
            c->cluster.reservations || c->shares.ruled) /* they are of the pass */
            tell_pass(s, c);
    }
}

/* ---- taking obstacles away ---- */

static void job_event(struct core *c, uint64_t id, enum job_event what, int64_t t_ms)
{
    struct event ev = { .t_ms = t_ms, .kind = EVENT_JOB, .job = { { id }, what } };
    struct err e;
    if (core_apply(c, &ev, &e) < 0)
        test_fail(__FILE__, __LINE__, "%s", e.msg);
}

/* It waits no longer: held, for others may wait for its end; one that cannot be held ends. */
static void put_off(struct core *c, uint64_t id, int64_t t_ms)
{
    enum job_state state = (enum job_state)c->queue.job[queue_find(&c->queue, id)].state;
    job_event(c, id, state == JOB_QUEUED ? JOB_EV_HOLD : JOB_EV_CANCEL, t_ms);
}

/* Machines on which it has room, of the first model that it takes. */
static void add_machines(struct core *c, const struct request *r, int64_t t_ms)
{
    for (uint32_t i = 0; i < r->replicas; i++) {
        char name[16];
        struct err e;
        struct event ev = { .t_ms = t_ms, .kind = EVENT_NODE };
        struct request all = *r;
        AUTO(arena_free) struct arena a = { 0 };
        for (uint32_t d = 0; d < DEVICES_EACH; d++)
            all.device_n[d] = (uint16_t)(r->device_n[d] * r->replicas);
        snprintf(name, sizeof name, "x%u", i);
        ev.node = (struct event_node){ .name = str_of(name),
                                       .model = STR("a100"),
                                       .net_switch = STR("x"),
                                       .gpus = GPUS_PER_NODE_MAX,
                                       .gpu_mem_mib = 1 << 20,
                                       .cpu_milli = r->cpu_milli * r->replicas + 1000,
                                       .mem_mib = r->mem_mib * r->replicas + 1 };
        ev.node.devices = cluster_devices_text(&c->cluster, &all, &a);
        CHECK(core_apply(c, &ev, &e) == 0);
    }
}

/* What is in use on the machines that could run it is free again; limits stay as they are. */
static void free_machines(struct core *c, const struct request *r, enum reason why)
{
    for (uint32_t i = 0; i < c->cluster.nodes; i++) {
        const struct kind *k = &c->cluster.kind[c->cluster.node[i].kind];
        struct node_aside to = node_aside(&c->cluster.node[i]);
        struct room idle = kind_room(k);
        if (!kind_allows(k, r))
            continue;
        if (why == WHY_CPU_BUSY)
            to.room.cpu_milli = idle.cpu_milli;
        else if (why == WHY_MEM_BUSY)
            to.room.mem_mib = idle.mem_mib;
        else if (why == WHY_DEVICE_BUSY)
            memcpy(to.room.device, idle.device, sizeof idle.device);
        else
            to.room = idle;
        cluster_swap(&c->cluster, i, &to);
    }
}

static void wake_machines(struct core *c, const struct request *r, int64_t t_ms)
{
    for (uint32_t i = 0; i < c->cluster.nodes; i++) {
        struct event ev = { .t_ms = t_ms, .kind = EVENT_NODE_STATE };
        struct err e;
        ev.node_state = (struct event_node_state){ str_of(c->cluster.node[i].name), NODE_UP };
        if (kind_allows(&c->cluster.kind[c->cluster.node[i].kind], r) &&
            c->cluster.node[i].state != NODE_UP)
            CHECK(core_apply(c, &ev, &e) == 0);
    }
}

static void open_windows(struct core *c, int64_t t_ms)
{
    for (uint32_t p = 0; p < c->cluster.pool_names.n; p++)
        window_set(c, p, NULL, t_ms);
    for (uint32_t i = 0; i < c->reservations; i++) {
        struct event ev = { .t_ms = t_ms, .kind = EVENT_RESERVE };
        struct err e;
        if (!c->reservation[i].name)
            continue;
        ev.reserve.name = str_of(c->reservation[i].name);
        CHECK(core_apply(c, &ev, &e) == 0);
    }
}

/* Those that room is kept for, or promised to, go. */
static void drop_claims(struct core *c, uint64_t but, int64_t t_ms)
{
    for (uint32_t i = 0; i < c->claims;)
        if (c->queue.job[c->claim[i].job].id == but)
            i++;
        else
            put_off(c, c->queue.job[c->claim[i].job].id, t_ms);
    for (uint32_t i = 0; i < c->promises;)
        if (c->queue.job[c->promise[i].job].id == but)
            i++;
        else
            put_off(c, c->queue.job[c->promise[i].job].id, t_ms);
}

static bool holds_on(const struct job *j, const struct promise *p)
{
    for (uint32_t i = 0; i < j->held->n; i++)
        for (uint32_t k = 0; k < p->n; k++)
            if (j->held->slot[i].node == p->slot[k].node)
                return true;
    return false;
}

/* What was to leave its machines has left. */
static void let_leave(struct core *c, uint64_t id, int64_t t_ms)
{
    const struct promise *p = c->promise;
    while (c->queue.job[p->job].id != id)
        p++;
    for (uint32_t i = 0; i < c->queue.jobs; i++) {
        const struct job *j = &c->queue.job[i];
        bool leaves = j->state == JOB_FREEZING || j->state == JOB_STOPPING;
        if (queue_find(&c->queue, j->id) == i && leaves && holds_on(j, p))
            job_event(c, j->id, j->state == JOB_FREEZING ? JOB_EV_FROZE : JOB_EV_ENDED, t_ms);
    }
}

static void meet(struct core *c, const struct after *a, int64_t t_ms)
{
    for (uint64_t id = a->first.v; id < a->first.v + a->n; id++)
        if (queue_find(&c->queue, id) != NONE)
            later_ended(c, id, a->when != AFTER_BAD, t_ms);
}

/* The limits by model of all that are above it: they are one obstacle. */
static void lift_models(struct core *c, uint32_t leaf)
{
    for (uint32_t i = leaf; i != NONE; i = c->shares.at[i].parent)
        for (uint32_t k = 0; c->shares.at[i].rules && k < c->shares.at[i].rules->caps; k++)
            c->shares.at[i].rules->cap[k].limit_milli = UINT32_MAX;
}

static void lift_pools(struct core *c, uint64_t id)
{
    uint32_t job = queue_find(&c->queue, id);
    struct request r = c->shapes.at[c->queue.job[job].shape].request;
    r.zone = 0;
    core_set_request(c, job, &r);
}

static void lift_traits(struct core *c, uint64_t id)
{
    struct event ev = { .t_ms = c->now_ms, .kind = EVENT_JOB_TRAITS, .job_traits.id = { id } };
    struct err e;
    CHECK(core_apply(c, &ev, &e) == 0);
}

/* Machines that are added could be such as its tenant may use, and in its reservation. */
static void let_anywhere(struct core *c, uint64_t id)
{
    uint32_t job = queue_find(&c->queue, id);
    struct request r = c->shapes.at[c->queue.job[job].shape].request;
    lift_models(c, c->queue.job[job].leaf);
    r.zone = r.reservation = r.traits = 0;
    core_set_request(c, job, &r);
}

/* Everything but the line `left`. */
static void take_away(struct core *c, uint64_t id, const struct explanation *x, size_t left,
                      int64_t t_ms)
{
    const struct job *j = &c->queue.job[queue_find(&c->queue, id)];
    const struct request r = c->shapes.at[j->shape].request;
    struct after a[AFTER_MAX] = { 0 };
    uint32_t afters = j->later ? later_open(c, later_of(c, id), a) : 0, met = 0;
    int64_t begin_ms = j->later ? later_of(c, id)->begin_ms : 0, due_ms = t_ms;
    for (size_t i = 0; i < x->n; i++) {
        enum reason why = x->line[i].why;
        uint32_t last = met == EXPLAIN_AFTERS - 1 ? afters : met + 1;
        struct share *s = &c->shares.at[x->line[i].share.v];
        if (i == left) {
            met += why == WHY_AFTER;
            continue;
        }
        switch ((int)why) {
        case WHY_HELD: job_event(c, id, JOB_EV_RELEASE, t_ms); break;
        case WHY_FROZEN: job_event(c, id, JOB_EV_THAW, t_ms); break;
        case WHY_BEGIN: due_ms = begin_ms; break;
        case WHY_AFTER:
            for (; met < last; met++)
                meet(c, &a[met], t_ms);
            break;
        case WHY_LIMIT_TENANT:
        case WHY_LIMIT_USER:
            if (x->line[i].which == RES_COUNT)
                lift_models(c, j->leaf);
            else
                s->limit.of[x->line[i].which] = NO_LIMIT;
            break;
        case WHY_BUDGET: s->rules->budget.most = BUDGET_MAX; break;
        case WHY_EXPIRED: s->rules->until_ms = 0; break;
        case WHY_POOLS: lift_pools(c, id); break;
        case WHY_NO_MATCH: lift_traits(c, id); break;
        case WHY_TOO_LARGE:
            let_anywhere(c, id);
            add_machines(c, &r, t_ms);
            break;
        case WHY_NO_NODE: wake_machines(c, &r, t_ms); break;
        case WHY_RESERVED:
        case WHY_WINDOW: open_windows(c, t_ms); break;
        case WHY_KEPT: drop_claims(c, id, t_ms); break;
        case WHY_PROMISED: let_leave(c, id, t_ms); break;
        case WHY_NEW: break;
        default: free_machines(c, &r, why); break;
        }
    }
    rules_review(c, t_ms); /* who is closed takes no part in whose turn it is */
    later_due(c, due_ms);
}

/* ---- those before it ---- */

static bool drop_group(struct core *c, uint32_t group, uint64_t until, bool claims, int64_t t_ms)
{
    bool any = false;
    for (uint32_t i = c->queue.group[group].first; i != NONE;) {
        const struct job *j = &c->queue.job[i];
        i = j->next;
        if (j->id == until)
            break;
        if (j->has_claim && !claims)
            continue;
        put_off(c, j->id, t_ms);
        any = true;
    }
    return any;
}

/* Until it is its turn: whoever goes changes shares, and what waited for him may come. */
static void drop_before(struct core *c, uint64_t id, bool claims, int64_t t_ms)
{
    if (claims)
        drop_claims(c, id, t_ms);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t job = queue_find(&c->queue, id);
        AUTO(free_p) bool *before = xcalloc(c->queue.groups + 1, sizeof *before);
        bool any = false;
        if (c->queue.job[job].group == NONE)
            return;
        core_before(c, job, t_ms, before);
        for (uint32_t g = 0; g < c->queue.groups; g++)
            any = (before[g] && drop_group(c, g, id, claims, t_ms)) || any;
        any = drop_group(c, c->queue.job[job].group, id, claims, t_ms) || any;
        if (!any)
            return;
    }
}

/* Does room come, but for the line `left`?  Then those that some is kept for have it first. */
static bool room_comes(const struct explanation *x, size_t left)
{
    static const enum reason room[] = {
        WHY_RESERVED,   WHY_WINDOW,    WHY_TOO_LARGE, WHY_POOLS,    WHY_NO_MATCH, WHY_NO_NODE,
        WHY_MODEL_BUSY, WHY_GPUS_BUSY, WHY_SCATTERED, WHY_CPU_BUSY, WHY_MEM_BUSY, WHY_DEVICE_BUSY
    };
    for (size_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < ARRAY_LEN(room); k++)
            if (i != left && x->line[i].why == room[k])
                return true;
    return false;
}

static bool starts_without(const struct scene *s, uint64_t id, const struct explanation *x,
                           size_t left)
{
    AUTO(core_free_p) struct core *c = make_again(s);
    AUTO(arena_free) struct arena a = { 0 };
    struct plan p;
    bool kept = left != NOBODY && x->line[left].why == WHY_KEPT;
    int64_t t_ms = s->w.now_ms;
    take_away(c, id, x, left, t_ms);
    drop_before(c, id, room_comes(x, left) && !kept, t_ms);
    c->review_ms = INT64_MAX; /* nothing is borrowed or taken for it */
    c->passed_job = c->last_job;
    core_pass_full(c, t_ms, &a, &p);
    uint32_t job = queue_find(&c->queue, id);
    return job != NONE && job_state_holds((enum job_state)c->queue.job[job].state);
}

/* Two of what it starts after share a job: one cannot be met without the other. */
static bool afters_overlap(const struct core *c, uint64_t id)
{
    struct after a[AFTER_MAX];
    uint32_t n = core_job_after(c, (job_id){ id }, a);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (a[i].first.v < a[k].first.v + a[k].n && a[k].first.v < a[i].first.v + a[i].n)
                return true;
    return false;
}

static void say_failed(uint64_t seed, uint64_t id, const struct explanation *x, size_t left)
{
    for (size_t i = 0; i < x->n; i++)
        printf("# seed %llu, job %llu: %s%s: %s\n", (unsigned long long)seed,
               (unsigned long long)id, i == left ? "(left) " : "", reason_slug(x->line[i].why),
               x->line[i].text);
}

/* With a limit lifted, the job that room is kept for may have no need of it any more. */
static bool may_go_by_itself(const struct explanation *x, size_t left)
{
    bool limits = false;
    for (size_t i = 0; i < x->n; i++)
        limits = limits || x->line[i].why == WHY_LIMIT_TENANT || x->line[i].why == WHY_LIMIT_USER;
    return limits && x->line[left].why == WHY_KEPT;
}

static void look_at(struct scene *s, uint64_t seed, uint64_t id, const struct explanation *x)
{
    bool all = starts_without(s, id, x, NOBODY);
    if (!all)
        say_failed(seed, id, x, NOBODY);
    CHECK_AT(seed, all);
    for (size_t i = 0; i < x->n && x->line[0].why != WHY_NEW; i++) {
        if (may_go_by_itself(x, i))
            continue;
        bool too_much = starts_without(s, id, x, i);
        if (too_much)
            say_failed(seed, id, x, i);
        CHECK_AT(seed, !too_much);
    }
    for (size_t i = 0; i < x->n; i++)
        s->named[x->line[i].why]++;
    s->jobs++;
}

static void the_reasons_are_what_is_in_the_way(void)
{
    uint64_t named[REASON_COUNT] = { 0 }, jobs = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        AUTO(scene_free) struct scene s = { 0 };
        struct explanation x;
        struct err e;
        world_init(&s.w, seed);
        build(&s, c);
        live(&s, c);
        for (size_t i = 0; i < s.w.lives && s.jobs < JOBS_EACH; i++) {
            uint64_t id = s.w.live[(i + seed) % s.w.lives]; /* old ones and new ones */
            if (core_explain(c, (job_id){ id }, s.w.now_ms, &x, &e) == 0 && !afters_overlap(c, id))
                look_at(&s, seed, id, &x);
        }
        for (int r = 0; r < REASON_COUNT; r++)
            named[r] += s.named[r];
        jobs += s.jobs;
        CHECK_AT(seed, core_audit(c, &e) == 0); /* asking has changed nothing */
    }
    printf("# seeds 1 to %d, %llu jobs:", SEEDS, (unsigned long long)jobs);
    for (int r = 0; r < REASON_COUNT; r++)
        printf(" %s %llu", reason_slug((enum reason)r), (unsigned long long)named[r]);
    printf("\n");
    for (int r = 0; r < REASON_COUNT; r++)
        CHECK(r == WHY_ROOM || named[r] > 0); /* room: what a pass finds, before it is explained */
}

static const struct test tests[] = {
    { "the reasons are what is in the way", the_reasons_are_what_is_in_the_way },
};
TEST_CASES(tests)
