/* A pass against a scheduler that looks at everything, on generated worlds.
 *
 * The reference keeps no heaps, groups' states or notes of what did not fit: before each start it
 * asks every waiting job whether it could start now, and walks the tree to the one that is next.
 */
#include "core/state.h"
#include "tests/lib/test.h"
#include "tests/lib/world.h"

#define SEEDS 1000
#define STEPS 120

static void build(struct world *w, struct core *c, bool claims)
{
    struct event ev[64],
        p = { .t_ms = w->now_ms, .kind = EVENT_POLICY, .policy = policy_default() };
    struct err e;
    p.policy.claims_max = claims ? 4 : 0;
    p.policy.claim_after_ms = 3600000;
    p.policy.take_back = claims; /* the reference knows neither */
    CHECK(core_apply(c, &p, &e) == 0);
    size_t n = world_build(w, ev, ARRAY_LEN(ev));
    for (size_t i = 0; i < n; i++)
        CHECK(core_apply(c, &ev[i], &e) == 0);
}

/* Under its limits, and with room; the slots are in c->slots. */
static bool could_start(struct core *c, uint32_t job)
{
    const struct job *j = &c->queue.job[job];
    struct request narrowed;
    const struct request *r = core_job_allowed(c, j, &narrowed);
    return r && place_find(&c->cluster, &c->demand, r, &c->scratch, c->slots);
}

static bool waits(const struct core *c, uint32_t job)
{
    return c->queue.job[job].group != NONE && queue_find(&c->queue, c->queue.job[job].id) == job;
}

static void nothing_that_could_start_waits_after_a_pass(void)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(world_free) struct world w;
        struct err e;
        world_init(&w, seed);
        build(&w, c, true);
        for (int step = 0; step < STEPS; step++) {
            struct plan p;
            struct event ev = world_event(&w);
            if (core_apply(c, &ev, &e) == 0)
                world_accepted(&w, &ev);
            core_pass(c, w.now_ms, &a, &p);
            for (uint32_t i = 0; i < c->queue.jobs; i++)
                CHECK_AT(seed, !waits(c, i) || !could_start(c, i));
            arena_reset(&a);
        }
    }
}

/* ---- the reference ---- */

static float worth_of(const struct core *c, const struct job *j)
{
    const struct request *r = &c->shapes.at[j->shape].request;
    const struct history_row *row = history_row(&c->history, core_of(c, j));
    double worth = row->worth[history_bin(j->ran_ms)] / history_gpus_weight(r);
    return (float)(worth * window_worth(c, r));
}

static bool job_before(const struct core *c, uint32_t a, uint32_t b)
{
    const struct job *x = &c->queue.job[a], *y = &c->queue.job[b];
    const struct user_group gx = { .priority = x->priority, .first_wait_ms = x->wait_ms };
    const struct user_group gy = { .priority = y->priority, .first_wait_ms = y->wait_ms };
    uint32_t rx = queue_rank(&gx, &c->policy, c->now_ms);
    uint32_t ry = queue_rank(&gy, &c->policy, c->now_ms);
    float wx = worth_of(c, x), wy = worth_of(c, y);
    if (rx != ry)
        return rx > ry;
    return wx < wy || wy < wx ? wx > wy : x->id < y->id;
}

/* A job of the same kind that came earlier: it goes first, whatever its age makes of it. */
static bool is_first_of_its_kind(const struct core *c, uint32_t job)
{
    return c->queue.group[c->queue.job[job].group].first == job;
}

/* Marks the shares above each job that could start, with the best such job of each user. */
static void find_startable(struct core *c, uint32_t *best)
{
    memset(best, 0xFF, c->shares.n * sizeof *best); /* NONE */
    for (uint32_t i = 0; i < c->queue.jobs; i++) {
        if (!waits(c, i) || !is_first_of_its_kind(c, i) || !could_start(c, i))
            continue;
        uint32_t leaf = c->queue.job[i].leaf;
        if (best[leaf] == NONE || job_before(c, i, best[leaf]))
            best[leaf] = i;
        for (uint32_t s = c->shares.at[leaf].parent; s != NONE; s = c->shares.at[s].parent)
            best[s] = i;
    }
}

static uint32_t next_child(struct core *c, uint32_t parent, const uint32_t *best)
{
    uint32_t next = NONE;
    for (uint32_t i = 0; i < c->shares.n; i++) {
        if (c->shares.at[i].parent != parent || best[i] == NONE)
            continue;
        share_set_key(&c->shares, i);
        if (next == NONE || share_before(&c->shares, i, next))
            next = i;
    }
    return next;
}

static bool reference_start(struct core *c, uint64_t *out_id)
{
    AUTO(free_p) uint32_t *best = xcalloc(c->shares.n, sizeof *best);
    uint32_t share = SHARE_ROOT;
    find_startable(c, best);
    if (best[SHARE_ROOT] == NONE)
        return false;
    while (!c->shares.at[share].is_user)
        share = next_child(c, share, best);
    uint32_t job = best[share];
    *out_id = c->queue.job[job].id;
    CHECK(could_start(c, job));
    core_place(c, job, c->slots, c->shapes.at[c->queue.job[job].shape].request.replicas, c->now_ms);
    return true;
}

static void check_pass(uint64_t seed, struct core *ref, const struct plan *p, int64_t now_ms)
{
    uint64_t id;
    struct job_view j;
    ref->now_ms = now_ms;
    core_open_pass(ref, now_ms);
    shares_set_levels(&ref->shares, now_ms);
    for (size_t i = 0; i < p->n; i++) {
        if (p->action[i].kind == ACT_TAKE) { /* a window ends */
            core_take(ref, queue_find(&ref->queue, p->action[i].job.v), now_ms);
            continue;
        }
        CHECK_AT(seed, reference_start(ref, &id) && id == p->action[i].job.v);
        CHECK_AT(seed, core_job(ref, (job_id){ id }, &j) && j.n == p->action[i].n);
        CHECK_AT(seed, memcmp(j.slots, p->action[i].slots, j.n * sizeof *j.slots) == 0);
    }
    CHECK_AT(seed, !reference_start(ref, &id));
}

static void a_pass_starts_what_looking_at_everything_would_start(void)
{
    uint64_t started = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        AUTO(core_free_p) struct core *c = core_new();
        AUTO(core_free_p) struct core *ref = core_new();
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(world_free) struct world w;
        struct err e;
        world_init(&w, seed);
        struct world twin = w;
        build(&w, c, false);
        build(&twin, ref, false);
        arena_free(&twin.arena);
        for (int step = 0; step < STEPS; step++) {
            struct plan p;
            struct event ev = world_event(&w);
            int rc = core_apply(c, &ev, &e);
            CHECK_AT(seed, core_apply(ref, &ev, &e) == rc);
            if (rc == 0)
                world_accepted(&w, &ev);
            if (step % 4) /* several things happen between two passes */
                continue;
            core_pass(c, w.now_ms, &a, &p);
            check_pass(seed, ref, &p, w.now_ms);
            started += p.n;
            arena_reset(&a);
        }
    }
    CHECK(started > SEEDS * STEPS / 10); /* the worlds are worth looking at */
}

static const struct test tests[] = {
    { "nothing that could start waits after a pass", nothing_that_could_start_waits_after_a_pass },
    { "a pass starts what looking at everything would start",
      a_pass_starts_what_looking_at_everything_would_start },
};
TEST_CASES(tests)
