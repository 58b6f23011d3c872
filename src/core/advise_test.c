#include "core/policy.h"
#include "tests/lib/small.h"
#include "tests/lib/test.h"

/* Four GPUs: one job has one of them for an hour at most, and the others are kept for a large one. */
static struct small with_room_kept(void)
{
    AUTO(small_free) struct small s = small_new();
    struct event p = { .kind = EVENT_POLICY, .policy = policy_default() };
    struct event first;
    p.policy.claim_after_ms = HOUR_MS / 2;
    small_apply(&s, p);
    small_tenant(&s, "a");
    small_tenant(&s, "b");
    small_node(&s, "n0", 4);
    first = submit_event(&s, "a", (struct request){ .replicas = 1, .gpus = 1 });
    first.submit.limit_ms = 2 * HOUR_MS;
    small_apply(&s, first);
    s.last++;
    CHECK_INT(small_pass(&s), 1);
    small_job(&s, 1, JOB_EV_STARTED);
    small_gpus(&s, "a", 4);
    small_pass(&s);
    s.now_ms += HOUR_MS;
    small_pass(&s);
    CHECK_INT(core_totals(s.c).kept_nodes, 1);
    struct small out = s;
    s = small_new();
    return out;
}

static const struct advice *find(const struct advice *ad, uint32_t n, enum advice_kind kind)
{
    for (uint32_t i = 0; i < n; i++)
        if (ad[i].kind == kind)
            return &ad[i];
    return NULL;
}

static uint64_t submit_limited(struct small *s, const char *tenant, int64_t limit_ms)
{
    struct event ev = submit_event(s, tenant, (struct request){ .replicas = 1, .gpus = 1 });
    ev.submit.limit_ms = limit_ms;
    small_apply(s, ev);
    return ++s->last;
}

static void a_shorter_limit_lets_it_into_room_that_is_kept(void)
{
    AUTO(small_free) struct small s = with_room_kept();
    struct advice ad[ADVICE_MAX];
    uint64_t job = submit_limited(&s, "b", 0);
    small_pass(&s);
    CHECK(!small_started(&s, job));
    uint32_t n = core_advise(s.c, (job_id){ job }, ad);
    const struct advice *limit = find(ad, n, ADVICE_LIMIT);
    CHECK(limit != NULL && limit->limit_ms >= MINUTE_MS && limit->limit_ms <= HOUR_MS);
    CHECK_STR(advice_slug(limit->kind), "max_time");
    int64_t left_ms = limit->limit_ms;
    small_job(&s, job, JOB_EV_CANCEL);
    uint64_t longer = submit_limited(&s, "b", left_ms + MINUTE_MS);
    s.now_ms += MINUTE_MS / 2; /* the next review */
    small_pass(&s);
    CHECK(!small_started(&s, longer));
    small_job(&s, longer, JOB_EV_CANCEL);
    uint64_t follows = submit_limited(&s, "b", left_ms - MINUTE_MS);
    s.now_ms += MINUTE_MS / 2;
    small_pass(&s);
    CHECK(small_started(&s, follows));
}

/* Its group is tried in order: the first does not fit there, whatever the second says. */
static void a_shorter_limit_does_not_help_behind_a_long_one(void)
{
    AUTO(small_free) struct small s = with_room_kept();
    struct advice ad[ADVICE_MAX];
    uint64_t first = submit_limited(&s, "b", 0), second = submit_limited(&s, "b", 0);
    small_pass(&s);
    CHECK(find(ad, core_advise(s.c, (job_id){ first }, ad), ADVICE_LIMIT) != NULL);
    CHECK(find(ad, core_advise(s.c, (job_id){ second }, ad), ADVICE_LIMIT) == NULL);
}

static void nothing_helps_over_a_limit_of_its_tenant(void)
{
    AUTO(small_free) struct small s = with_room_kept();
    struct event t = tenant_event("b", "", 1);
    struct advice ad[ADVICE_MAX];
    uint64_t job = submit_limited(&s, "b", 0);
    t.tenant.limit.of[RES_JOBS] = 0;
    small_apply(&s, t);
    small_pass(&s);
    CHECK_INT(core_advise(s.c, (job_id){ job }, ad), 0);
}

static const struct test tests[] = {
    { "a shorter limit lets it into room that is kept",
      a_shorter_limit_lets_it_into_room_that_is_kept },
    { "a shorter limit does not help behind a long one",
      a_shorter_limit_does_not_help_behind_a_long_one },
    { "nothing helps over a limit of its tenant", nothing_helps_over_a_limit_of_its_tenant },
};
TEST_CASES(tests)
