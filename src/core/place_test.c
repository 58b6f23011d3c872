#include "core/place.h"

#include "tests/lib/brute.h"
#include "tests/lib/test.h"

#define LONG_ROW 40 /* longer than what a search looks at first */

static uint32_t longest_row(const struct cluster *c)
{
    uint32_t longest = 0;
    for (uint32_t k = 0; k < c->kinds; k++)
        for (uint32_t w = 0; w < ROWS; w++)
            longest = MAX(longest, c->kind[k].row[w].n);
    return longest;
}

static void check_same(uint64_t seed, struct cluster *c, struct demand *d, const struct request *r)
{
    AUTO(gang_scratch_free) struct gang_scratch g = { 0 };
    struct slot s;
    bool found = place_find(c, d, r, &g, &s);
    CHECK_AT(seed, found == brute_gang_fits(c, r, false));
    if (!found)
        return;
    CHECK_AT(seed, cluster_has_room(c, r, &s, 1) && c->node[s.node].cell != NONE);
}

/* Many nodes in many conditions: rows grow longer than the spread of cells that is looked at. */
static void a_place_is_found_exactly_when_some_node_has_room(void)
{
    uint32_t long_rows = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        AUTO(cluster_free) struct cluster c;
        AUTO(demand_free) struct demand d;
        struct rng rng = { seed };
        cluster_init(&c);
        demand_init(&d);
        brute_cluster(&rng, &c, seed % 2 ? rng_between(&rng, 1, 200) : 600);
        brute_use(&rng, &c, c.nodes * 4);
        long_rows += longest_row(&c) >= LONG_ROW;
        for (int i = 0; i < 60; i++) {
            struct request r = brute_request(&rng, false);
            if (i % 2)
                demand_learn(&d, &c, &r);
            check_same(seed, &c, &d, &r);
            r.cpu_milli = rng_between(&rng, 1, 32) * 1000; /* hard to please */
            r.mem_mib = rng_between(&rng, 1, 64) * 1000;
            check_same(seed, &c, &d, &r);
        }
    }
    CHECK(long_rows > 50);
}

/* One node among hundreds has the memory; the CPUs of all are different, so are their cells. */
static void the_one_node_in_a_long_row_is_found(void)
{
    AUTO(cluster_free) struct cluster c;
    AUTO(demand_free) struct demand d;
    AUTO(gang_scratch_free) struct gang_scratch g = { 0 };
    struct slot s = { 0 };
    struct err e;
    cluster_init(&c);
    demand_init(&d);
    for (uint32_t i = 0; i < 300; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%u", i);
        struct event_node n = { .name = str_of(name), .cpu_milli = 64000, .mem_mib = 64000 };
        CHECK(cluster_add_node(&c, &n, &e) == 0);
        struct request used = { .replicas = 1, .cpu_milli = i, .mem_mib = i == 201 ? 0 : 1 };
        cluster_take(&c, &used, &(struct slot){ .node = i }, 1);
    }
    CHECK(longest_row(&c) == 300);
    struct request r = { .replicas = 1, .mem_mib = 64000 };
    CHECK(place_find(&c, &d, &r, &g, &s));
    CHECK_INT(s.node, 201);
    r.cpu_milli = 64000 - 201;
    CHECK(place_find(&c, &d, &r, &g, &s) && s.node == 201);
    r.cpu_milli++;
    CHECK(!place_find(&c, &d, &r, &g, &s));
}

static struct cluster two_models(void)
{
    struct cluster c;
    struct err e;
    cluster_init(&c);
    struct event_node n = { .name = STR("pc"),
                            .model = STR("4090"),
                            .gpus = 1,
                            .gpu_mem_mib = 24000,
                            .cpu_milli = 16000,
                            .mem_mib = 64000 };
    CHECK(cluster_add_node(&c, &n, &e) == 0);
    n = (struct event_node){ .name = STR("srv"),
                             .model = STR("a100"),
                             .gpus = 8,
                             .gpu_mem_mib = 80000,
                             .cpu_milli = 128000,
                             .mem_mib = 512000,
                             .link = { 0, 0, 0, 0, 1, 1, 1, 1 } };
    CHECK(cluster_add_node(&c, &n, &e) == 0);
    return c;
}

static void a_share_fills_an_open_gpu_before_it_opens_another(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    AUTO(demand_free) struct demand d;
    AUTO(gang_scratch_free) struct gang_scratch g = { 0 };
    struct slot s;
    demand_init(&d);
    struct request half = { .replicas = 1, .gpu_milli = 500 }, whole = { .replicas = 1, .gpus = 1 };
    for (int i = 0; i < 10; i++)
        demand_learn(&d, &c, i % 2 ? &half : &whole);
    cluster_take(&c, &half, &(struct slot){ 1, 1 << 6, 500 }, 1);
    CHECK(place_find(&c, &d, &half, &g, &s));
    CHECK(s.node == 1 && s.gpu_mask == 1 << 6 && s.milli == 500);
}

static void jobs_that_could_run_anywhere_leave_the_model_that_others_need(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    AUTO(demand_free) struct demand d;
    AUTO(gang_scratch_free) struct gang_scratch g = { 0 };
    struct slot s;
    demand_init(&d);
    struct request bound = { .replicas = 1, .gpus = 1, .models = 1 };
    struct request any = { .replicas = 1, .gpus = 1 };
    for (int i = 0; i < 200; i++)
        demand_learn(&d, &c, i % 2 ? &bound : &any);
    CHECK(d.price[0] > d.price[1]);
    CHECK(place_find(&c, &d, &any, &g, &s));
    CHECK_INT(s.node, 1);
}

/* ---- never ---- */

static void never(const struct cluster *c, struct request r, const char *msg)
{
    struct err e = { 0 };
    CHECK(place_check_possible(c, &r, &e) < 0);
    CHECK_STR(e.msg, msg);
    CHECK(e.code == ERR_INVALID && (c->nodes == 0 || e.hint[0]));
}

static void what_can_never_run_is_refused_with_field_and_limit(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    AUTO(cluster_free) struct cluster none;
    cluster_init(&none);
    never(&none, (struct request){ .replicas = 1 }, "there are no machines yet");
    never(&c, (struct request){ .replicas = 1, .gpus = 9 },
          "gpus: 9 on one machine; the largest has 8");
    never(&c, (struct request){ .replicas = 1, .gpus = 2, .models = 1 },
          "gpus: 2 on one machine; the largest of the models asked for has 1");
    never(&c, (struct request){ .replicas = 1, .cpu_milli = 128500 },
          "cpus: 128.5 on one machine; the largest has 128");
    never(&c, (struct request){ .replicas = 1, .mem_mib = 512001 },
          "mem: 512001 MiB on one machine; the largest has 512000 MiB");
    never(&c, (struct request){ .replicas = 1, .gpus = 1, .gpu_mem_mib = 81000 },
          "gpu_mem: 81000 MiB on one GPU; the largest has 80000 MiB");
    never(&c, (struct request){ .replicas = 1, .gpu_mem_mib = 25000, .models = 1 },
          "gpu_mem: 25000 MiB on one GPU; the largest of the models asked for has 24000 MiB");
    never(&c, (struct request){ .replicas = 1, .gpus = 5, .linked = 1 },
          "gpus: no machine has 5 linked GPUs");
}

static void a_combination_that_no_machine_has_is_refused(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    struct err e;
    struct event_node n = { .name = STR("fat"), .cpu_milli = 16000, .mem_mib = 1000000 };
    CHECK(cluster_add_node(&c, &n, &e) == 0);
    never(&c, (struct request){ .replicas = 1, .gpus = 1, .mem_mib = 900000 },
          "no single machine has the GPUs, CPUs and memory that a replica asks for");
}

static void a_gang_larger_than_the_cluster_is_refused(void)
{
    AUTO(cluster_free) struct cluster c = two_models();
    struct request r = { .replicas = 10, .gpus = 1, .cpu_milli = 4000 };
    never(&c, r, "replicas: 10 of 1 GPUs, 4 CPUs each do not fit, even with nothing else running");
    r.replicas = 9;
    r.scope = SCOPE_NODE;
    never(&c, r,
          "replicas: 9 of 1 GPUs, 4 CPUs each do not fit on one machine, even with nothing else "
          "running");
    r.scope = SCOPE_SWITCH;
    never(&c, r,
          "replicas: 9 of 1 GPUs, 4 CPUs each do not fit behind one switch, even with nothing "
          "else running");
    r.scope = SCOPE_ANY;
    struct err e;
    CHECK(place_check_possible(&c, &r, &e) == 0);
}

/* A promise: what is let in does start once nothing else runs. */
static void what_is_possible_is_found_on_an_idle_cluster(void)
{
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        AUTO(cluster_free) struct cluster c;
        AUTO(demand_free) struct demand d;
        AUTO(gang_scratch_free) struct gang_scratch g = { 0 };
        struct slot s[16];
        struct err e = { 0 };
        struct rng rng = { seed };
        cluster_init(&c);
        demand_init(&d);
        brute_cluster(&rng, &c, rng_between(&rng, 1, 10));
        for (int i = 0; i < 10; i++) {
            struct request r = brute_request(&rng, rng_below(&rng, 2));
            bool possible = place_check_possible(&c, &r, &e) == 0;
            CHECK_AT(seed, place_find(&c, &d, &r, &g, s) == possible);
            CHECK_AT(seed, possible || e.msg[0]);
        }
    }
}

static const struct test tests[] = {
    { "a place is found exactly when some node has room",
      a_place_is_found_exactly_when_some_node_has_room },
    { "the one node in a long row is found", the_one_node_in_a_long_row_is_found },
    { "a share fills an open GPU before it opens another",
      a_share_fills_an_open_gpu_before_it_opens_another },
    { "jobs that could run anywhere leave the model that others need",
      jobs_that_could_run_anywhere_leave_the_model_that_others_need },
    { "what can never run is refused with field and limit",
      what_can_never_run_is_refused_with_field_and_limit },
    { "a combination that no machine has is refused",
      a_combination_that_no_machine_has_is_refused },
    { "a gang larger than the cluster is refused", a_gang_larger_than_the_cluster_is_refused },
    { "what is possible is found on an idle cluster",
      what_is_possible_is_found_on_an_idle_cluster },
};
TEST_CASES(tests)
