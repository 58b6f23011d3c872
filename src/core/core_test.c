#include "core/core.h"

#include "base/buf.h"
#include "core/policy.h"
#include "tests/lib/small.h"
#include "tests/lib/test.h"

static struct small lab(uint32_t nodes, uint32_t gpus)
{
    struct small s = small_new();
    small_tenant(&s, "a");
    small_tenant(&s, "b");
    for (uint32_t i = 0; i < nodes; i++)
        small_node(&s, (char[]){ 'n', (char)('0' + i), 0 }, gpus);
    return s;
}

/* Everything that can be seen, as text: two of them are equal when nothing has changed. */
static void print_state(const struct small *s, struct buf *out)
{
    struct core_totals t = core_totals(s->c);
    struct share_view v;
    struct node_view n;
    struct job_view j;
    buf_printf(out, "waiting %llu kept %llu nodes %u shares %u shapes %u cells %u free %llu\n",
               (unsigned long long)t.waiting, (unsigned long long)t.kept_nodes, t.nodes, t.shares,
               t.shapes, t.cells, (unsigned long long)t.free.of[RES_GPU]);
    for (uint32_t i = 0; core_share(s->c, (share_id){ i }, s->now_ms, &v); i++)
        buf_printf(out, "share %s %u %lld %lld %llu %llu %a\n", v.name, v.weight_milli,
                   (long long)v.guarantee_milli, (long long)v.cost_milli,
                   (unsigned long long)v.waiting, (unsigned long long)v.used.of[RES_CPU],
                   v.past_milli);
    for (uint32_t i = 0; core_node(s->c, (node_id){ i }, &n); i++)
        buf_printf(out, "node %s %d %u %u %u\n", n.name, n.state, n.gpu_free[0], n.cpu_free_milli,
                   n.mem_free_mib);
    for (uint64_t i = 0; i <= s->last + 2; i++)
        if (core_job(s->c, (job_id){ i }, &j))
            buf_printf(out, "job %llu %s %d %u %lld\n", (unsigned long long)i,
                       job_state_name(j.state), j.why, j.n, (long long)j.submit_ms);
}

/* The event is refused with this code and message, and nothing has changed. */
static void refused(struct small *s, struct event ev, enum err_code code, const char *msg)
{
    AUTO(buf_free) struct buf before = BUF(1 << 20), after = BUF(1 << 20);
    struct err e = { 0 };
    print_state(s, &before);
    CHECK(small_try(s, ev, &e) < 0);
    print_state(s, &after);
    CHECK_STR(e.msg, msg);
    CHECK_INT(e.code, code);
    CHECK_STR(after.p, before.p);
    CHECK(core_audit(s->c, &e) == 0);
}

static void refused_request(struct small *s, struct request r, enum err_code code, const char *msg)
{
    refused(s, submit_event(s, "a", r), code, msg);
}

/* ---- submitting ---- */

static void bad_requests_are_refused_and_change_nothing(void)
{
    AUTO(small_free) struct small s = lab(2, 4);
    const struct request one = { .replicas = 1 };
    struct request r = one;
    small_gpus(&s, "a", 1);
    small_pass(&s);
    r.replicas = 0;
    refused_request(&s, r, ERR_INVALID, "job 2: replicas: 0; it must be 1 to 4096");
    r.replicas = 4097;
    refused_request(&s, r, ERR_INVALID, "job 2: replicas: 4097; it must be 1 to 4096");
    r = one;
    r.gpus = 17;
    refused_request(&s, r, ERR_INVALID, "job 2: gpus: 17 on one machine; at most 16");
    r.gpus = 1;
    r.gpu_milli = 500;
    refused_request(&s, r, ERR_INVALID, "job 2: gpus and gpu_share exclude each other");
    r = one;
    r.gpu_milli = 1000;
    refused_request(&s, r, ERR_INVALID, "job 2: gpu_share: 1; a share is less than one GPU");
    r = one;
    r.scope = SCOPE_COUNT;
    refused_request(&s, r, ERR_INVALID, "job 2: placement: unknown scope or layout");
    r = (struct request){ .replicas = 2, .scope = SCOPE_NODE, .layout = LAYOUT_SPREAD };
    refused_request(&s, r, ERR_INVALID,
                    "job 2: layout: replicas cannot be spread and on one machine");
    r = (struct request){ .replicas = 1, .gpus = 5 };
    refused_request(&s, r, ERR_INVALID, "job 2: gpus: 5 on one machine; the largest has 4");
    r = (struct request){ .replicas = 3, .gpus = 4 };
    refused_request(
        &s, r, ERR_INVALID,
        "job 2: replicas: 3 of 4 GPUs, 0 CPUs each do not fit, even with nothing else running");
}

static void bad_submitters_are_refused_and_change_nothing(void)
{
    AUTO(small_free) struct small s = lab(1, 4);
    const struct request one = { .replicas = 1, .gpus = 1 };
    refused(&s, submit_event(&s, "nobody", one), ERR_NOT_FOUND,
            "job 1: tenant: there is no tenant 'nobody'");
    struct event ev = submit_event(&s, "a", one);
    ev.submit.user = STR("");
    refused(&s, ev, ERR_INVALID, "job 1: user: a name of 1 to 253 bytes is needed");
    ev = submit_event(&s, "a", one);
    ev.submit.priority = PRIO_COUNT;
    refused(&s, ev, ERR_INVALID, "job 1: priority: unknown class");
    ev = submit_event(&s, "a", one);
    ev.submit.models = STR("h100");
    refused(&s, ev, ERR_INVALID, "job 1: no node has a GPU of model 'h100'");
    small_gpus(&s, "a", 1);
    ev = submit_event(&s, "a", one);
    ev.submit.id.v = 1;
    refused(&s, ev, ERR_CONFLICT, "job 1: job id 1 was used before; ids only grow");
    ev.submit.id.v = 0;
    refused(&s, ev, ERR_CONFLICT, "job 0: job id 0 was used before; ids only grow");
}

static void a_job_above_a_limit_is_refused_at_once(void)
{
    AUTO(small_free) struct small s = lab(1, 4);
    struct event t = tenant_event("c", "", 1);
    t.tenant.limit.of[RES_GPU] = 2000;
    t.tenant.user_limit.of[RES_CPU] = 4500;
    small_apply(&s, t);
    small_apply(&s, tenant_event("below", "c", 1));
    refused(&s, submit_event(&s, "c", (struct request){ .replicas = 1, .gpus = 3 }), ERR_QUOTA,
            "job 1: the job asks for 3 GPUs; 'c' may use 2 at a time");
    refused(&s, submit_event(&s, "below", (struct request){ .replicas = 3, .gpus = 1 }), ERR_QUOTA,
            "job 1: the job asks for 3 GPUs; 'c' may use 2 at a time");
    struct request cpus = { .replicas = 1, .cpu_milli = 5000 };
    refused(&s, submit_event(&s, "c", cpus), ERR_QUOTA,
            "job 1: the job asks for 5 CPUs; 'c' may use 4.5 at a time"); /* a new user */
    small_gpus(&s, "c", 1);
    refused(&s, submit_event(&s, "c", cpus), ERR_QUOTA,
            "job 2: the job asks for 5 CPUs; 'u' may use 4.5 at a time"); /* one we know */
}

/* ---- other events ---- */

static void bad_events_are_refused_and_change_nothing(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    struct event t = tenant_event("", "", 1);
    refused(&s, t, ERR_INVALID, "tenant: a name of 1 to 253 bytes is needed");
    refused(&s, tenant_event("c", "", 0), ERR_INVALID, "tenant 'c': weight must be above 0");
    t = tenant_event("c", "", 1);
    t.tenant.guarantee_milli = UINT64_MAX;
    refused(&s, t, ERR_INVALID, "tenant 'c': guarantee is too large");
    refused(&s, tenant_event("c", "x", 1), ERR_INVALID,
            "tenant 'c': its parent 'x' does not exist");
    struct event u = { .kind = EVENT_USER, .user = { STR("x"), STR("u"), 1000 } };
    refused(&s, u, ERR_NOT_FOUND, "user 'u': there is no tenant 'x'");
    u.user = (struct event_user){ STR("a"), STR("u"), 0 };
    refused(&s, u, ERR_INVALID, "user 'u': a name and a weight above 0 are needed");
    struct event n = { .kind = EVENT_NODE_STATE, .node_state = { STR("n9"), NODE_DOWN } };
    refused(&s, n, ERR_NOT_FOUND, "there is no node 'n9'");
    n.node_state = (struct event_node_state){ STR("n0"), NODE_STATE_COUNT };
    refused(&s, n, ERR_INVALID, "node 'n0': unknown state");
    refused(&s, node_event("n0", "m", 1), ERR_CONFLICT, "node 'n0' is enrolled already");
    struct event p = { .kind = EVENT_POLICY, .policy = policy_default() };
    p.policy.claims_max = 5000;
    refused(&s, p, ERR_INVALID, "policy 'claims_max' is 5000; it must lie between 0 and 1000");
    refused(&s, (struct event){ .kind = EVENT_KIND_COUNT }, ERR_INTERNAL, "not an event");
}

static void bad_steps_of_a_job_are_refused_and_change_nothing(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    uint64_t job = small_gpus(&s, "a", 1);
    struct event ev = { .kind = EVENT_JOB, .job = { { 9 }, JOB_EV_CANCEL } };
    refused(&s, ev, ERR_NOT_FOUND, "there is no job 9");
    ev.job = (struct event_job){ { job }, JOB_EV_PLACED };
    refused(&s, ev, ERR_INVALID, "only a pass places jobs and takes them back");
    ev.job.what = JOB_EV_STARTED;
    refused(&s, ev, ERR_CONFLICT, "job 1: a queued job cannot take 'started'");
    small_job(&s, job, JOB_EV_CANCEL);
    refused(&s, ev, ERR_NOT_FOUND, "job 1 has ended");
    CHECK_INT(small_state(&s, job), JOB_STATE_COUNT);
}

static void bad_decisions_are_refused_and_change_nothing(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    const struct slot slot[] = { { 0, 1, 1000 }, { 0, 2, 1000 } }, wide = { 0, 3, 1000 };
    uint64_t one = small_gpus(&s, "a", 1);
    struct event ev = { .kind = EVENT_PLACE, .place = { { one }, slot, 2 } };
    refused(&s, ev, ERR_INVALID, "job 1 has 1 replicas, not 2");
    ev.place = (struct event_place){ { one }, &wide, 1 };
    refused(&s, ev, ERR_CONFLICT, "job 1: its slots are not free");
    ev.place = (struct event_place){ { one }, slot, 1 };
    small_apply(&s, ev);
    refused(&s, ev, ERR_CONFLICT, "job 1 is starting and cannot be placed");
    uint64_t two = small_gpus(&s, "a", 1);
    ev.place = (struct event_place){ { two }, slot, 1 };
    refused(&s, ev, ERR_CONFLICT, "job 2: its slots are not free");
    ev.place = (struct event_place){ { 7 }, slot, 1 };
    refused(&s, ev, ERR_NOT_FOUND, "there is no job 7");
}

static void a_time_that_is_none_is_refused(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    s.now_ms = INT64_MAX;
    refused(&s, (struct event){ .kind = EVENT_PASS }, ERR_INVALID,
            "t: 9223372036854775807 ms is not a time");
    s.now_ms = INT64_MIN;
    refused(&s, (struct event){ .kind = EVENT_PASS }, ERR_INVALID,
            "t: -9223372036854775808 ms is not a time");
}

static void a_clock_that_is_set_back_does_not_undo_the_past(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    struct job_view j;
    s.now_ms = 10 * HOUR_MS;
    uint64_t first = small_gpus(&s, "a", 1);
    s.now_ms = HOUR_MS;
    uint64_t second = small_gpus(&s, "a", 1);
    CHECK(core_job(s.c, (job_id){ second }, &j) && j.submit_ms == 10 * HOUR_MS);
    CHECK_INT(small_pass(&s), 2);
    small_job(&s, first, JOB_EV_STARTED);
    small_job(&s, first, JOB_EV_EXITED_OK);
    struct err e;
    CHECK(core_audit(s.c, &e) == 0);
}

/* ---- lives ---- */

static void a_job_holds_its_gpus_from_its_start_to_its_end(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    uint64_t job = small_gpus(&s, "a", 2), next = small_gpus(&s, "b", 1);
    CHECK(small_pass(&s) == 1 && small_started(&s, job));
    CHECK(s.plan.action[0].kind == ACT_START && s.plan.action[0].n == 1);
    CHECK_INT(s.plan.action[0].slots[0].gpu_mask, 3);
    CHECK_INT(core_totals(s.c).free.of[RES_GPU], 0);
    small_job(&s, job, JOB_EV_STARTED);
    small_job(&s, job, JOB_EV_CANCEL);
    CHECK(small_pass(&s) == 0 && small_state(&s, job) == JOB_STOPPING);
    small_job(&s, job, JOB_EV_ENDED);
    CHECK(small_pass(&s) == 1 && small_started(&s, next));
    CHECK_INT(core_totals(s.c).free.of[RES_GPU], 1000);
}

static void a_held_job_is_left_alone_until_it_is_released(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    struct event ev = submit_event(&s, "a", (struct request){ .replicas = 1, .gpus = 1 });
    ev.submit.held = true;
    small_apply(&s, ev);
    uint64_t job = ++s.last;
    CHECK(small_pass(&s) == 0 && small_state(&s, job) == JOB_HELD);
    small_job(&s, job, JOB_EV_RELEASE);
    CHECK(small_pass(&s) == 1 && small_started(&s, job));
}

static void a_frozen_job_gives_its_gpus_back_and_thaws_in_its_turn(void)
{
    AUTO(small_free) struct small s = lab(1, 1);
    uint64_t job = small_gpus(&s, "a", 1), other = small_gpus(&s, "b", 1);
    CHECK(small_pass(&s) == 1 && small_started(&s, job));
    small_job(&s, job, JOB_EV_STARTED);
    small_job(&s, job, JOB_EV_FREEZE);
    CHECK_INT(small_pass(&s), 0); /* it still writes its memory down */
    small_job(&s, job, JOB_EV_FROZE);
    CHECK(small_pass(&s) == 1 && small_started(&s, other));
    small_job(&s, job, JOB_EV_THAW);
    CHECK(small_state(&s, job) == JOB_FROZEN && core_totals(s.c).waiting == 1);
    CHECK_INT(small_pass(&s), 0);
    small_job(&s, other, JOB_EV_STARTED);
    small_job(&s, other, JOB_EV_EXITED_OK);
    CHECK(small_pass(&s) == 1 && s.plan.action[0].kind == ACT_THAW);
    CHECK_INT(small_state(&s, job), JOB_THAWING);
    small_job(&s, job, JOB_EV_STARTED);
    CHECK_INT(small_state(&s, job), JOB_RUNNING);
}

static void a_paused_job_keeps_its_gpus_and_thaws_at_once(void)
{
    AUTO(small_free) struct small s = lab(1, 1);
    uint64_t job = small_gpus(&s, "a", 1), other = small_gpus(&s, "b", 1);
    small_pass(&s);
    small_job(&s, job, JOB_EV_STARTED);
    small_job(&s, job, JOB_EV_FREEZE);
    small_job(&s, job, JOB_EV_PAUSED);
    CHECK(small_pass(&s) == 0 && small_state(&s, other) == JOB_QUEUED);
    small_job(&s, job, JOB_EV_THAW);
    CHECK_INT(small_state(&s, job), JOB_THAWING);
    small_job(&s, job, JOB_EV_STARTED);
    small_job(&s, job, JOB_EV_EXITED_OK);
    CHECK(small_pass(&s) == 1 && small_started(&s, other));
}

static void a_thaw_can_be_taken_back_and_can_fail(void)
{
    AUTO(small_free) struct small s = lab(1, 1);
    uint64_t job = small_gpus(&s, "a", 1);
    small_pass(&s);
    small_job(&s, job, JOB_EV_STARTED);
    small_job(&s, job, JOB_EV_FREEZE);
    small_job(&s, job, JOB_EV_FROZE);
    small_job(&s, job, JOB_EV_THAW);
    small_job(&s, job, JOB_EV_FREEZE);
    CHECK(core_totals(s.c).waiting == 0 && small_pass(&s) == 0);
    small_job(&s, job, JOB_EV_THAW);
    CHECK_INT(small_pass(&s), 1);
    small_job(&s, job, JOB_EV_FROZE); /* did not happen: it waits for another try */
    CHECK(small_state(&s, job) == JOB_FROZEN && core_totals(s.c).waiting == 1);
    CHECK(small_pass(&s) == 1 && s.plan.action[0].kind == ACT_THAW);
}

static void a_job_that_lost_its_place_keeps_its_turn(void)
{
    AUTO(small_free) struct small s = lab(1, 1);
    uint64_t first = small_gpus(&s, "a", 1), second = small_gpus(&s, "a", 1);
    CHECK(small_pass(&s) == 1 && small_started(&s, first));
    small_job(&s, first, JOB_EV_RETURNED);
    CHECK(small_pass(&s) == 1 && small_started(&s, first));
    CHECK_INT(small_state(&s, second), JOB_QUEUED);
}

static void what_runs_on_a_node_that_drains_runs_on(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    uint64_t job = small_gpus(&s, "a", 1), next = small_gpus(&s, "a", 1);
    s.now_ms = 1;
    struct event place = { .kind = EVENT_PLACE };
    place.place = (struct event_place){ { job }, &(struct slot){ 0, 1, 1000 }, 1 };
    small_apply(&s, place);
    small_node_state(&s, "n0", NODE_DRAIN);
    CHECK(small_pass(&s) == 0 && small_state(&s, job) == JOB_STARTING);
    small_node_state(&s, "n0", NODE_UP);
    CHECK(small_pass(&s) == 1 && small_started(&s, next));
}

/* ---- the order ---- */

static void the_higher_priority_of_one_user_goes_first(void)
{
    AUTO(small_free) struct small s = lab(1, 1);
    struct event low = submit_event(&s, "a", (struct request){ .replicas = 1, .gpus = 1 });
    low.submit.priority = PRIO_LOW;
    small_apply(&s, low);
    s.last++;
    uint64_t normal = small_gpus(&s, "a", 1);
    CHECK(small_pass(&s) == 1 && small_started(&s, normal));
}

static void age_lifts_a_low_priority_over_a_newer_job(void)
{
    AUTO(small_free) struct small s = lab(1, 1);
    struct event p = { .kind = EVENT_POLICY, .policy = policy_default() };
    p.policy.age_step_ms = 10 * HOUR_MS;
    small_apply(&s, p);
    uint64_t blocker = small_gpus(&s, "a", 1);
    CHECK_INT(small_pass(&s), 1);
    struct event low = submit_event(&s, "a", (struct request){ .replicas = 1, .gpus = 1 });
    low.submit.priority = PRIO_LOW;
    small_apply(&s, low);
    uint64_t old = ++s.last;
    s.now_ms = 10 * HOUR_MS;
    uint64_t fresh = small_gpus(&s, "a", 1);
    small_job(&s, blocker, JOB_EV_STARTED);
    small_job(&s, blocker, JOB_EV_EXITED_OK);
    CHECK(small_pass(&s) == 1 && small_started(&s, old));
    CHECK_INT(small_state(&s, fresh), JOB_QUEUED);
}

static void priority_does_not_reach_beyond_its_user(void)
{
    AUTO(small_free) struct small s = lab(1, 2);
    small_gpus(&s, "a", 1);
    CHECK_INT(small_pass(&s), 1);
    struct event ev = submit_event(&s, "a", (struct request){ .replicas = 1, .gpus = 1 });
    ev.submit.priority = PRIO_URGENT;
    small_apply(&s, ev);
    s.last++;
    uint64_t poor = small_gpus(&s, "b", 1);
    CHECK(small_pass(&s) == 1 && small_started(&s, poor));
}

static void a_tenant_below_its_guarantee_goes_first(void)
{
    AUTO(small_free) struct small s = lab(1, 4);
    struct event sure = tenant_event("sure", "", 1);
    sure.tenant.guarantee_milli = 2000;
    small_apply(&s, sure);
    for (int i = 0; i < 4; i++)
        small_gpus(&s, "a", 1);
    small_gpus(&s, "sure", 1);
    uint64_t second = small_gpus(&s, "sure", 1);
    CHECK_INT(small_pass(&s), 4);
    CHECK(s.plan.action[0].job.v == second - 1 && s.plan.action[1].job.v == second);
}

static void a_limit_blocks_and_wakes(void)
{
    AUTO(small_free) struct small s = lab(1, 4);
    struct event t = tenant_event("a", "", 1);
    t.tenant.limit.of[RES_JOBS] = 1;
    small_apply(&s, t);
    uint64_t first = small_gpus(&s, "a", 1), second = small_gpus(&s, "a", 1);
    CHECK_INT(small_pass(&s), 1);
    CHECK_INT(small_pass(&s), 0);
    t.tenant.limit.of[RES_JOBS] = 2; /* raised: no job has to end */
    small_apply(&s, t);
    CHECK(small_pass(&s) == 1 && small_started(&s, second));
    uint64_t third = small_gpus(&s, "a", 1);
    CHECK_INT(small_pass(&s), 0);
    small_job(&s, first, JOB_EV_RETURNED);
    CHECK(small_pass(&s) == 1 && small_started(&s, first)); /* it goes before the third */
    small_job(&s, first, JOB_EV_EXITED_BAD);
    CHECK(small_pass(&s) == 1 && small_started(&s, third));
}

static void a_job_that_waited_long_gets_room_kept(void)
{
    AUTO(small_free) struct small s = lab(1, 4);
    struct event p = { .kind = EVENT_POLICY, .policy = policy_default() };
    p.policy.claim_after_ms = HOUR_MS;
    small_apply(&s, p);
    uint64_t running = small_gpus(&s, "a", 1), large = small_gpus(&s, "a", 4);
    CHECK_INT(small_pass(&s), 1);
    s.now_ms = 2 * HOUR_MS;
    CHECK_INT(small_pass(&s), 0);
    struct node_view n;
    CHECK(core_node(s.c, (node_id){ 0 }, &n) && n.kept);
    uint64_t later = small_gpus(&s, "b", 1);
    CHECK_INT(small_pass(&s), 0); /* three GPUs are free, and kept */
    small_job(&s, running, JOB_EV_STARTED);
    small_job(&s, running, JOB_EV_EXITED_OK);
    CHECK(small_pass(&s) == 1 && small_started(&s, large));
    CHECK(core_node(s.c, (node_id){ 0 }, &n) && !n.kept);
    small_job(&s, large, JOB_EV_STARTED);
    small_job(&s, large, JOB_EV_EXITED_OK);
    CHECK(small_pass(&s) == 1 && small_started(&s, later));
}

static void a_job_that_stops_waiting_lets_its_kept_room_go(void)
{
    AUTO(small_free) struct small s = lab(1, 4);
    struct event p = { .kind = EVENT_POLICY, .policy = policy_default() };
    p.policy.claim_after_ms = 0;
    small_apply(&s, p);
    small_gpus(&s, "a", 1);
    uint64_t large = small_gpus(&s, "a", 4);
    small_pass(&s);
    uint64_t later = small_gpus(&s, "b", 1);
    CHECK(small_pass(&s) == 0 && core_totals(s.c).kept_nodes == 1);
    small_job(&s, large, JOB_EV_CANCEL);
    CHECK(core_totals(s.c).kept_nodes == 0 && small_pass(&s) == 1 && small_started(&s, later));
}

static void views_end_where_the_world_ends(void)
{
    AUTO(small_free) struct small s = lab(1, 1);
    struct share_view v;
    struct node_view n;
    struct job_view j;
    CHECK(core_share(s.c, (share_id){ 2 }, 0, &v) && !core_share(s.c, (share_id){ 3 }, 0, &v));
    CHECK_STR(v.name, "b");
    CHECK(core_node(s.c, (node_id){ 0 }, &n) && !core_node(s.c, (node_id){ 1 }, &n));
    CHECK_STR(n.model, "m");
    CHECK(!core_job(s.c, (job_id){ 1 }, &j));
    CHECK(core_free(NULL) == NULL);
    CHECK_STR(event_kind_name(EVENT_KIND_COUNT), "?");
    CHECK_STR(node_state_name(NODE_STATE_COUNT), "?");
}

static const struct test tests[] = {
    { "bad requests are refused and change nothing", bad_requests_are_refused_and_change_nothing },
    { "bad submitters are refused and change nothing",
      bad_submitters_are_refused_and_change_nothing },
    { "a job above a limit is refused at once", a_job_above_a_limit_is_refused_at_once },
    { "bad events are refused and change nothing", bad_events_are_refused_and_change_nothing },
    { "bad steps of a job are refused and change nothing",
      bad_steps_of_a_job_are_refused_and_change_nothing },
    { "bad decisions are refused and change nothing",
      bad_decisions_are_refused_and_change_nothing },
    { "a time that is none is refused", a_time_that_is_none_is_refused },
    { "a clock that is set back does not undo the past",
      a_clock_that_is_set_back_does_not_undo_the_past },
    { "a job holds its GPUs from its start to its end",
      a_job_holds_its_gpus_from_its_start_to_its_end },
    { "a held job is left alone until it is released",
      a_held_job_is_left_alone_until_it_is_released },
    { "a frozen job gives its GPUs back and thaws in its turn",
      a_frozen_job_gives_its_gpus_back_and_thaws_in_its_turn },
    { "a paused job keeps its GPUs and thaws at once",
      a_paused_job_keeps_its_gpus_and_thaws_at_once },
    { "a thaw can be taken back and can fail", a_thaw_can_be_taken_back_and_can_fail },
    { "a job that lost its place keeps its turn", a_job_that_lost_its_place_keeps_its_turn },
    { "what runs on a node that drains runs on", what_runs_on_a_node_that_drains_runs_on },
    { "the higher priority of one user goes first", the_higher_priority_of_one_user_goes_first },
    { "age lifts a low priority over a newer job", age_lifts_a_low_priority_over_a_newer_job },
    { "priority does not reach beyond its user", priority_does_not_reach_beyond_its_user },
    { "a tenant below its guarantee goes first", a_tenant_below_its_guarantee_goes_first },
    { "a limit blocks and wakes", a_limit_blocks_and_wakes },
    { "a job that waited long gets room kept", a_job_that_waited_long_gets_room_kept },
    { "a job that stops waiting lets its kept room go",
      a_job_that_stops_waiting_lets_its_kept_room_go },
    { "views end where the world ends", views_end_where_the_world_ends },
};
TEST_CASES(tests)
