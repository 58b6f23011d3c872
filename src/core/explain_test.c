#include "core/core.h"
#include "core/policy.h"
#include "tests/lib/small.h"
#include "tests/lib/test.h"

static struct small lab(uint32_t nodes, uint32_t gpus)
{
    struct small s = small_new();
    small_tenant(&s, "a");
    for (uint32_t i = 0; i < nodes; i++)
        small_node(&s, (char[]){ 'n', (char)('0' + i), 0 }, gpus);
    return s;
}

static struct explanation ask(struct small *s, uint64_t job)
{
    struct explanation x;
    struct err e;
    if (core_explain(s->c, (job_id){ job }, s->now_ms, &x, &e) < 0)
        test_fail(__FILE__, __LINE__, "refused: %s", e.msg);
    CHECK(x.n > 0 && x.n <= EXPLAIN_LINES);
    return x;
}

static void says(struct small *s, uint64_t job, enum reason why, const char *text)
{
    struct explanation x = ask(s, job);
    CHECK_STR(x.line[0].text, text);
    CHECK_INT(x.line[0].why, why);
}

static enum reason view_why(struct small *s, uint64_t job)
{
    struct job_view j;
    CHECK(core_job(s->c, (job_id){ job }, &j));
    return j.why;
}

static void a_new_job_waits_for_the_next_pass(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    uint64_t job = small_gpus(&s, "a", 1);
    says(&s, job, WHY_NEW, "there is room: the next pass starts it");
    CHECK_INT(view_why(&s, job), WHY_NEW);
}

static void a_held_job_waits_for_a_person(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    uint64_t job = small_gpus(&s, "a", 1);
    small_job(&s, job, JOB_EV_HOLD);
    says(&s, job, WHY_HELD, "it is held: it waits until someone releases it");
    CHECK_INT(view_why(&s, job), WHY_HELD);
}

static void a_frozen_job_waits_for_a_person(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    uint64_t job = small_gpus(&s, "a", 1);
    small_pass(&s);
    small_job(&s, job, JOB_EV_STARTED);
    small_job(&s, job, JOB_EV_FREEZE);
    small_job(&s, job, JOB_EV_FROZE);
    says(&s, job, WHY_FROZEN, "it is frozen: it waits until someone thaws it");
    CHECK_INT(view_why(&s, job), WHY_FROZEN);
}

static void limits_are_given_with_figures(void)
{
    AUTO(small_free) struct small s = lab(1, 4);
    struct event t = tenant_event("b", "", 1);
    t.tenant.limit.of[RES_GPU] = 3000;
    t.tenant.user_limit.of[RES_MEM] = 1000;
    small_apply(&s, t);
    small_gpus(&s, "b", 2);
    small_submit(&s, "b", (struct request){ .replicas = 1, .mem_mib = 600 });
    uint64_t gpus = small_gpus(&s, "b", 2);
    uint64_t mem = small_submit(&s, "b", (struct request){ .replicas = 1, .mem_mib = 500 });
    CHECK_INT(small_pass(&s), 2);
    says(&s, gpus, WHY_LIMIT_TENANT,
         "tenant 'b' uses 2 of the 3 GPUs it may use at a time; this job needs 2");
    says(&s, mem, WHY_LIMIT_USER,
         "user 'u' uses 600 of the 1000 MiB of memory it may use at a time; this job needs 500");
    CHECK(view_why(&s, gpus) == WHY_LIMIT_TENANT && view_why(&s, mem) == WHY_LIMIT_USER);
}

/* A hold is not the whole truth: once released it would wait on. */
static void everything_in_its_way_is_named(void)
{
    AUTO(small_free) struct small s = lab(1, 4);
    struct event t = tenant_event("b", "", 1);
    t.tenant.limit.of[RES_GPU] = 3000;
    t.tenant.user_limit.of[RES_GPU] = 2000;
    small_apply(&s, t);
    small_gpus(&s, "b", 2);
    small_gpus(&s, "a", 2);
    CHECK_INT(small_pass(&s), 2);
    uint64_t job = small_gpus(&s, "b", 2);
    small_job(&s, job, JOB_EV_HOLD);
    static const enum reason why[] = { WHY_HELD, WHY_LIMIT_USER, WHY_LIMIT_TENANT, WHY_GPUS_BUSY };
    struct explanation x = ask(&s, job);
    CHECK_INT(x.n, ARRAY_LEN(why));
    for (size_t i = 0; i < x.n; i++)
        CHECK_INT(x.line[i].why, why[i]);
}

static void drained_machines_count_where_the_others_are_too_few(void)
{
    AUTO(small_free) struct small s = lab(3, 2);
    struct request gang = { .replicas = 3, .gpus = 2 };
    uint64_t job = small_submit(&s, "a", gang);
    small_node_state(&s, "n0", NODE_DRAIN);
    CHECK_INT(small_pass(&s), 0);
    says(&s, job, WHY_NO_NODE,
         "1 of the machines that could run it is drained or down, and the others do not have the "
         "room");
}

static void those_before_it_are_counted(void)
{
    AUTO(small_free) struct small s = lab(1, 4);
    small_tenant(&s, "b");
    small_gpus(&s, "a", 4);
    CHECK_INT(small_pass(&s), 1);
    for (int i = 0; i < 3; i++)
        small_gpus(&s, "a", 2);
    uint64_t last = small_gpus(&s, "a", 2), other = small_gpus(&s, "b", 2);
    CHECK_INT(small_pass(&s), 0);
    struct explanation x = ask(&s, last);
    CHECK(x.before.own == 3 && x.before.users == 1); /* b has nothing, and a has all */
    x = ask(&s, other);
    CHECK(x.before.own == 0 && x.before.users == 0);
}

static void a_job_whose_machines_are_all_down_says_so(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    uint64_t job = small_gpus(&s, "a", 1);
    small_node_state(&s, "n0", NODE_DOWN);
    CHECK_INT(small_pass(&s), 0);
    says(&s, job, WHY_NO_NODE, "none of the machines that could run it is up");
    CHECK_INT(view_why(&s, job), WHY_ROOM);
}

static void busy_gpus_are_counted(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    small_gpus(&s, "a", 2);
    CHECK_INT(small_pass(&s), 1);
    uint64_t job = small_gpus(&s, "a", 1);
    uint64_t share = small_submit(&s, "a", (struct request){ .replicas = 1, .gpu_milli = 500 });
    CHECK_INT(small_pass(&s), 0);
    says(&s, job, WHY_GPUS_BUSY, "needs 1 GPU; 0 free now, at most 0 on one machine");
    says(&s, share, WHY_GPUS_BUSY,
         "needs a part of a GPU on each of 1 replicas; the largest free part is 0 of one GPU");
}

static void scattered_gpus_are_told_from_busy_ones(void)
{
    AUTO(small_free) struct small s = lab(2, 2);
    for (int i = 0; i < 2; i++)
        small_submit(&s, "a", (struct request){ .replicas = 1, .gpus = 1, .cpu_milli = 9000 });
    uint64_t job = small_gpus(&s, "a", 2);
    CHECK_INT(small_pass(&s), 2);
    says(&s, job, WHY_SCATTERED,
         "2 GPUs are free, but no machine has the 2 that a replica needs (most on one: 1)");
}

static void a_busy_model_is_named(void)
{
    AUTO(small_free) struct small s = small_new();
    small_tenant(&s, "a");
    small_apply(&s, node_event("n0", "a100", 1));
    small_apply(&s, node_event("n1", "v100", 2));
    uint64_t job = 0;
    for (int i = 0; i < 2; i++) {
        struct event ev = submit_event(&s, "a", (struct request){ .replicas = 1, .gpus = 1 });
        ev.submit.models = STR("a100");
        small_apply(&s, ev);
        job = ++s.last;
    }
    CHECK_INT(small_pass(&s), 1);
    says(&s, job, WHY_MODEL_BUSY,
         "needs 1 GPU of the models it asks for; 0 free now, at most 0 on one machine");
    CHECK_INT(ask(&s, job).n, 1); /* that others are free is what helps: see core_advise */
}

static void what_is_short_beside_free_gpus_is_named(void)
{
    AUTO(small_free) struct small s = lab(1, 4);
    small_submit(&s, "a", (struct request){ .replicas = 1, .cpu_milli = 12000, .mem_mib = 60000 });
    struct request r = { .replicas = 1, .gpus = 1, .cpu_milli = 8000 };
    uint64_t cpu = small_submit(&s, "a", r);
    r.mem_mib = 8000;
    uint64_t both = small_submit(&s, "a", r);
    r.cpu_milli = 0;
    uint64_t mem = small_submit(&s, "a", r);
    CHECK_INT(small_pass(&s), 1);
    says(&s, cpu, WHY_CPU_BUSY,
         "machines with free GPUs have fewer than the 8 CPUs a replica needs");
    says(&s, mem, WHY_MEM_BUSY,
         "machines with free GPUs have less than the 8000 MiB of memory a replica needs");
    struct explanation x = ask(&s, both);
    CHECK_INT(x.n, 2);
    CHECK(x.line[0].why == WHY_CPU_BUSY && x.line[1].why == WHY_MEM_BUSY);
}

static void room_that_is_kept_for_another_job_is_explained_to_both(void)
{
    AUTO(small_free) struct small s = lab(1, 4);
    struct event p = { .kind = EVENT_POLICY, .policy = policy_default() };
    p.policy.claim_after_ms = HOUR_MS;
    small_apply(&s, p);
    small_gpus(&s, "a", 1);
    uint64_t large = small_gpus(&s, "a", 4);
    CHECK_INT(small_pass(&s), 1);
    s.now_ms += 2 * HOUR_MS;
    small_pass(&s);
    CHECK_INT(core_totals(s.c).kept_nodes, 1);
    uint64_t small = small_gpus(&s, "a", 1);
    CHECK_INT(small_pass(&s), 0);
    struct explanation x = ask(&s, large);
    CHECK_INT(x.n, 1);
    CHECK_STR(x.line[0].text,
              "needs 4 GPUs; 0 free now, at most 0 on one machine; room is being kept for it");
    CHECK_INT(x.waited_ms, 2 * HOUR_MS);
    x = ask(&s, small);
    CHECK(x.n == 1 && x.line[0].why == WHY_KEPT);
    CHECK_STR(x.line[0].text, "room on 1 machine is kept for jobs that go before it");
}

static void a_job_that_runs_or_is_unknown_has_no_explanation(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    struct explanation x = { .waited_ms = 77 };
    struct err e = { 0 };
    uint64_t job = small_gpus(&s, "a", 1);
    small_pass(&s);
    CHECK(core_explain(s.c, (job_id){ job }, 0, &x, &e) < 0 && e.code == ERR_CONFLICT);
    CHECK_STR(e.msg, "job 1 does not wait: it is starting");
    CHECK(core_explain(s.c, (job_id){ 9 }, 0, &x, &e) < 0 && e.code == ERR_NOT_FOUND);
    CHECK_STR(e.msg, "no job 9 waits or runs");
    CHECK_INT(x.waited_ms, 77);
}

static const struct test tests[] = {
    { "a new job waits for the next pass", a_new_job_waits_for_the_next_pass },
    { "a held job waits for a person", a_held_job_waits_for_a_person },
    { "a frozen job waits for a person", a_frozen_job_waits_for_a_person },
    { "limits are given with figures", limits_are_given_with_figures },
    { "everything in its way is named", everything_in_its_way_is_named },
    { "drained machines count where the others are too few",
      drained_machines_count_where_the_others_are_too_few },
    { "those before it are counted", those_before_it_are_counted },
    { "a job whose machines are all down says so", a_job_whose_machines_are_all_down_says_so },
    { "busy GPUs are counted", busy_gpus_are_counted },
    { "scattered GPUs are told from busy ones", scattered_gpus_are_told_from_busy_ones },
    { "a busy model is named", a_busy_model_is_named },
    { "what is short beside free GPUs is named", what_is_short_beside_free_gpus_is_named },
    { "room that is kept for another job is explained to both",
      room_that_is_kept_for_another_job_is_explained_to_both },
    { "a job that runs or is unknown has no explanation",
      a_job_that_runs_or_is_unknown_has_no_explanation },
};
TEST_CASES(tests)
