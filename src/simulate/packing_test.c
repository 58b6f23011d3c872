#include "simulate/packing.h"

#include <math.h>

#include "base/json.h"
#include "tests/lib/gen_trace.h"
#include "tests/lib/test.h"

static struct openb generated(uint64_t seed)
{
    AUTO(gen_openb_free) struct gen_openb g;
    struct openb o;
    struct err e;
    gen_openb(seed, &g);
    const struct openb_sources from = { { "nodes", buf_str(&g.nodes) },
                                        { "pods", buf_str(&g.pods) },
                                        { "seq", buf_str(&g.seq) },
                                        { "ranks", buf_str(&g.ranks) },
                                        { "published", buf_str(&g.published) } };
    CHECK(openb_parse(&from, "default", &o, &e) == 0);
    return o;
}

/* One node of 4 GPUs, pods of the given GPU thousandths in this order, one seed. */
static struct openb by_hand(const uint32_t *milli, uint32_t n)
{
    struct openb o = { .nodes = 1, .pods = n, .seeds = 1 };
    o.node = arena_array(&o.arena, struct openb_node, 1);
    o.node[0] = (struct openb_node){ "n", "T4", 64000, 64000, 4 };
    o.pod = arena_array(&o.arena, struct openb_pod, n);
    o.seed = arena_array(&o.arena, struct openb_seed, 1);
    o.seed[0] = (struct openb_seed){ .seed = 9, .orders = n };
    o.seed[0].order = arena_array(&o.arena, uint32_t, n);
    o.seed[0].rank = arena_array(&o.arena, uint32_t, 1);
    for (uint32_t i = 0; i < n; i++) {
        bool share = milli[i] < 1000;
        o.pod[i] = (struct openb_pod){ .name = "p", .spec = "", .cpu_milli = 100, .mem_mib = 10 };
        o.pod[i].num_gpu = share ? milli[i] > 0 : milli[i] / 1000;
        o.pod[i].gpu_milli = share ? milli[i] : 1000;
        o.seed[0].order[i] = i;
    }
    return o;
}

static struct packing_result run(const struct openb *o, const char *policy, bool prior)
{
    struct packing_result r;
    struct err e = { 0 };
    CHECK(packing_run(o, "default", policy, prior, &r, &e) == 0);
    return r;
}

static void each_pod_is_a_point_at_the_demand_that_has_arrived(void)
{
    AUTO(openb_free) struct openb o = by_hand((uint32_t[]){ 1000, 500, 500, 1000, 1000 }, 5);
    struct packing_result r = run(&o, "bestfit", false);
    const double *alloc = r.seed[0].alloc;
    CHECK_INT(alloc[25] * 100, 2500);
    CHECK_INT(alloc[38] * 100, 3750); /* 37.5 rounds to the even percent; the share is exact */
    CHECK_INT(alloc[50] * 100, 5000);
    CHECK_INT(alloc[75] * 100, 7500);
    CHECK_INT(alloc[100] * 100, 10000);
    CHECK(isnan(alloc[10]) && isnan(alloc[60]) && isnan(alloc[130]));
    CHECK(r.seed[0].placed == 5 && r.seed[0].dropped == 0 && r.seed[0].seed == 9);
    CHECK_INT(r.alloc_100 * 100, 10000);
    free(r.seed);
}

static void an_empty_bucket_is_the_mean_of_its_neighbours(void)
{
    AUTO(openb_free) struct openb o = by_hand((uint32_t[]){ 1000, 80 }, 2); /* 25 %, 27 % */
    struct packing_result r = run(&o, "bestfit", false);
    CHECK_INT(r.seed[0].alloc[26] * 100, 2600);
    CHECK_INT(r.seed[0].alloc[24] * 100, 2500);
    CHECK_INT(r.seed[0].alloc[28] * 100, 2700);
    CHECK(isnan(r.seed[0].alloc[29]));
    free(r.seed);
}

static void a_dropped_pod_arrives_and_is_not_allocated(void)
{
    AUTO(openb_free) struct openb o = by_hand((uint32_t[]){ 3000, 2000, 1000, 0 }, 4);
    struct packing_result r = run(&o, "bestfit", false);
    CHECK(r.seed[0].placed == 3 && r.seed[0].dropped == 1);
    CHECK_INT(r.seed[0].alloc[125] * 100, 7500);
    /* Two pods at 150 %: the last has no GPU and is a sample all the same. */
    CHECK_INT(r.seed[0].alloc[150] * 100, 10000);
    free(r.seed);
}

static void a_pod_whose_models_no_node_has_is_dropped(void)
{
    static const char *const policies[] = { "nightshift", "bestfit", "fgd" };
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        AUTO(openb_free) struct openb o = by_hand((uint32_t[]){ 1000, 1000, 1000 }, 3);
        o.pod[0].spec = "V100M16";
        o.pod[1].spec = "T4";
        struct packing_result r = run(&o, policies[i], false);
        CHECK(r.seed[0].placed == 2 && r.seed[0].dropped == 1);
        CHECK_INT(r.seed[0].alloc[25] * 100, 0);
        free(r.seed);
    }
}

static void nothing_is_ever_allocated_twice(void)
{
    static const char *const policies[] = { "nightshift", "bestfit", "fgd" };
    for (uint64_t seed = 1; seed <= 12; seed++) {
        AUTO(openb_free) struct openb o = generated(seed);
        struct packing_result r = run(&o, policies[seed % 3], seed % 2);
        CHECK_INT(r.seeds, GEN_OPENB_SEEDS);
        for (uint32_t s = 0; s < r.seeds; s++) {
            CHECK_AT(seed, r.seed[s].placed + r.seed[s].dropped == o.seed[s].orders);
            CHECK_AT(seed, r.seed[s].placed > 0);
            for (int a = 0; a < PACKING_PERCENT_MAX; a++) {
                double used = r.seed[s].alloc[a];
                CHECK_AT(seed, isnan(used) || (used >= 0 && used <= 100 && used <= a + 1.51));
            }
        }
        free(r.seed);
    }
}

static bool same_curve(const double *a, const double *b)
{
    for (int i = 0; i < PACKING_PERCENT_MAX; i++)
        if (isnan(a[i]) != isnan(b[i]) || fabs(a[i] - b[i]) > 0)
            return false;
    return true;
}

static bool same_curves(const struct packing_result *a, const struct packing_result *b)
{
    for (uint32_t s = 0; s < a->seeds; s++)
        if (!same_curve(a->seed[s].alloc, b->seed[s].alloc))
            return false;
    return true;
}

static void the_same_tables_give_the_same_curves(void)
{
    static const char *const policies[] = { "nightshift", "bestfit", "fgd" };
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        AUTO(openb_free) struct openb o = generated(5);
        struct packing_result a = run(&o, policies[i], false), b = run(&o, policies[i], false);
        CHECK(same_curves(&a, &b));
        for (uint32_t s = 0; s < a.seeds; s++)
            CHECK(a.seed[s].placed == b.seed[s].placed && a.seed[s].seed == 42 + s);
        free(a.seed);
        free(b.seed);
    }
}

static void what_is_known_beforehand_changes_fgd_and_not_bestfit(void)
{
    bool fgd_differs = false;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        AUTO(openb_free) struct openb o = generated(seed);
        struct packing_result a = run(&o, "fgd", true), b = run(&o, "fgd", false);
        struct packing_result c = run(&o, "bestfit", true), d = run(&o, "bestfit", false);
        fgd_differs = fgd_differs || !same_curves(&a, &b);
        CHECK_AT(seed, same_curves(&c, &d));
        free(a.seed);
        free(b.seed);
        free(c.seed);
        free(d.seed);
    }
    CHECK(fgd_differs);
}

/* The list is full of pairs, and what arrives are pods for no node, one single and one pair: who
 * knows the list leaves the node of two to the pair. */
static void what_arrives_does_not_change_a_prior_from_the_trace(void)
{
    uint32_t milli[22];
    for (uint32_t i = 0; i < ARRAY_LEN(milli); i++)
        milli[i] = i < 2 ? 1000 : 2000;
    AUTO(openb_free) struct openb o = by_hand(milli, ARRAY_LEN(milli));
    o.nodes = 2;
    o.node = arena_array(&o.arena, struct openb_node, 2);
    o.node[0] = (struct openb_node){ "two", "T4", 64000, 64000, 2 };
    o.node[1] = (struct openb_node){ "one", "T4", 64000, 64000, 1 };
    o.seed[0].rank = arena_array(&o.arena, uint32_t, 2);
    o.seed[0].rank[1] = 1;
    o.pod[1].spec = "V100M16";
    o.seed[0].orders = 402;
    o.seed[0].order = arena_array(&o.arena, uint32_t, 402);
    for (uint32_t i = 0; i < 402; i++)
        o.seed[0].order[i] = i < 400 ? 1 : i == 400 ? 0 : 2;
    struct packing_result knows = run(&o, "fgd", true), learns = run(&o, "fgd", false);
    CHECK_INT(knows.seed[0].placed, 2);
    CHECK_INT(learns.seed[0].placed, 1);
    free(knows.seed);
    free(learns.seed);
}

/* Of two equal nodes the one with the lower rank is filled; the pods then show which it was. */
static void nodes_are_enrolled_by_rank(void)
{
    for (uint32_t first = 0; first < 2; first++) {
        AUTO(openb_free) struct openb o = by_hand((uint32_t[]){ 1000, 1000 }, 2);
        o.nodes = 2;
        o.node = arena_array(&o.arena, struct openb_node, 2);
        o.node[0] = (struct openb_node){ "a", "T4", 64000, 64000, 1 };
        o.node[1] = (struct openb_node){ "b", "P100", 64000, 64000, 1 };
        o.seed[0].rank = arena_array(&o.arena, uint32_t, 2);
        o.seed[0].rank[first == 0] = 1; /* the pod for any model takes the first node */
        o.pod[1].spec = "T4";
        struct packing_result r = run(&o, "bestfit", false);
        CHECK_INT(r.seed[0].placed, first == 0 ? 1 : 2);
        free(r.seed);
    }
}

static void published_points_are_compared_by_policy_and_seed(void)
{
    AUTO(openb_free) struct openb o = by_hand((uint32_t[]){ 1000, 1000 }, 2);
    struct openb_published pub[] = {
        { .policy = "BestFit", .seed = 9, .demand = { 25, 50, 75 }, .alloc = { 24.5, 48, NAN }, 3 },
        { .policy = "BestFit", .seed = 8, .demand = { 25 }, .alloc = { 0 }, 1 },
        { .policy = "FGD", .seed = 9, .demand = { 25 }, .alloc = { 0 }, 1 },
    };
    o.published = pub;
    o.publisheds = ARRAY_LEN(pub);
    struct packing_result r = run(&o, "bestfit", false);
    CHECK_INT(r.off_published * 100, 200);
    free(r.seed);
    r = run(&o, "nightshift", false);
    CHECK(isnan(r.off_published));
    free(r.seed);
}

static void an_unknown_policy_is_refused_and_nothing_is_set(void)
{
    AUTO(openb_free) struct openb o = by_hand((uint32_t[]){ 1000 }, 1);
    struct packing_result r = { .seeds = 12345 };
    struct err e = { 0 };
    CHECK(packing_run(&o, "default", "worstfit", false, &r, &e) == -1);
    CHECK(e.code == ERR_INVALID && r.seeds == 12345);
    CHECK_STR(e.msg, "--policy: 'worstfit' is not a packer");
    CHECK_STR(e.hint, "choose nightshift, fgd or bestfit");
}

static void the_json_has_the_figures_as_numbers(void)
{
    AUTO(openb_free)
    struct openb o = by_hand((uint32_t[]){ 2000, 2000, 200, 1000 }, 4); /* 100, 105, 130 % */
    AUTO(buf_free) struct buf b = BUF(65536);
    struct packing_result r = run(&o, "bestfit", false);
    struct err e;
    packing_json(&r, &b);
    free(r.seed);
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&b), &e);
    CHECK(d && b.p[b.n - 1] == '\n');
    double at_100 = 0, at_130 = 0, ns = -1;
    struct str workload = { "", 0 };
    const struct json *root = json_root(d);
    CHECK(json_get_f64(root, "alloc_100", 0, 100, &at_100, &e) == 0);
    CHECK(json_get_f64(root, "alloc_130", 0, 100, &at_130, &e) == 0);
    CHECK(json_get_f64(root, "ns_per_placement", 0, 1e12, &ns, &e) == 0 && ns >= 0);
    CHECK(json_need_str(root, "workload", 64, &workload, &e) == 0 && str_is(workload, "default"));
    CHECK_INT(at_100 * 100, 10000);
    CHECK_INT(at_130 * 100, 10000);
    CHECK_INT(json_len(json_find(root, "seeds")), 1);
}

static const struct test tests[] = {
    { "each pod is a point at the demand that has arrived",
      each_pod_is_a_point_at_the_demand_that_has_arrived },
    { "an empty bucket is the mean of its neighbours",
      an_empty_bucket_is_the_mean_of_its_neighbours },
    { "a dropped pod arrives and is not allocated", a_dropped_pod_arrives_and_is_not_allocated },
    { "a pod whose models no node has is dropped", a_pod_whose_models_no_node_has_is_dropped },
    { "nothing is ever allocated twice", nothing_is_ever_allocated_twice },
    { "the same tables give the same curves", the_same_tables_give_the_same_curves },
    { "what is known beforehand changes fgd and not bestfit",
      what_is_known_beforehand_changes_fgd_and_not_bestfit },
    { "what arrives does not change a prior from the trace",
      what_arrives_does_not_change_a_prior_from_the_trace },
    { "nodes are enrolled by rank", nodes_are_enrolled_by_rank },
    { "published points are compared by policy and seed",
      published_points_are_compared_by_policy_and_seed },
    { "an unknown policy is refused and nothing is set",
      an_unknown_policy_is_refused_and_nothing_is_set },
    { "the JSON has the figures as numbers", the_json_has_the_figures_as_numbers },
};
TEST_CASES(tests)
