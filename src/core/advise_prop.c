/* Advice on generated worlds: whoever follows it starts in the next pass. */
#include "core/state.h"
#include "tests/lib/test.h"
#include "tests/lib/world.h"

#define SEEDS 1000
#define STEPS 60

static void build(struct world *w, struct core *c)
{
    struct event ev[64],
        p = { .t_ms = w->now_ms, .kind = EVENT_POLICY, .policy = policy_default() };
    struct err e;
    p.policy.claims_max = 0; /* a copy would reserve other machines */
    CHECK(core_apply(c, &p, &e) == 0);
    size_t n = world_build(w, ev, ARRAY_LEN(ev));
    for (size_t i = 0; i < n; i++)
        CHECK(core_apply(c, &ev[i], &e) == 0);
}

static void copy_event(void *copy, const struct event *ev)
{
    struct err e;
    if (core_apply(copy, ev, &e) < 0)
        test_fail(__FILE__, __LINE__, "the copy refuses: %s", e.msg);
}

static struct str model_names(const struct core *c, uint64_t bits, struct arena *a)
{
    const char *text = "";
    for (uint32_t m = 0; m < c->cluster.models.n; m++)
        if (bits >> m & 1)
            text =
                arena_printf(a, "%s%s%s", text, *text ? "|" : "", names_get(&c->cluster.models, m));
    return str_of(text);
}

/* Those that wait for this job would come when it is cancelled, and take its room. */
static void hold_followers(struct core *copy, const struct world *w, uint64_t id)
{
    for (size_t i = 0; i < w->lives; i++) {
        struct after a[AFTER_MAX];
        struct event hold = { .t_ms = w->now_ms, .kind = EVENT_JOB };
        struct err e;
        uint32_t n = core_job_after(copy, (job_id){ w->live[i] }, a);
        hold.job = (struct event_job){ { w->live[i] }, JOB_EV_HOLD };
        for (uint32_t k = 0; k < n; k++)
            if (id >= a[k].first.v && id < a[k].first.v + a[k].n &&
                core_apply(copy, &hold, &e) == 0)
                break;
    }
}

/* On a copy of the world: the job is cancelled, asked for again as advised, and starts. */
static bool advice_helps(const struct core *c, const struct world *w, uint64_t id,
                         const struct advice *ad)
{
    int64_t now_ms = w->now_ms;
    AUTO(core_free_p) struct core *copy = core_new();
    AUTO(arena_free) struct arena a = { 0 };
    struct event ev = { .t_ms = now_ms, .kind = EVENT_JOB };
    struct plan p;
    struct err e;
    core_snapshot(c, copy_event, copy);
    copy->review_ms = INT64_MAX; /* nobody takes the room meanwhile */
    copy->passed_job = copy->last_job;
    const struct job *j = &copy->queue.job[queue_find(&copy->queue, id)];
    const struct share *leaf = &copy->shares.at[j->leaf];
    const struct reservation *in =
        reservation_at(copy, copy->shapes.at[j->shape].request.reservation);
    struct event again = { .t_ms = now_ms, .kind = EVENT_SUBMIT };
    again.submit =
        (struct event_submit){ .id = { copy->last_job + 1 },
                               .tenant = str_of(copy->shares.at[leaf->parent].name),
                               .user = str_of(leaf->name),
                               .request = ad->request,
                               .models = model_names(copy, ad->request.models, &a),
                               .devices = cluster_devices_text(&c->cluster, &ad->request, &a),
                               .priority = (enum priority)j->priority,
                               .limit_ms = ad->limit_ms ? ad->limit_ms : j->limit_ms,
                               .thaw_cost_ms = ad->kind == ADVICE_FREEZE ? 10000 : j->thaw_cost_ms,
                               .restarts = j->restarts,
                               .reservation = str_of(in ? in->name : "") };
    again.submit.request.models = 0;
    hold_followers(copy, w, id);
    ev.job = (struct event_job){ { id }, JOB_EV_CANCEL };
    if (core_apply(copy, &ev, &e) < 0 || core_apply(copy, &again, &e) < 0)
        return false;
    core_pass(copy, now_ms, &a, &p);
    for (size_t i = 0; i < p.n; i++)
        if (p.action[i].job.v == again.submit.id.v && p.action[i].kind == ACT_START)
            return true;
    return false;
}

static void whoever_follows_advice_starts(void)
{
    uint64_t given[ADVICE_COUNT] = { 0 }, all = 0;
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
            core_pass(c, w.now_ms, &a, &p);
            arena_reset(&a);
        }
        for (size_t i = 0; i < w.lives; i++) {
            struct advice ad[ADVICE_MAX];
            uint32_t n = core_advise(c, (job_id){ w.live[i] }, ad);
            for (uint32_t k = 0; k < n; k++) {
                CHECK_AT(seed, advice_helps(c, &w, w.live[i], &ad[k]));
                given[ad[k].kind]++;
                all++;
            }
        }
    }
    CHECK(all > SEEDS / 2); /* the worlds are worth looking at */
    CHECK(given[ADVICE_MODEL] && given[ADVICE_GPUS] && given[ADVICE_REPLICAS]);
    CHECK(given[ADVICE_LIMIT] && given[ADVICE_FREEZE]);
}

static const struct test tests[] = {
    { "whoever follows advice starts", whoever_follows_advice_starts },
};
TEST_CASES(tests)
