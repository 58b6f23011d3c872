#include "simulate/replay.h"

#include <math.h>

#include "tests/lib/test.h"

/* Times in seconds; `gpus` of one node of ten. */
struct row {
    uint32_t tenant;
    int submit_s, start_s, end_s; /* start_s < 0: it never ran */
    uint32_t gpus;
};

#define SPAN_S 1008 /* as many seconds as a report has points: one point is one second */

struct measured {
    struct trace t;
    struct report r;
};

static void measured_free(struct measured *m)
{
    trace_free(&m->t);
}

/* parents: "" at the top; weights go with them. */
static struct measured measure(const struct trace_tenant *tenant, uint32_t tenants,
                               const struct row *row, uint32_t n)
{
    static struct event_node node = { .name = { "n", 1 }, .model = { "gpu", 3 }, .gpus = 10 };
    struct measured m = { .t = { .name = "hand", .node = &node, .nodes = 1, .jobs = n } };
    struct trace *t = &m.t;
    t->tenant = arena_array(&t->arena, struct trace_tenant, tenants);
    memcpy(t->tenant, tenant, tenants * sizeof *tenant);
    t->tenants = tenants;
    for (uint32_t i = 0; i < tenants; i++)
        if (t->tenant[i].limit.of[RES_GPU] == 0) /* a test that names none means none */
            t->tenant[i].limit = AMOUNTS_NO_LIMIT;
    t->job = arena_array(&t->arena, struct trace_job, n + 1);
    struct outcome o = outcome_new(t);
    for (uint32_t i = 0; i < n; i++) {
        t->job[i] =
            (struct trace_job){ .id = i + 1,
                                .submit_ms = row[i].submit_s * INT64_C(1000),
                                .tenant = row[i].tenant,
                                .gpus = row[i].gpus,
                                .request = { .replicas = 1, .gpus = (uint16_t)row[i].gpus } };
        o.came_ms[i] = t->job[i].submit_ms;
        bool ran = row[i].start_s >= 0;
        o.start_ms[i] = ran ? row[i].start_s * INT64_C(1000) : NEVER;
        o.end_ms[i] = ran ? row[i].end_s * INT64_C(1000) : NEVER;
        if (!ran)
            continue;
        t->job[i].duration_ms = o.end_ms[i] - o.start_ms[i];
        outcome_hold(t, &o, i, o.start_ms[i], o.end_ms[i]);
    }
    replay_measure(t, &o, &m.r);
    return m;
}

static const struct trace_tenant two[] = { { .name = "a", .parent = "", .weight_milli = 1000 },
                                           { .name = "b", .parent = "", .weight_milli = 3000 } };

static bool near(double got, double want)
{
    return fabs(got - want) < 1e-4 * fmax(1, fabs(want));
}

static void means_and_sums_are_those_of_the_jobs(void)
{
    const struct row rows[] = { { 0, 0, 0, 504, 5 }, { 1, 252, 504, 1008, 10 } };
    AUTO(measured_free) struct measured m = measure(two, 2, rows, 2);
    const struct report *r = &m.r;
    CHECK(near(r->avg_queue_s, 126) && near(r->avg_jct_s, 630) && near(r->max_queue_s, 252));
    CHECK(near(r->utilisation, 0.75) && near(r->started_at_once, 0.5));
    CHECK(r->jobs == 2 && r->unfinished == 0 && r->nodes == 1 && near(r->gpus, 10));
    CHECK(near(r->tenant[0].gpu_hours, 0.7) && near(r->tenant[1].gpu_hours, 1.4));
    CHECK(near(r->tenant[1].avg_queue_s, 252) && near(r->tenant[1].avg_jct_s, 756));
    CHECK(r->tenant[0].jobs == 1 && near(r->tenant[0].avg_queue_s, 0));
}

static void each_point_is_the_mean_over_its_step(void)
{
    const struct row rows[] = { { 0, 0, 0, 504, 5 }, { 1, 252, 504, 1008, 10 } };
    AUTO(measured_free) struct measured m = measure(two, 2, rows, 2);
    const struct report *r = &m.r;
    CHECK(r->points == SPAN_S && r->step_ms == 1000 && r->begin_ms == 0 && r->end_ms == 1008000);
    CHECK(near(r->used[0], 5) && near(r->used[503], 5) && near(r->used[504], 10));
    CHECK(near(r->waiting[251], 0) && near(r->waiting[252], 1) && near(r->waiting[503], 1));
    CHECK(near(r->waiting[504], 0));
    CHECK(near(r->demand[251], 5) && near(r->demand[252], 15) && near(r->demand[504], 10));
    CHECK(near(r->tenant[0].held[503], 5) && near(r->tenant[0].held[504], 0));
    CHECK(near(r->tenant[1].held[503], 0) && near(r->tenant[1].held[1007], 10));
}

/* Ten times the span: a point is ten seconds, and a job covers a part of one. */
static void a_part_of_a_step_counts_in_part(void)
{
    const struct row rows[] = { { 0, 0, 2, 7, 4 }, { 0, 0, 0, 10080, 1 } };
    AUTO(measured_free) struct measured m = measure(two, 2, rows, 2);
    CHECK(m.r.step_ms == 10000);
    CHECK(near(m.r.used[0], 3) && near(m.r.waiting[0], 0.2) && near(m.r.demand[0], 3.8));
    CHECK(near(m.r.used[1], 1));
}

static void quantiles_are_nearest_ranks(void)
{
    struct row rows[200];
    for (int i = 0; i < 200; i++)
        rows[i] = (struct row){ 0, 0, 200 - i, 300, 1 }; /* queues of 1 to 200 s */
    AUTO(measured_free) struct measured m = measure(two, 2, rows, 200);
    CHECK(near(m.r.p50_queue_s, 100) && near(m.r.p90_queue_s, 180));
    CHECK(near(m.r.p99_queue_s, 198) && near(m.r.max_queue_s, 200));
    CHECK(near(m.r.tenant[0].p99_queue_s, 198));
    AUTO(measured_free) struct measured few = measure(two, 2, rows, 3); /* 198, 199, 200 */
    CHECK(near(few.r.p50_queue_s, 199) && near(few.r.p99_queue_s, 200));
}

static void a_job_that_never_ran_is_unfinished_and_still_asks(void)
{
    const struct row rows[] = { { 0, 0, 0, 1008, 5 }, { 1, 500, -1, 0, 8 } };
    AUTO(measured_free) struct measured m = measure(two, 2, rows, 2);
    CHECK(m.r.unfinished == 1 && m.r.jobs == 2 && near(m.r.avg_queue_s, 0));
    CHECK(near(m.r.waiting[499], 0) && near(m.r.waiting[1007], 1));
    CHECK(near(m.r.demand[1007], 13) && near(m.r.used[1007], 5));
    CHECK(m.r.tenant[1].jobs == 0 && near(m.r.tenant[1].p99_queue_s, 0));
}

static void no_jobs_give_no_figures(void)
{
    AUTO(measured_free) struct measured m = measure(two, 2, NULL, 0);
    CHECK(m.r.jobs == 0 && m.r.points == 1 && near(m.r.utilisation, 0) && m.r.tenants == 2);
    CHECK(near(m.r.avg_queue_s, 0) && near(m.r.p99_queue_s, 0) && near(m.r.started_at_once, 0));
}

static void entitlement_is_by_weight_among_those_who_want(void)
{
    const struct row rows[] = {
        { 0, 0, 0, 1008, 10 },
        { 1, 0, 0, 504, 10 },   /* both want all: 1 to 3 */
        { 1, 504, 504, 756, 4 } /* less than its 7.5: the rest is a's */
    };
    AUTO(measured_free) struct measured m = measure(two, 2, rows, 3);
    const struct report_tenant *a = &m.r.tenant[0], *b = &m.r.tenant[1];
    CHECK(near(a->entitled[0], 2.5) && near(b->entitled[0], 7.5));
    CHECK(near(a->entitled[600], 6) && near(b->entitled[600], 4));
    CHECK(near(a->entitled[1000], 10) && near(b->entitled[1000], 0));
    CHECK(near(b->entitled_hours, (7.5 * 504 + 4 * 252) / 3600));
}

/* p (weight 3) holds x (1) and y (3); z (2) stands beside p. */
static const struct trace_tenant tree[] = {
    { .name = "p", .parent = "", .weight_milli = 3000 },
    { .name = "x", .parent = "p", .weight_milli = 1000 },
    { .name = "y", .parent = "p", .weight_milli = 3000 },
    { .name = "z", .parent = "", .weight_milli = 2000 },
};
enum {
    P,
    X,
    Y,
    Z
};

static const struct report_tenant *row_of(const struct report *r, const char *name)
{
    for (uint32_t i = 0; i < r->tenants; i++)
        if (strcmp(r->tenant[i].name, name) == 0)
            return &r->tenant[i];
    return NULL;
}

static void entitlement_goes_down_the_tree(void)
{
    const struct row rows[] = {
        { X, 0, 0, 504, 10 },    { Y, 0, 0, 1008, 10 },     { Z, 0, 0, 252, 10 },
        { Z, 252, 252, 504, 1 }, { Z, 504, 504, 1008, 10 },
    };
    AUTO(measured_free) struct measured m = measure(tree, 4, rows, ARRAY_LEN(rows));
    const struct report_tenant *x = row_of(&m.r, "x"), *y = row_of(&m.r, "y"),
                               *z = row_of(&m.r, "z");
    CHECK(x && y && z);
    CHECK(near(x->entitled[0], 1.5) && near(y->entitled[0], 4.5) && near(z->entitled[0], 4));
    /* z wants one: p has nine */
    CHECK(near(x->entitled[300], 2.25) && near(y->entitled[300], 6.75));
    CHECK(near(z->entitled[300], 1));
    /* x wants nothing: its part stays inside p */
    CHECK(near(x->entitled[600], 0) && near(y->entitled[600], 6) && near(z->entitled[600], 4));
}

static void a_tenant_that_only_groups_others_has_no_row(void)
{
    const struct row rows[] = { { X, 0, 0, 1008, 10 }, { Z, 0, 0, 1008, 10 } };
    AUTO(measured_free) struct measured m = measure(tree, 4, rows, 2);
    CHECK_INT(m.r.tenants, 3);
    CHECK(!row_of(&m.r, "p"));
    CHECK_STR(m.r.tenant[0].name, "x");
    CHECK_STR(m.r.tenant[1].name, "y"); /* no jobs, but nobody below it either */
    CHECK_STR(m.r.tenant[2].name, "z");
    CHECK(m.r.tenant[0].jobs == 1 && m.r.tenant[1].jobs == 0 && m.r.tenant[2].jobs == 1);
    CHECK(near(m.r.tenant[0].held[0], 10) && near(m.r.tenant[0].entitled[0], 6));
    CHECK(near(m.r.tenant[2].entitled[0], 4) && m.r.tenant[2].weight_milli == 2000);
}

static void a_tenant_with_jobs_and_others_below_it_has_a_row(void)
{
    const struct row rows[] = { { P, 0, 0, 1008, 2 }, { X, 0, 0, 1008, 2 } };
    AUTO(measured_free) struct measured m = measure(tree, 4, rows, 2);
    CHECK_INT(m.r.tenants, 4);
    CHECK_STR(m.r.tenant[0].name, "p");
    CHECK_INT(m.r.tenant[0].jobs, 1);
    /* Also when its only job never ran. */
    const struct row waits[] = { { X, 0, 0, 1008, 2 }, { P, 0, -1, 0, 2 } };
    AUTO(measured_free) struct measured w = measure(tree, 4, waits, 2);
    CHECK_INT(w.r.tenants, 4);
}

static void a_tenant_with_nodes_of_its_own_is_entitled_to_those(void)
{
    const struct row rows[] = { { 0, 0, 0, 504, 4 },
                                { 0, 504, 504, 1008, 20 },
                                { 1, 0, 0, 1008, 9 } };
    AUTO(measured_free) struct measured m = measure(two, 2, rows, 3);
    static uint32_t owner[] = { 0 }; /* the only node is a's */
    struct outcome o = outcome_new(&m.t);
    for (int i = 0; i < 3; i++) {
        o.start_ms[i] = rows[i].start_s * INT64_C(1000);
        o.end_ms[i] = rows[i].end_s * INT64_C(1000);
        outcome_hold(&m.t, &o, (uint32_t)i, o.start_ms[i], o.end_ms[i]);
    }
    m.t.node_tenant = owner;
    replay_measure(&m.t, &o, &m.r);
    CHECK(near(m.r.tenant[0].entitled[0], 4) && near(m.r.tenant[0].entitled[1007], 10));
    CHECK(near(m.r.tenant[1].entitled[0], 0) && near(m.r.tenant[1].entitled_hours, 0));
}

static void a_share_of_a_gpu_counts_as_its_part(void)
{
    const struct slot shares[] = { { 0, 1, 250 }, { 0, 1, 250 }, { 1, 4, 334 } };
    const struct slot whole[] = { { 0, 3, 1000 }, { 1, 9, 1000 } };
    CHECK(near(slots_gpus(shares, 3), 0.834) && near(slots_gpus(whole, 2), 4));
}

static void a_guarantee_comes_before_the_weights(void)
{
    const struct trace_tenant tenants[] = {
        { .name = "a", .parent = "", .weight_milli = 1000, .guarantee_milli = 4000 },
        { .name = "b", .parent = "", .weight_milli = 1000 },
    };
    const struct row rows[] = { { 0, 0, 0, 1008, 10 }, { 1, 0, 0, 1008, 10 } };
    AUTO(measured_free) struct measured m = measure(tenants, 2, rows, 2);
    CHECK(near(m.r.tenant[0].entitled[0], 7) && near(m.r.tenant[1].entitled[0], 3));
}

static void nobody_is_entitled_to_more_than_the_limit(void)
{
    struct trace_tenant tenants[] = { { .name = "a", .parent = "", .weight_milli = 3000 },
                                      { .name = "b", .parent = "", .weight_milli = 1000 } };
    const struct row rows[] = { { 0, 0, 0, 1008, 10 }, { 1, 0, 0, 1008, 10 } };
    tenants[0].limit = AMOUNTS_NO_LIMIT;
    tenants[0].limit.of[RES_GPU] = 2 * GPU_MILLI;
    AUTO(measured_free) struct measured m = measure(tenants, 2, rows, 2);
    CHECK(near(m.r.tenant[0].entitled[0], 2) && near(m.r.tenant[1].entitled[0], 8));
}

static void own_jobs_stand_beside_the_tenants_below(void)
{
    const struct row rows[] = { { P, 0, 0, 1008, 10 }, { X, 0, 0, 1008, 10 } };
    AUTO(measured_free) struct measured m = measure(tree, 4, rows, 2);
    CHECK(near(row_of(&m.r, "p")->entitled[0], 5) && near(row_of(&m.r, "x")->entitled[0], 5));
}

#define HOUR 3600

static void satisfaction_is_the_part_of_the_entitlement_that_was_had(void)
{
    const struct row rows[] = { { 0, 0, 0, 2 * HOUR, 10 },
                                { 1, 0, 2 * HOUR, 4 * HOUR, 10 },
                                { 0, 3 * HOUR, 4 * HOUR, 5 * HOUR, 10 } };
    AUTO(measured_free) struct measured m = measure(two, 2, rows, 3);
    /* Four hours, through the last submit.  Entitled: a 2.5, 2.5, 0, 2.5; b 7.5, 7.5, 10, 7.5. */
    double a = 5 / 7.5, b = 17.5 / 32.5;
    CHECK(near(m.r.tenant[0].satisfaction, a) && near(m.r.tenant[1].satisfaction, b));
    CHECK(near(m.r.satisfaction, 22.5 / 40) && near(m.r.worst_tenant, b));
    CHECK(near(m.r.jain, (a + b) * (a + b) / (2 * (a * a + b * b))));
}

static void who_asked_for_nothing_is_not_the_worst_tenant(void)
{
    const struct row rows[] = { { 0, 0, 0, 2 * HOUR, 10 }, { 0, HOUR, 2 * HOUR, 3 * HOUR, 10 } };
    AUTO(measured_free) struct measured m = measure(two, 2, rows, 2);
    CHECK(near(m.r.satisfaction, 1) && near(m.r.worst_tenant, 1) && near(m.r.jain, 1));
    CHECK(isnan(m.r.tenant[1].satisfaction));
    AUTO(measured_free) struct measured none = measure(two, 2, NULL, 0);
    CHECK(isnan(none.r.satisfaction) && isnan(none.r.worst_tenant) && isnan(none.r.jain));
    CHECK(isnan(none.r.worst_rho) && isnan(none.r.unfair_pct) && near(none.r.makespan_s, 0));
}

static void what_is_frozen_holds_nothing(void)
{
    const struct row rows[] = { { 0, 0, 0, 3 * HOUR, 10 }, { 0, 2 * HOUR, -1, 0, 0 } };
    AUTO(measured_free) struct measured m = measure(two, 2, rows, 2);
    struct outcome o = outcome_new(&m.t);
    o.start_ms[0] = 0;
    o.end_ms[0] = 3 * HOUR * INT64_C(1000);
    o.freezes[0] = 3;
    outcome_hold(&m.t, &o, 0, 0, HOUR * INT64_C(1000));
    outcome_hold(&m.t, &o, 0, 2 * HOUR * INT64_C(1000), o.end_ms[0]);
    replay_measure(&m.t, &o, &m.r);
    CHECK(near(m.r.satisfaction, 2.0 / 3) && near(m.r.utilisation, 2.0 / 3));
    CHECK(near(m.r.freezes, 1.5) && m.r.freezes_max == 3);
    CHECK(isnan(m.r.p50_cover) && isnan(m.r.p90_cover) && isnan(m.r.interval_width_ratio));
}

static void rho_compares_with_an_equal_part_of_the_cluster(void)
{
    struct row rows[20]; /* on ten GPUs: twice the run time is fair */
    for (int i = 0; i < 20; i++)
        rows[i] = (struct row){ 0, i, i + 110, i + 210, 1 };
    rows[7].start_s += 190;
    rows[7].end_s += 190;
    AUTO(measured_free) struct measured m = measure(two, 2, rows, 20);
    CHECK(near(m.r.worst_rho, 2) && near(m.r.unfair_pct, 5) && near(m.r.makespan_s, 407));
    AUTO(measured_free) struct measured few = measure(two, 2, rows, 2);
    CHECK(near(few.r.worst_rho, 2.1) && near(few.r.unfair_pct, 100));
}

static const struct test tests[] = {
    { "means and sums are those of the jobs", means_and_sums_are_those_of_the_jobs },
    { "each point is the mean over its step", each_point_is_the_mean_over_its_step },
    { "a part of a step counts in part", a_part_of_a_step_counts_in_part },
    { "quantiles are nearest ranks", quantiles_are_nearest_ranks },
    { "a job that never ran is unfinished and still asks",
      a_job_that_never_ran_is_unfinished_and_still_asks },
    { "no jobs give no figures", no_jobs_give_no_figures },
    { "entitlement is by weight among those who want",
      entitlement_is_by_weight_among_those_who_want },
    { "entitlement goes down the tree", entitlement_goes_down_the_tree },
    { "a tenant that only groups others has no row", a_tenant_that_only_groups_others_has_no_row },
    { "a tenant with jobs and others below it has a row",
      a_tenant_with_jobs_and_others_below_it_has_a_row },
    { "a tenant with nodes of its own is entitled to those",
      a_tenant_with_nodes_of_its_own_is_entitled_to_those },
    { "a share of a GPU counts as its part", a_share_of_a_gpu_counts_as_its_part },
    { "a guarantee comes before the weights", a_guarantee_comes_before_the_weights },
    { "nobody is entitled to more than the limit", nobody_is_entitled_to_more_than_the_limit },
    { "own jobs stand beside the tenants below", own_jobs_stand_beside_the_tenants_below },
    { "satisfaction is the part of the entitlement that was had",
      satisfaction_is_the_part_of_the_entitlement_that_was_had },
    { "who asked for nothing is not the worst tenant",
      who_asked_for_nothing_is_not_the_worst_tenant },
    { "what is frozen holds nothing", what_is_frozen_holds_nothing },
    { "rho compares with an equal part of the cluster",
      rho_compares_with_an_equal_part_of_the_cluster },
};
TEST_CASES(tests)
