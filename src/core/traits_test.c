/* Classes of machines: what jobs ask for, what changes while they wait and run. */
#include <stdio.h>

#include "base/buf.h"
#include "core/state.h"
#include "tests/lib/small.h"

static void put_node(struct small *s, const char *name, uint32_t gpus, const char *traits)
{
    struct event ev = node_event(name, "m", gpus);
    ev.node.traits = str_of(traits);
    small_apply(s, ev);
}

static void set_node(struct small *s, const char *name, const char *traits)
{
    struct event ev = { .kind = EVENT_NODE_TRAITS };
    ev.node_traits = (struct event_node_traits){ str_of(name), str_of(traits) };
    small_apply(s, ev);
}

static struct event asking(const struct small *s, uint16_t gpus, struct str traits)
{
    struct event ev = submit_event(s, "t", (struct request){ .replicas = 1, .gpus = gpus });
    ev.submit.traits = traits;
    return ev;
}

static uint64_t submit(struct small *s, uint16_t gpus, const char *traits)
{
    small_apply(s, asking(s, gpus, str_of(traits)));
    return ++s->last;
}

static void set_job(struct small *s, uint64_t job, const char *traits)
{
    struct event ev = { .kind = EVENT_JOB_TRAITS };
    ev.job_traits = (struct event_job_traits){ { job }, str_of(traits) };
    small_apply(s, ev);
}

static uint32_t where(const struct small *s, uint64_t job)
{
    struct job_view v;
    return core_job(s->c, (job_id){ job }, &v) && v.n ? v.slots[0].node : NONE;
}

static enum reason why(const struct small *s, uint64_t job)
{
    struct job_view v = { 0 };
    CHECK(core_job(s->c, (job_id){ job }, &v));
    return v.why;
}

static void says(struct small *s, uint64_t job, enum reason reason, const char *text)
{
    struct explanation x = { 0 };
    struct err e;
    CHECK(core_explain(s->c, (job_id){ job }, s->now_ms, &x, &e) == 0);
    CHECK_INT(x.n, 1);
    CHECK_INT(x.line[0].why, reason);
    CHECK_STR(x.line[0].text, text);
}

static void end(struct small *s, uint64_t job)
{
    struct err e;
    small_job(s, job, JOB_EV_CANCEL);
    if (small_state(s, job) != JOB_STATE_COUNT)
        small_job(s, job, JOB_EV_ENDED);
    CHECK(core_audit(s->c, &e) == 0);
}

/* n0 of class a, n1 of class b, n2 of none; two GPUs each. */
static struct small three(void)
{
    struct small s = small_new();
    small_tenant(&s, "t");
    put_node(&s, "n0", 2, "a");
    put_node(&s, "n1", 2, "b");
    put_node(&s, "n2", 2, "");
    return s;
}

static void jobs_go_to_machines_of_their_classes(void)
{
    AUTO(small_free) struct small s = three();
    uint64_t b = submit(&s, 2, "b"), a = submit(&s, 2, "a");
    CHECK(small_pass(&s) == 2 && where(&s, b) == 1 && where(&s, a) == 0);
    uint64_t full = submit(&s, 2, "b|x|a|b"), one = submit(&s, 1, "b"), any = submit(&s, 2, "");
    CHECK(small_pass(&s) == 1 && where(&s, any) == 2);
    says(&s, full, WHY_GPUS_BUSY,
         "needs 2 GPUs; 0 free now, at most 0 on one machine (of the 2 machines that match)");
    says(&s, one, WHY_GPUS_BUSY,
         "needs 1 GPU; 0 free now, at most 0 on one machine (of the 1 machine that matches)");
    CHECK(why(&s, full) == WHY_ROOM);
    struct job_view v;
    struct node_view n;
    CHECK(core_job(s.c, (job_id){ full }, &v) && str_is(v.traits, "a|b|x"));
    CHECK(v.request.traits == 0 && core_node(s.c, (node_id){ 1 }, &n));
    CHECK_STR(n.traits, "b");
}

static void what_matches_no_machine_waits_and_says_so(void)
{
    AUTO(small_free) struct small s = three();
    uint64_t none = submit(&s, 1, "x|y");
    struct err e;
    CHECK(small_pass(&s) == 0 && why(&s, none) == WHY_NO_MATCH);
    says(&s, none, WHY_NO_MATCH,
         "no machine matches what it asks for of its machine (labels, taints)");
    put_node(&s, "small", 0, "x"); /* matches, and has no GPU */
    CHECK(small_pass(&s) == 0 && why(&s, none) == WHY_NO_MATCH);
    says(&s, none, WHY_NO_MATCH,
         "1 machine matches what it asks for of its machine (labels, taints), and cannot hold it");
    put_node(&s, "late", 1, "y");
    small_node_state(&s, "late", NODE_DOWN);
    CHECK(small_pass(&s) == 0);
    says(&s, none, WHY_NO_NODE, "none of the machines that could run it is up");
    small_node_state(&s, "late", NODE_UP);
    CHECK(small_pass(&s) == 1 && where(&s, none) == 4);
    /* What fits nowhere at all is still refused. */
    CHECK(small_try(&s, asking(&s, 3, STR("x")), &e) < 0 && e.code == ERR_INVALID);
    CHECK(small_try(&s, asking(&s, 1, STR("x||y")), &e) < 0);
    CHECK_STR(e.msg, "job 2: traits: names have 1 to 64 bytes");
}

static void a_machine_changes_its_class_while_jobs_run(void)
{
    AUTO(small_free) struct small s = three();
    uint64_t runs = submit(&s, 1, "a"), waits;
    struct err e;
    CHECK(small_pass(&s) == 1 && where(&s, runs) == 0);
    small_job(&s, runs, JOB_EV_STARTED);
    set_node(&s, "n0", "c");
    CHECK(core_audit(s.c, &e) == 0);
    waits = submit(&s, 1, "a");
    CHECK(small_pass(&s) == 0 && small_state(&s, runs) == JOB_RUNNING && where(&s, runs) == 0);
    CHECK(why(&s, waits) == WHY_NO_MATCH);
    small_job(&s, runs, JOB_EV_FREEZE);
    small_job(&s, runs, JOB_EV_FROZE);
    small_job(&s, runs, JOB_EV_THAW);
    CHECK(small_pass(&s) == 0 && small_state(&s, runs) == JOB_FROZEN);
    set_node(&s, "n2", "a");
    CHECK(small_pass(&s) == 2 && where(&s, waits) == 2 && where(&s, runs) == 2);
    set_node(&s, "n2", "");
    struct event ev = { .kind = EVENT_NODE_TRAITS, .node_traits = { STR("n2"), STR("a|b") } };
    CHECK(small_try(&s, ev, &e) < 0 && e.code == ERR_INVALID);
    ev.node_traits = (struct event_node_traits){ STR("nobody"), STR("a") };
    CHECK(small_try(&s, ev, &e) < 0 && e.code == ERR_NOT_FOUND);
    end(&s, runs);
    end(&s, waits);
}

static void a_job_changes_what_it_asks_for(void)
{
    AUTO(small_free) struct small s = three();
    uint64_t job = submit(&s, 1, "x"), held;
    struct err e;
    CHECK(small_pass(&s) == 0);
    set_job(&s, job, "x|b");
    CHECK(small_pass(&s) == 1 && where(&s, job) == 1);
    small_job(&s, job, JOB_EV_STARTED);
    set_job(&s, job, "a"); /* it stays, and goes there when it is placed again */
    CHECK(small_pass(&s) == 0 && where(&s, job) == 1 && core_audit(s.c, &e) == 0);
    small_job(&s, job, JOB_EV_FREEZE);
    small_job(&s, job, JOB_EV_FROZE);
    small_job(&s, job, JOB_EV_THAW);
    CHECK(small_pass(&s) == 1 && where(&s, job) == 0);
    struct event ev = asking(&s, 1, STR("x"));
    ev.submit.held = true;
    small_apply(&s, ev);
    held = ++s.last;
    set_job(&s, held, "");
    small_job(&s, held, JOB_EV_RELEASE);
    CHECK(small_pass(&s) == 1);
    end(&s, job);
    ev = (struct event){ .kind = EVENT_JOB_TRAITS, .job_traits = { { job }, STR("a") } };
    CHECK(small_try(&s, ev, &e) < 0 && e.code == ERR_NOT_FOUND);
    ev.job_traits = (struct event_job_traits){ { held }, STR("|") };
    CHECK(small_try(&s, ev, &e) < 0 && e.code == ERR_INVALID);
}

static void pools_and_classes_go_together(void)
{
    AUTO(small_free) struct small s = small_new();
    struct event t = tenant_event("t", "", 1);
    t.tenant.pools = STR("p");
    small_apply(&s, (struct event){ .kind = EVENT_POOL, .pool.name = STR("p") });
    small_apply(&s, t);
    put_node(&s, "n0", 2, "a");
    put_node(&s, "n1", 2, "b");
    struct event move = { .kind = EVENT_NODE_POOL, .node_pool = { STR("n0"), STR("p") } };
    small_apply(&s, move);
    uint64_t both = submit(&s, 1, "a"), other = submit(&s, 1, "b");
    CHECK(small_pass(&s) == 1 && where(&s, both) == 0 && why(&s, other) == WHY_POOLS);
    says(&s, other, WHY_POOLS,
         "tenant 't' may use the machines of pool 'p' only: none of them could run it");
    set_node(&s, "n0", "b"); /* and stays in its pool */
    CHECK(small_pass(&s) == 1 && where(&s, other) == 0);
}

/* ---- bounds ---- */

static void numbers_of_sets_are_used_again(void)
{
    AUTO(small_free) struct small s = three();
    for (uint32_t i = 0; i < 3 * ZONES_MAX; i++) {
        char traits[32];
        snprintf(traits, sizeof traits, "x%u|a", i);
        uint64_t job = submit(&s, 1, traits);
        CHECK(small_pass_at(&s, i) == 1 && where(&s, job) == 0);
        end(&s, job);
    }
    CHECK(s.c->cluster.traits.n <= 128);
}

static void too_many_sets_at_a_time_are_refused(void)
{
    AUTO(small_free) struct small s = three();
    char traits[32];
    struct err e;
    for (uint32_t i = 0; i < ZONES_MAX; i++) {
        snprintf(traits, sizeof traits, "x%u", i);
        submit(&s, 1, traits);
    }
    CHECK(small_try(&s, asking(&s, 1, STR("one more")), &e) < 0 && e.code == ERR_INVALID);
    CHECK(small_try(&s, asking(&s, 1, STR("more")), &e) < 0 && e.code == ERR_UNAVAILABLE);
    CHECK_STR(e.msg, "job 4097: traits: jobs ask for 4096 different sets of machines already");
    CHECK(e.hint[0]);
    struct event next = asking(&s, 1, STR("more"));
    CHECK(core_check_submit(s.c, &next.submit, &e) < 0 && e.code == ERR_UNAVAILABLE);
    submit(&s, 1, "x7"); /* one that is there, and none at all */
    submit(&s, 1, "");
    struct event t = tenant_event("u", "", 1); /* pools have numbers of their own */
    t.tenant.pools = STR("p");
    small_apply(&s, t);
    small_job(&s, 5, JOB_EV_CANCEL);
    CHECK(core_check_submit(s.c, &next.submit, &e) == 0);
    uint64_t more = submit(&s, 1, "more");
    set_node(&s, "n0", "more");
    CHECK(small_pass(&s) == 2 && where(&s, more) == 0);
}

static void sets_of_pools_are_used_again(void)
{
    AUTO(small_free) struct small s = three();
    for (uint32_t i = 0; i < 2 * ZONES_MAX; i++) {
        char pools[16];
        struct event t = tenant_event("t", "", 1);
        snprintf(pools, sizeof pools, "p%u|-", i);
        t.tenant.pools = str_of(pools);
        small_apply(&s, t);
    }
    submit(&s, 1, "a");
    CHECK(small_pass(&s) == 1 && s.c->cluster.zones.n < 8);
}

static void classes_that_come_and_go_leave_nothing(void)
{
    AUTO(small_free) struct small s = three();
    uint64_t job = submit(&s, 1, "a");
    CHECK(small_pass(&s) == 1);
    small_job(&s, job, JOB_EV_STARTED);
    for (uint32_t i = 0; i < 10000; i++) {
        char traits[16];
        snprintf(traits, sizeof traits, "v%u", i);
        set_node(&s, i % 2 ? "n0" : "n1", traits);
    }
    CHECK(s.c->cluster.kinds <= 4 && where(&s, job) == 0);
    uint64_t last = submit(&s, 1, "v9999");
    CHECK(small_pass(&s) == 1 && where(&s, last) == 0);
    end(&s, job);
    end(&s, last);
}

static void every_machine_may_be_its_own_class(void)
{
    enum {
        MACHINES = 1000
    };
    AUTO(small_free) struct small s = small_new();
    AUTO(buf_free) struct buf all = BUF(TRAITS_TEXT_MAX);
    struct err e;
    small_tenant(&s, "t");
    for (int i = 0; i < MACHINES; i++) {
        char name[16], class[TRAITS_NAME_MAX + 1];
        snprintf(name, sizeof name, "n%d", i);
        snprintf(class, sizeof class, "a-class-as-long-as-some-people-would-like-them-to-be-%04d",
                 (i * 7) % MACHINES);
        put_node(&s, name, 1, class);
        buf_printf(&all, "%s%s", i ? "|" : "", class);
    }
    for (int i = 0; i < MACHINES; i++) {
        small_apply(&s, asking(&s, 1, buf_str(&all)));
        s.last++;
    }
    CHECK(small_pass(&s) == MACHINES && core_audit(s.c, &e) == 0);
    CHECK_INT(s.c->cluster.kinds, MACHINES);
}

/* ---- the journal begins anew ---- */

struct anew {
    struct core *c;
    bool failed;
};

static void apply_anew(void *ctx, const struct event *ev)
{
    struct anew *a = ctx;
    struct err e = { 0 };
    a->failed = a->failed || core_apply(a->c, ev, &e) < 0;
    CHECK_STR(e.msg, "");
}

static void a_snapshot_keeps_what_runs_where_it_would_not_start(void)
{
    AUTO(small_free) struct small s = three();
    uint64_t runs = submit(&s, 2, "a"), waits = submit(&s, 2, "a");
    CHECK(small_pass(&s) == 1);
    small_job(&s, runs, JOB_EV_STARTED);
    set_node(&s, "n0", "c");
    set_job(&s, runs, "b");
    struct anew a = { .c = core_new() };
    core_snapshot(s.c, apply_anew, &a);
    CHECK(!a.failed);
    s.c = (core_free(s.c), a.c);
    CHECK(small_pass(&s) == 0 && where(&s, runs) == 0 && small_state(&s, runs) == JOB_RUNNING);
    struct job_view v;
    CHECK(core_job(s.c, (job_id){ runs }, &v) && str_is(v.traits, "b"));
    CHECK(core_job(s.c, (job_id){ waits }, &v) && str_is(v.traits, "a"));
    set_node(&s, "n1", "a");
    CHECK(small_pass(&s) == 1 && where(&s, waits) == 1);
}

static const struct test tests[] = {
    { "jobs go to machines of their classes", jobs_go_to_machines_of_their_classes },
    { "what matches no machine waits, and says so", what_matches_no_machine_waits_and_says_so },
    { "a machine changes its class while jobs run", a_machine_changes_its_class_while_jobs_run },
    { "a job changes what it asks for", a_job_changes_what_it_asks_for },
    { "pools and classes go together", pools_and_classes_go_together },
    { "numbers of sets are used again", numbers_of_sets_are_used_again },
    { "too many sets at a time are refused", too_many_sets_at_a_time_are_refused },
    { "sets of pools are used again", sets_of_pools_are_used_again },
    { "classes that come and go leave nothing", classes_that_come_and_go_leave_nothing },
    { "every machine may be its own class", every_machine_may_be_its_own_class },
    { "a snapshot keeps what runs where it would not start",
      a_snapshot_keeps_what_runs_where_it_would_not_start },
};
TEST_CASES(tests)
