/* What a tenant has beyond plain limits: models, pools, an end, a budget; notebooks and scratch space. */
#include "core/rules.h"

#include "core/state.h"
#include "tests/lib/small.h"

#define GPU_HOUR (INT64_C(1000) * HOUR_MS)

static struct request whole(uint16_t gpus)
{
    return (struct request){ .replicas = 1, .gpus = gpus };
}

static uint64_t submit(struct small *s, const char *tenant, const char *models, struct request r)
{
    struct event ev = submit_event(s, tenant, r);
    ev.submit.models = str_of(models);
    small_apply(s, ev);
    return ++s->last;
}

/* One that a freeze costs something; restarts: its work. */
static uint64_t submit_frozen(struct small *s, const char *tenant, uint16_t gpus, bool restarts)
{
    struct event ev = submit_event(s, tenant, whole(gpus));
    ev.submit.thaw_cost_ms = 10000;
    ev.submit.restarts = restarts;
    small_apply(s, ev);
    return ++s->last;
}

static void refused(struct small *s, struct event ev, enum err_code code, const char *msg)
{
    struct err e = { 0 };
    CHECK(small_try(s, ev, &e) < 0 && e.code == code && e.hint[0]);
    CHECK_STR(e.msg, msg);
}

static struct explanation explained(struct small *s, uint64_t job)
{
    struct explanation x = { 0 };
    struct err e;
    CHECK(core_explain(s->c, (job_id){ job }, s->now_ms, &x, &e) == 0);
    return x;
}

static void says(struct small *s, uint64_t job, enum reason why, const char *text)
{
    struct explanation x = explained(s, job);
    CHECK(x.n == 1 && x.line[0].why == why);
    CHECK_STR(x.line[0].text, text);
}

static enum reason why(const struct small *s, uint64_t job)
{
    struct job_view v = { 0 };
    CHECK(core_job(s->c, (job_id){ job }, &v));
    return v.why;
}

static uint32_t where(const struct small *s, uint64_t job)
{
    struct job_view v = { 0 };
    CHECK(core_job(s->c, (job_id){ job }, &v) && v.n == 1);
    return v.slots[0].node;
}

static struct share_view view(const struct small *s, const char *name)
{
    struct share_view v = { 0 };
    for (uint32_t i = 0; core_share(s->c, (share_id){ i }, s->now_ms, &v); i++)
        if (!v.is_user && strcmp(v.name, name) == 0)
            return v;
    test_fail(__FILE__, __LINE__, "no share '%s'", name);
    return v;
}

static void audit(const struct small *s)
{
    struct err e = { 0 };
    if (core_audit(s->c, &e) < 0)
        test_fail(__FILE__, __LINE__, "%s", e.msg);
}

/* ---- notebooks and scratch space ---- */

static void notebooks_and_scratch_space_count_like_jobs_and_memory(void)
{
    AUTO(small_free) struct small s = small_new();
    struct event t = tenant_event("a", "", 1);
    struct request book = { .replicas = 1, .cpu_milli = 100, .notebook = 1, .disk_mib = 1024 };
    t.tenant.limit.of[RES_NOTEBOOKS] = 1;
    t.tenant.limit.of[RES_STORAGE] = 3000;
    small_apply(&s, t);
    small_node(&s, "n", 0);
    uint64_t first = small_submit(&s, "a", book), second = small_submit(&s, "a", book);
    CHECK(small_pass(&s) == 1 && small_started(&s, first));
    says(&s, second, WHY_LIMIT_TENANT,
         "tenant 'a' uses 1 of the 1 notebooks it may use at a time; this job needs 1");
    struct request disk = { .replicas = 2, .cpu_milli = 100, .disk_mib = 1000 };
    uint64_t third = small_submit(&s, "a", disk);
    CHECK(small_pass(&s) == 0);
    says(&s, third, WHY_LIMIT_TENANT,
         "tenant 'a' uses 1024 of the 3000 MiB of scratch space it may use at a time; this job "
         "needs 2000");
    disk.disk_mib = 2000;
    refused(&s, submit_event(&s, "a", disk), ERR_QUOTA,
            "job 4: the job asks for 4000 MiB of scratch space; 'a' may use 3000 at a time");
    small_job(&s, first, JOB_EV_STARTED);
    small_job(&s, first, JOB_EV_FREEZE);
    small_job(&s, first, JOB_EV_FROZE); /* it holds no place, and does not count */
    CHECK(small_pass(&s) == 1 && small_started(&s, second) != small_started(&s, third));
    audit(&s);
}

/* ---- limits by model ---- */

/* One machine with 4 A100 and one with 4 V100; the tenant may have two A100. */
static struct small two_models(uint64_t a100_milli)
{
    struct small s = small_new();
    struct event t = tenant_event("a", "", 1);
    struct model_limit limit = { STR("A100"), a100_milli };
    t.tenant.model_limit = &limit;
    t.tenant.model_limits = 1;
    small_apply(&s, t);
    small_tenant(&s, "b");
    small_apply(&s, node_event("n0", "A100", 4));
    small_apply(&s, node_event("n1", "V100", 4));
    return s;
}

static void a_model_at_its_limit_leaves_the_others(void)
{
    AUTO(small_free) struct small s = two_models(2000);
    uint64_t a = submit(&s, "a", "A100", whole(2));
    CHECK(small_pass(&s) == 1);
    uint64_t any = submit(&s, "a", "", whole(1));
    uint64_t more = submit(&s, "a", "A100", whole(1)), two = submit(&s, "a", "A100|V100", whole(2));
    CHECK(small_pass(&s) == 2 && !small_started(&s, more));
    CHECK(where(&s, a) == 0 && where(&s, any) == 1 && where(&s, two) == 1);
    says(&s, more, WHY_LIMIT_TENANT,
         "tenant 'a' uses 2 of the 2 GPUs of A100 it may use at a time; this job needs 1");
    CHECK(why(&s, more) == WHY_LIMIT_TENANT);
    struct share_model m;
    uint32_t tenant = shares_tenant(&s.c->shares, STR("a"));
    CHECK(core_share_model(s.c, (share_id){ tenant }, 0, &m) && m.used_milli == 2000);
    CHECK(!core_share_model(s.c, (share_id){ tenant }, 1, &m) && view(&s, "a").model_limits == 1);
    uint64_t other = submit(&s, "b", "A100", whole(2)); /* not its limit */
    CHECK(small_pass(&s) == 1 && small_started(&s, other));
    small_job(&s, a, JOB_EV_CANCEL);
    small_job(&s, a, JOB_EV_ENDED);
    CHECK(small_pass(&s) == 1 && where(&s, more) == 0);
    audit(&s);
}

static void a_job_that_may_use_one_model_only_starts_when_room_comes_there(void)
{
    AUTO(small_free) struct small s = two_models(0);
    uint64_t full = submit(&s, "b", "V100", whole(4));
    CHECK(small_pass(&s) == 1 && small_started(&s, full));
    uint64_t waits = submit(&s, "a", "", whole(2));
    uint64_t free = submit(&s, "b", "", whole(2)); /* the same shape, and not kept back */
    CHECK(small_pass(&s) == 1 && small_started(&s, free) && where(&s, free) == 0);
    says(&s, waits, WHY_MODEL_BUSY,
         "needs 2 GPUs of the models it asks for; 0 free now, at most 0 on one machine");
    small_job(&s, free, JOB_EV_CANCEL);
    small_job(&s, free, JOB_EV_ENDED); /* an A100 is no use to it */
    CHECK(small_pass(&s) == 0);
    small_job(&s, full, JOB_EV_CANCEL);
    small_job(&s, full, JOB_EV_ENDED);
    CHECK(small_pass(&s) == 1 && where(&s, waits) == 1);
}

static void a_gang_counts_whole_against_each_model_that_it_may_touch(void)
{
    AUTO(small_free) struct small s = two_models(3000);
    struct request gang = { .replicas = 6, .gpus = 1 };
    refused(&s, submit_event(&s, "a", gang), ERR_QUOTA,
            "job 1: the job asks for 6 GPUs; 'a' may use 3 of A100 at a time");
    gang.replicas = 4;
    uint64_t on_v100 = submit(&s, "a", "", gang);
    CHECK(small_pass(&s) == 1);
    struct job_view v;
    CHECK(core_job(s.c, (job_id){ on_v100 }, &v) && v.n == 4);
    for (uint32_t i = 0; i < v.n; i++)
        CHECK_INT(v.slots[i].node, 1);
    gang.replicas = 3;
    uint64_t on_a100 = submit(&s, "a", "", gang);
    CHECK(small_pass(&s) == 1 && small_started(&s, on_a100));
}

static void models_may_be_limited_together_and_above(void)
{
    AUTO(small_free) struct small s = small_new();
    struct event top = tenant_event("top", "", 1), low = tenant_event("low", "top", 1);
    struct model_limit both = { STR("A100|V100"), 3000 }, v100 = { STR("V100"), 1000 };
    top.tenant.model_limit = &both;
    low.tenant.model_limit = &v100;
    top.tenant.model_limits = low.tenant.model_limits = 1;
    small_apply(&s, top);
    small_apply(&s, low);
    small_apply(&s, tenant_event("sib", "top", 1));
    small_apply(&s, node_event("n0", "A100", 4));
    small_apply(&s, node_event("n1", "V100", 4));
    uint64_t sib = submit(&s, "sib", "V100", whole(1)), v = submit(&s, "low", "V100", whole(1));
    uint64_t next = submit(&s, "low", "", whole(1)), last = submit(&s, "low", "", whole(1));
    CHECK(small_pass(&s) == 3 && where(&s, next) == 0 && small_started(&s, v));
    struct explanation x = explained(&s, last);
    CHECK(x.n == 1 && x.line[0].which == RES_COUNT);
    CHECK_STR(x.line[0].text, "tenant 'low' uses 1 of the 1 GPUs of V100 it may use at a time; "
                              "this job needs 1; and 1 limits of GPU models more");
    small_job(&s, sib, JOB_EV_CANCEL); /* of a sibling: the limit above has air */
    small_job(&s, sib, JOB_EV_ENDED);
    CHECK(small_pass(&s) == 1 && where(&s, last) == 0);
    audit(&s);
}

/* ---- pools ---- */

static void put_pools(struct small *s, const char *name, const char *parent, const char *pools)
{
    struct event t = tenant_event(name, parent, 1);
    t.tenant.pools = str_of(pools);
    small_apply(s, t);
}

/* n0 in pool a, n1 in pool b, n2 in none; two GPUs each. */
static struct small pools_new(void)
{
    struct small s = small_new();
    for (int i = 0; i < 3; i++) {
        struct event n = node_event((const char *[]){ "n0", "n1", "n2" }[i], "m", 2);
        n.node.pool = str_of((const char *[]){ "a", "b", "" }[i]);
        if (n.node.pool.n)
            small_apply(&s, (struct event){ .kind = EVENT_POOL, .pool.name = n.node.pool });
        small_apply(&s, n);
    }
    return s;
}

static void jobs_go_to_the_pools_of_their_tenant(void)
{
    AUTO(small_free) struct small s = pools_new();
    put_pools(&s, "t", "", "b|-|new");
    put_pools(&s, "below", "t", "a|b");
    small_tenant(&s, "all");
    uint64_t b = small_gpus(&s, "below", 2), none = small_gpus(&s, "t", 2);
    uint64_t third = small_gpus(&s, "t", 2), other = small_gpus(&s, "all", 2);
    CHECK(small_pass(&s) == 3 && where(&s, b) == 1 && where(&s, none) == 2 &&
          where(&s, other) == 0);
    says(&s, third, WHY_GPUS_BUSY, "needs 2 GPUs; 0 free now, at most 0 on one machine");
    small_apply(&s, (struct event){ .kind = EVENT_POOL, .pool.name = STR("new") });
    struct event n = node_event("n3", "m", 2); /* a pool that is new, and named already */
    n.node.pool = STR("new");
    small_apply(&s, n);
    CHECK(small_pass(&s) == 1 && where(&s, third) == 3);
    CHECK_STR(view(&s, "t").pools, "b|-|new");
}

static void what_fits_in_none_of_its_pools_is_refused(void)
{
    AUTO(small_free) struct small s = pools_new();
    small_node(&s, "large", 8);
    put_pools(&s, "t", "", "b|a");
    refused(&s, submit_event(&s, "t", whole(4)), ERR_INVALID,
            "job 1: tenant 't' may use the machines of pool 'a', pool 'b' only: the job fits on "
            "none of them");
    struct request gang = { .replicas = 3, .gpus = 2 };
    refused(&s, submit_event(&s, "t", gang), ERR_INVALID,
            "job 1: tenant 't' may use the machines of pool 'a', pool 'b' only: the job fits on "
            "none of them");
    put_pools(&s, "below", "t", "-");
    refused(&s, submit_event(&s, "below", whole(1)), ERR_INVALID,
            "job 1: tenant 'below' may use no machine at all: the job fits on none of them");
}

static void jobs_follow_when_pools_change_and_what_runs_goes_on(void)
{
    AUTO(small_free) struct small s = pools_new();
    put_pools(&s, "t", "", "a");
    uint64_t runs = small_gpus(&s, "t", 2), waits = small_gpus(&s, "t", 2);
    CHECK(small_pass(&s) == 1 && where(&s, runs) == 0);
    put_pools(&s, "t", "", "b");
    CHECK(small_pass(&s) == 1 && where(&s, waits) == 1 && where(&s, runs) == 0);
    small_job(&s, waits, JOB_EV_CANCEL);
    small_job(&s, waits, JOB_EV_ENDED);
    uint64_t lost = small_gpus(&s, "t", 2);
    put_pools(&s, "t", "", "nowhere");
    CHECK(small_pass(&s) == 0 && why(&s, lost) == WHY_POOLS);
    says(&s, lost, WHY_POOLS,
         "tenant 't' may use the machines of pool 'nowhere' only: none of them could run it");
    CHECK(!explained(&s, lost).has_eta);
    put_pools(&s, "t", "", "");
    CHECK(small_pass(&s) == 1 && where(&s, lost) == 1);
    audit(&s);
}

/* ---- the end of a tenant's time ---- */

static void after_its_end_nothing_starts_and_what_can_be_frozen_is(void)
{
    AUTO(small_free) struct small s = small_new();
    struct event t = tenant_event("course", "", 1);
    t.tenant.until_ms = 10 * HOUR_MS;
    small_apply(&s, t);
    small_apply(&s, tenant_event("pupils", "course", 1));
    small_node(&s, "n", 4);
    uint64_t saves = submit_frozen(&s, "pupils", 1, false);
    uint64_t loses = submit_frozen(&s, "pupils", 1, true), stays = small_gpus(&s, "course", 1);
    CHECK(small_pass_at(&s, HOUR_MS) == 3 && core_wake_ms(s.c) == 10 * HOUR_MS);
    for (uint64_t id = saves; id <= stays; id++)
        small_job(&s, id, JOB_EV_STARTED);
    CHECK(small_pass_at(&s, 10 * HOUR_MS - 1) == 0);
    uint64_t late = small_gpus(&s, "pupils", 1);
    CHECK(small_pass_at(&s, 10 * HOUR_MS) == 1);
    const struct action *a = &s.plan.action[0];
    CHECK(a->kind == ACT_TAKE && a->job.v == saves && a->by.v == 0 && a->why == TAKE_EXPIRED);
    CHECK(small_state(&s, loses) == JOB_RUNNING && small_state(&s, stays) == JOB_RUNNING);
    small_job(&s, saves, JOB_EV_FROZE);
    CHECK(small_pass_at(&s, 11 * HOUR_MS) == 0 && why(&s, late) == WHY_EXPIRED);
    says(
        &s, late, WHY_EXPIRED,
        "the time of tenant 'course' ended at 1970-01-01T10:00:00Z: nothing of it starts any more");
    CHECK(!explained(&s, saves).has_eta && core_wake_ms(s.c) > s.now_ms);
    t.tenant.until_ms = 20 * HOUR_MS;
    small_apply(&s, t);
    CHECK(small_pass_at(&s, 12 * HOUR_MS) == 2 && small_state(&s, saves) == JOB_THAWING);
}

/* ---- budgets ---- */

static void put_budget(struct small *s, const char *name, int64_t hours, int64_t from_ms,
                       int64_t until_ms)
{
    struct event t = tenant_event(name, "", 1);
    t.tenant.budget_gpu_milli_ms = hours * GPU_HOUR;
    t.tenant.budget_from_ms = from_ms;
    t.tenant.budget_until_ms = until_ms;
    small_apply(s, t);
}

static void a_budget_stops_at_its_end_until_the_next_period(void)
{
    AUTO(small_free) struct small s = small_new();
    put_budget(&s, "a", 10, HOUR_MS, 100 * HOUR_MS);
    small_tenant(&s, "b");
    small_node(&s, "n", 4);
    uint64_t saves = submit_frozen(&s, "a", 2, false);
    CHECK(small_pass_at(&s, 0) == 1);
    small_job(&s, saves, JOB_EV_STARTED);
    CHECK(core_wake_ms(s.c) == 6 * HOUR_MS); /* counts from the first hour on */
    struct request half = { .replicas = 1, .gpu_milli = 500 };
    s.now_ms = 2 * HOUR_MS;
    uint64_t share = small_submit(&s, "a", half);
    CHECK(small_pass_at(&s, 2 * HOUR_MS) == 1);
    small_job(&s, share, JOB_EV_STARTED);
    CHECK(view(&s, "a").spent_gpu_milli_ms == 2 * GPU_HOUR);
    int64_t out_ms = 2 * HOUR_MS + 8 * HOUR_MS * 2 / 5;
    CHECK_INT(core_wake_ms(s.c), out_ms);
    CHECK(small_pass_at(&s, out_ms - 1) == 0);
    CHECK(small_pass_at(&s, out_ms) == 1 && s.plan.action[0].why == TAKE_BUDGET);
    CHECK(s.plan.action[0].job.v == saves && s.plan.action[0].by.v == 0);
    CHECK(core_wake_ms(s.c) == 100 * HOUR_MS && small_state(&s, share) == JOB_RUNNING);
    small_job(&s, saves, JOB_EV_FROZE);
    CHECK(small_pass_at(&s, out_ms + 1) == 0 && why(&s, saves) == WHY_BUDGET);
    says(&s, saves, WHY_BUDGET,
         "tenant 'a' has used 10 of its 10 GPU-hours; its next period begins at "
         "1970-01-05T04:00:00Z");
    struct explanation x = explained(&s, saves);
    CHECK(x.has_eta && x.eta.p50_ms >= 100 * HOUR_MS);
    small_job(&s, share, JOB_EV_EXITED_OK);
    CHECK(small_pass_at(&s, 100 * HOUR_MS) == 1 && small_started(&s, saves)); /* nobody says more */
    audit(&s);
}

static void the_next_period_begins_with_what_was_spent_since_the_last(void)
{
    AUTO(small_free) struct small s = small_new();
    put_budget(&s, "a", 100, 0, 10 * HOUR_MS);
    small_node(&s, "n", 4);
    uint64_t job = small_gpus(&s, "a", 2);
    CHECK(small_pass_at(&s, 0) == 1);
    small_job(&s, job, JOB_EV_STARTED);
    s.now_ms = 12 * HOUR_MS;
    CHECK(view(&s, "a").spent_gpu_milli_ms == 20 * GPU_HOUR);
    put_budget(&s, "a", 50, 10 * HOUR_MS, 20 * HOUR_MS); /* said two hours late */
    CHECK(view(&s, "a").spent_gpu_milli_ms == 4 * GPU_HOUR);
    s.now_ms = 13 * HOUR_MS;
    put_budget(&s, "a", 3, 10 * HOUR_MS, 20 * HOUR_MS); /* the same period: less */
    CHECK(view(&s, "a").spent_gpu_milli_ms == 6 * GPU_HOUR && view(&s, "a").closed == WHY_BUDGET);
    small_tenant(&s, "a");
    CHECK(view(&s, "a").budget_gpu_milli_ms == 0 && !view(&s, "a").closed);
    s.now_ms = 14 * HOUR_MS;
    put_budget(&s, "a", 50, 5 * HOUR_MS, 20 * HOUR_MS); /* a first one: what runs, since then */
    CHECK(view(&s, "a").spent_gpu_milli_ms == 18 * GPU_HOUR);
    struct event past = { .kind = EVENT_PAST };
    past.past = (struct event_past){ .tenant = STR("a"), .spent = 20 * GPU_HOUR };
    small_apply(&s, past); /* whoever keeps it knows better */
    s.now_ms = 15 * HOUR_MS;
    CHECK(view(&s, "a").spent_gpu_milli_ms == 22 * GPU_HOUR);
}

static void a_policy_may_let_run_what_runs(void)
{
    AUTO(small_free) struct small s = small_new();
    struct event p = { .kind = EVENT_POLICY, .policy = policy_default() };
    p.policy.budget_freezes = 0;
    small_apply(&s, p);
    put_budget(&s, "a", 1, 0, 100 * HOUR_MS);
    small_node(&s, "n", 4);
    uint64_t saves = submit_frozen(&s, "a", 1, false);
    CHECK(small_pass_at(&s, 0) == 1);
    small_job(&s, saves, JOB_EV_STARTED);
    uint64_t next = small_gpus(&s, "a", 1);
    CHECK(small_pass_at(&s, HOUR_MS) == 0 && why(&s, next) == WHY_BUDGET);
    CHECK(small_state(&s, saves) == JOB_RUNNING);
}

/* ---- changes ---- */

static void a_limit_below_what_is_used_stops_starts_and_ends_nothing(void)
{
    AUTO(small_free) struct small s = two_models(4000);
    uint64_t runs = submit(&s, "a", "A100", whole(3));
    CHECK(small_pass(&s) == 1);
    struct event t = tenant_event("a", "", 1);
    struct model_limit limit = { STR("A100"), 1000 };
    t.tenant.model_limit = &limit;
    t.tenant.model_limits = 1;
    t.tenant.limit.of[RES_GPU] = 2000;
    small_apply(&s, t);
    uint64_t next = submit(&s, "a", "V100", whole(1));
    CHECK(small_pass(&s) == 0 && small_state(&s, runs) == JOB_STARTING);
    t.tenant.limit.of[RES_GPU] = NO_LIMIT;
    small_apply(&s, t);
    CHECK(small_pass(&s) == 1 && small_started(&s, next)); /* the A100 alone are over */
    audit(&s);
}

static void what_a_tenant_uses_follows_it_to_its_new_parent(void)
{
    AUTO(small_free) struct small s = small_new();
    struct event to = tenant_event("to", "", 1);
    struct model_limit limit = { STR("m"), 3000 };
    to.tenant.model_limit = &limit;
    to.tenant.model_limits = 1;
    to.tenant.budget_gpu_milli_ms = 100 * GPU_HOUR;
    to.tenant.budget_until_ms = 100 * HOUR_MS;
    small_tenant(&s, "from");
    small_apply(&s, tenant_event("a", "from", 1)); /* its new parent comes later than it */
    small_apply(&s, to);
    small_node(&s, "n", 8);
    uint64_t runs = small_gpus(&s, "a", 2), waits = small_gpus(&s, "to", 2);
    CHECK(small_pass_at(&s, 0) == 2);
    small_job(&s, runs, JOB_EV_STARTED);
    small_job(&s, waits, JOB_EV_STARTED);
    small_job(&s, waits, JOB_EV_EXITED_OK);
    s.now_ms = 10 * HOUR_MS;
    small_apply(&s, tenant_event("a", "to", 1));
    CHECK(view(&s, "from").used.of[RES_GPU] == 0 && view(&s, "to").used.of[RES_GPU] == 2000);
    CHECK(view(&s, "to").spent_gpu_milli_ms == 0); /* what it spent before was not of this one */
    s.now_ms = 11 * HOUR_MS;
    CHECK(view(&s, "to").spent_gpu_milli_ms == 2 * GPU_HOUR);
    waits = small_gpus(&s, "to", 2);
    CHECK(small_pass_at(&s, 11 * HOUR_MS) == 0 && why(&s, waits) == WHY_LIMIT_TENANT);
    small_apply(&s, tenant_event("a", "", 1));
    CHECK(small_pass_at(&s, 12 * HOUR_MS) == 1 && small_started(&s, waits));
    audit(&s);
}

static void a_tenant_is_removed_when_it_is_empty(void)
{
    AUTO(small_free) struct small s = small_new();
    struct err e;
    struct event gone = tenant_event("a", "", 1);
    gone.tenant.removed = true;
    small_tenant(&s, "a");
    small_apply(&s, tenant_event("b", "a", 1));
    small_node(&s, "n", 4);
    uint64_t job = small_gpus(&s, "a", 1);
    refused(&s, gone, ERR_CONFLICT, "tenant 'a' has jobs that have not ended, 1 for one");
    small_job(&s, job, JOB_EV_CANCEL);
    refused(&s, gone, ERR_CONFLICT, "tenant 'a' has tenants below it, 'b' for one");
    gone.tenant.name = STR("b");
    small_apply(&s, gone);
    gone.tenant.name = STR("a");
    small_apply(&s, gone);
    CHECK(view(&s, "a").removed && small_try(&s, gone, &e) < 0 && e.code == ERR_NOT_FOUND);
    CHECK(small_try(&s, submit_event(&s, "a", whole(1)), &e) < 0 && e.code == ERR_NOT_FOUND);
    small_tenant(&s, "a");
    CHECK(!view(&s, "a").removed && small_gpus(&s, "a", 1) && small_pass(&s) == 1);
}

static void what_cannot_be_is_refused(void)
{
    AUTO(small_free) struct small s = small_new();
    struct err e;
    struct model_limit limit[MODEL_LIMITS_MAX + 1] = { { STR("m"), 1 } };
    struct event t = tenant_event("a", "", 1), bad;
    small_apply(&s, t);
    bad = t;
    bad.tenant.model_limit = limit;
    bad.tenant.model_limits = MODEL_LIMITS_MAX + 1;
    CHECK(small_try(&s, bad, &e) < 0 && e.code == ERR_INVALID);
    bad.tenant.model_limits = 2; /* the second has no models */
    CHECK(small_try(&s, bad, &e) < 0 && s.c->shares.ruled == 0);
    bad = t;
    bad.tenant.pools = STR("a||b");
    CHECK(small_try(&s, bad, &e) < 0 && e.code == ERR_INVALID);
    bad = t;
    bad.tenant.budget_gpu_milli_ms = 1;
    CHECK(small_try(&s, bad, &e) < 0); /* its period has no length */
    bad.tenant.budget_gpu_milli_ms = -1;
    CHECK(small_try(&s, bad, &e) < 0);
    bad = t;
    bad.tenant.name = STR("a\0b");
    CHECK(small_try(&s, bad, &e) < 0 && e.code == ERR_INVALID);
    bad = t;
    bad.tenant.until_ms = INT64_MAX;
    CHECK(small_try(&s, bad, &e) < 0 && e.code == ERR_INVALID);
    audit(&s);
}

static const struct test tests[] = {
    { "notebooks and scratch space count like jobs and memory",
      notebooks_and_scratch_space_count_like_jobs_and_memory },
    { "a model at its limit leaves the others", a_model_at_its_limit_leaves_the_others },
    { "a job that may use one model only starts when room comes there",
      a_job_that_may_use_one_model_only_starts_when_room_comes_there },
    { "a gang counts whole against each model that it may touch",
      a_gang_counts_whole_against_each_model_that_it_may_touch },
    { "models may be limited together and above", models_may_be_limited_together_and_above },
    { "jobs go to the pools of their tenant", jobs_go_to_the_pools_of_their_tenant },
    { "what fits in none of its pools is refused", what_fits_in_none_of_its_pools_is_refused },
    { "jobs follow when pools change, and what runs goes on",
      jobs_follow_when_pools_change_and_what_runs_goes_on },
    { "after its end nothing starts, and what can be frozen is",
      after_its_end_nothing_starts_and_what_can_be_frozen_is },
    { "a budget stops at its end until the next period",
      a_budget_stops_at_its_end_until_the_next_period },
    { "the next period begins with what was spent since the last",
      the_next_period_begins_with_what_was_spent_since_the_last },
    { "a policy may let run what runs", a_policy_may_let_run_what_runs },
    { "a limit below what is used stops starts and ends nothing",
      a_limit_below_what_is_used_stops_starts_and_ends_nothing },
    { "what a tenant uses follows it to its new parent",
      what_a_tenant_uses_follows_it_to_its_new_parent },
    { "a tenant is removed when it is empty", a_tenant_is_removed_when_it_is_empty },
    { "what cannot be is refused", what_cannot_be_is_refused },
};
TEST_CASES(tests)
