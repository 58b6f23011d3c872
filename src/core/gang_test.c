#include "core/gang.h"

#include "tests/lib/brute.h"
#include "tests/lib/test.h"

/* A cluster, and a search in it that checks what it finds. */
struct bench {
    struct cluster c;
    struct gang_scratch g;
    struct slot slot[64];
};

static struct bench fresh(void)
{
    struct bench b = { 0 };
    cluster_init(&b.c);
    return b;
}

static void bench_free(struct bench *b)
{
    cluster_free(&b->c);
    gang_scratch_free(&b->g);
}

static uint32_t add(struct bench *b, const char *model, uint32_t gpus, const char *behind)
{
    char name[8];
    struct err e;
    snprintf(name, sizeof name, "n%u", b->c.nodes);
    struct event_node n = { .name = str_of(name),
                            .model = str_of(model),
                            .net_switch = str_of(behind),
                            .gpus = gpus,
                            .gpu_mem_mib = 16000,
                            .cpu_milli = 16000,
                            .mem_mib = 16000 };
    CHECK(cluster_add_node(&b->c, &n, &e) == 0);
    return b->c.nodes - 1;
}

static void take(struct bench *b, uint32_t node, uint16_t mask)
{
    struct slot s = { node, mask, GPU_MILLI };
    cluster_take(&b->c, &(struct request){ .replicas = 1 }, &s, 1);
}

static uint32_t nodes_of(const struct slot *s, uint32_t n)
{
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < n; i++)
        nodes += i == 0 || s[i].node != s[i - 1].node;
    return nodes;
}

/* On how many nodes it was placed; 0: no room. */
static uint32_t find(struct bench *b, const struct request *r)
{
    if (!gang_find(&b->c, r, &b->g, b->slot))
        return 0;
    CHECK(cluster_has_room(&b->c, r, b->slot, r->replicas));
    return nodes_of(b->slot, r->replicas);
}

static void all_replicas_get_a_place_or_none(void)
{
    AUTO(bench_free) struct bench b = fresh();
    add(&b, "a", 4, "");
    add(&b, "a", 4, "");
    struct request r = { .replicas = 4, .gpus = 2 };
    CHECK_INT(find(&b, &r), 2);
    r.replicas = 5;
    CHECK_INT(find(&b, &r), 0);
    r = (struct request){ .replicas = 3, .gpus = 3 }; /* nine GPUs of eight, and three a node */
    CHECK_INT(find(&b, &r), 0);
    CHECK(b.c.free.of[RES_GPU] == 8000); /* finding takes nothing */
}

static void few_nodes_are_used_and_the_tightest_closes(void)
{
    AUTO(bench_free) struct bench b = fresh();
    add(&b, "a", 2, "");
    add(&b, "a", 8, "");
    add(&b, "a", 4, "");
    struct request r = { .replicas = 10, .gpus = 1 };
    CHECK_INT(find(&b, &r), 2);
    CHECK(b.slot[0].node == 0 && b.slot[2].node == 1); /* 8 and the 2 that are left */
    r.replicas = 3;
    CHECK(find(&b, &r) == 1 && b.slot[0].node == 2);
}

static void fewest_waits_rather_than_scatters(void)
{
    AUTO(bench_free) struct bench b = fresh();
    add(&b, "a", 4, "");
    add(&b, "a", 4, "");
    struct request r = { .replicas = 4, .gpus = 1, .layout = LAYOUT_FEWEST };
    CHECK_INT(find(&b, &r), 1);
    take(&b, 0, 1);
    take(&b, 1, 1);
    CHECK_INT(find(&b, &r), 0); /* six are free, but on two nodes */
    r.layout = LAYOUT_PACK;
    CHECK_INT(find(&b, &r), 2);
}

static void spread_puts_each_replica_on_a_node_of_its_own(void)
{
    AUTO(bench_free) struct bench b = fresh();
    add(&b, "a", 8, "");
    add(&b, "a", 8, "");
    struct request r = { .replicas = 2, .gpus = 1, .layout = LAYOUT_SPREAD };
    CHECK_INT(find(&b, &r), 2);
    r.replicas = 3;
    CHECK_INT(find(&b, &r), 0);
    CHECK(!gang_fits_idle(&b.c, &r));
}

static void the_fullest_switch_that_holds_the_gang_is_used(void)
{
    AUTO(bench_free) struct bench b = fresh();
    add(&b, "a", 4, "east");
    add(&b, "a", 4, "east");
    add(&b, "a", 4, "west");
    add(&b, "a", 4, "west");
    take(&b, 3, 0x3);
    struct request r = { .replicas = 6, .gpus = 1, .scope = SCOPE_SWITCH };
    CHECK(find(&b, &r) == 2 && b.slot[0].node == 2);
    r.replicas = 7;
    CHECK(find(&b, &r) == 2 && b.slot[0].node == 0);
    r.replicas = 9;
    CHECK(find(&b, &r) == 0 && !gang_fits_idle(&b.c, &r));
    r.replicas = 6;
    r.cpu_milli = 4000; /* CPUs for eight behind each switch */
    cluster_take(&b.c, &(struct request){ .replicas = 1, .cpu_milli = 16000 },
                 &(struct slot){ .node = 3 }, 1);
    CHECK(find(&b, &r) == 2 && b.slot[0].node == 0);
}

static void one_machine_without_a_switch_is_close_enough(void)
{
    AUTO(bench_free) struct bench b = fresh();
    struct request r = { .replicas = 4, .gpus = 1, .scope = SCOPE_SWITCH };
    add(&b, "a", 4, "");
    CHECK(gang_fits_idle(&b.c, &r));
    CHECK_INT(find(&b, &r), 1);
    add(&b, "a", 4, "");
    take(&b, 0, 1);
    take(&b, 1, 1);
    CHECK_INT(find(&b, &r), 0); /* two of them are not */
    r.replicas = 5;
    CHECK(!gang_fits_idle(&b.c, &r));
}

/* The least number of machines is that of the place it is allowed, not of the whole cluster. */
static void fewest_behind_a_switch_counts_that_switch(void)
{
    AUTO(bench_free) struct bench b = fresh();
    add(&b, "a", 5, "west");
    for (int i = 0; i < 3; i++)
        add(&b, "a", 3, "east");
    struct request r = { .replicas = 8, .gpus = 1, .scope = SCOPE_SWITCH, .layout = LAYOUT_FEWEST };
    CHECK(gang_fits_idle(&b.c, &r));
    CHECK_INT(find(&b, &r), 3);
    const uint32_t east[] = { 1, 2, 3 };
    CHECK(gang_find_on(&b.c, &r, east, 3, &b.g, b.slot));
}

static void within_a_node_means_one_node(void)
{
    AUTO(bench_free) struct bench b = fresh();
    add(&b, "a", 2, "");
    add(&b, "a", 4, "");
    struct request r = { .replicas = 3, .gpus = 1, .scope = SCOPE_NODE };
    CHECK(find(&b, &r) == 1 && b.slot[0].node == 1);
    take(&b, 1, 0x3);
    CHECK_INT(find(&b, &r), 0);
    r.replicas = 5;
    CHECK(!gang_fits_idle(&b.c, &r));
}

static void one_model_is_preferred_to_a_mixture(void)
{
    AUTO(bench_free) struct bench b = fresh();
    add(&b, "a", 8, "");
    for (int i = 0; i < 3; i++)
        add(&b, "b", 4, "");
    struct request r = { .replicas = 12, .gpus = 1 };
    CHECK(find(&b, &r) == 3 && b.slot[0].node == 1); /* though 8 + 4 would be two nodes */
    r.replicas = 16;
    CHECK_INT(find(&b, &r), 3); /* more than either model has */
    r.models = 2;
    CHECK_INT(find(&b, &r), 0);
}

static void linked_replicas_stay_inside_link_groups(void)
{
    AUTO(bench_free) struct bench b = fresh();
    struct err e;
    struct event_node n = { .name = STR("n"),
                            .model = STR("a"),
                            .gpus = 8,
                            .cpu_milli = 1000,
                            .mem_mib = 1000,
                            .link = { 0, 0, 0, 0, 1, 1, 1, 1 } };
    CHECK(cluster_add_node(&b.c, &n, &e) == 0);
    struct request r = { .replicas = 2, .gpus = 3, .linked = 1 };
    CHECK_INT(find(&b, &r), 1);
    CHECK((b.slot[0].gpu_mask & b.slot[1].gpu_mask) == 0);
    r.gpus = 2;
    r.replicas = 4;
    CHECK_INT(find(&b, &r), 1);
    take(&b, 0, 0x11);
    CHECK_INT(find(&b, &r), 0); /* three and three: one pair each */
}

static void shares_of_gpus_come_in_gangs_too(void)
{
    AUTO(bench_free) struct bench b = fresh();
    add(&b, "a", 2, "");
    add(&b, "a", 1, "");
    struct request r = { .replicas = 6, .gpu_milli = 400 };
    CHECK_INT(find(&b, &r), 2);
    r.replicas = 7;
    CHECK_INT(find(&b, &r), 0);
    r = (struct request){ .replicas = 3, .gpu_mem_mib = 9000 };
    CHECK(find(&b, &r) == 2 && b.slot[0].milli == 563);
}

static void replicas_without_gpus_need_none(void)
{
    AUTO(bench_free) struct bench b = fresh();
    add(&b, "", 0, "");
    add(&b, "a", 1, "");
    struct request r = { .replicas = 8, .cpu_milli = 4000 };
    CHECK_INT(find(&b, &r), 2);
    CHECK(b.slot[0].gpu_mask == 0 && b.slot[0].milli == 0);
    r.replicas = 9;
    CHECK_INT(find(&b, &r), 0);
}

static void room_that_is_kept_is_found_only_by_its_nodes(void)
{
    AUTO(bench_free) struct bench b = fresh();
    const uint32_t kept[] = { 1 };
    add(&b, "a", 1, "");
    add(&b, "a", 4, "");
    struct request r = { .replicas = 2, .gpus = 1 };
    cluster_keep(&b.c, 1, 7, &(struct request){ .replicas = 4, .gpus = 1 }, 4);
    CHECK_INT(find(&b, &r), 0);
    CHECK(gang_find_on(&b.c, &r, kept, 1, &b.g, b.slot) && b.slot[1].node == 1);
    cluster_set_state(&b.c, 1, NODE_DOWN);
    CHECK(!gang_find_on(&b.c, &r, kept, 1, &b.g, b.slot));
}

/* ---- against brute force ---- */

static void check_found(uint64_t seed, const struct bench *b, const struct request *r)
{
    uint32_t nodes = nodes_of(b->slot, r->replicas), behind = b->c.node[b->slot[0].node].net_switch;
    CHECK_AT(seed, cluster_has_room(&b->c, r, b->slot, r->replicas));
    CHECK_AT(seed, r->layout != LAYOUT_SPREAD || nodes == r->replicas);
    CHECK_AT(seed, r->scope != SCOPE_NODE || nodes == 1);
    for (uint32_t i = 0; i < r->replicas; i++) {
        const struct node *n = &b->c.node[b->slot[i].node];
        CHECK_AT(seed, n->state == NODE_UP);
        CHECK_AT(seed, r->scope != SCOPE_SWITCH || nodes == 1 ||
                           (behind != NONE && n->net_switch == behind));
    }
}

static void hide_some(struct rng *rng, struct cluster *c)
{
    for (uint32_t i = 0; i < c->nodes; i++) {
        uint32_t what = rng_below(rng, 8);
        struct request r = brute_request(rng, true);
        const struct kind *k = &c->kind[c->node[i].kind];
        struct room idle = kind_room(k);
        uint32_t fits = room_replicas(k, &idle, &r, r.replicas);
        if (what == 0)
            cluster_set_state(c, i, NODE_DRAIN);
        else if (what == 1 && fits)
            cluster_keep(c, i, 3, &r, fits);
    }
}

static void a_gang_is_placed_exactly_when_all_nodes_together_have_room(void)
{
    uint32_t found = 0, not_found = 0;
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        AUTO(bench_free) struct bench b = fresh();
        struct rng rng = { seed };
        brute_cluster(&rng, &b.c, rng_between(&rng, 1, 14));
        brute_use(&rng, &b.c, rng_below(&rng, 40));
        hide_some(&rng, &b.c);
        for (int i = 0; i < 8; i++) {
            struct request r = brute_request(&rng, true);
            bool fits = brute_gang_fits(&b.c, &r, false);
            bool got = gang_find(&b.c, &r, &b.g, b.slot);
            if (got)
                check_found(seed, &b, &r);
            CHECK_AT(seed, r.layout == LAYOUT_FEWEST ? !got || fits : got == fits);
            found += got;
            not_found += !got;
        }
    }
    CHECK(found > 4000 && not_found > 4000); /* the worlds are worth looking at */
}

static void what_fits_idle_agrees_with_all_nodes(void)
{
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        AUTO(bench_free) struct bench b = fresh();
        struct rng rng = { seed };
        brute_cluster(&rng, &b.c, rng_between(&rng, 1, 14));
        for (int i = 0; i < 8; i++) {
            struct request r = brute_request(&rng, true);
            bool fits = brute_gang_fits(&b.c, &r, true);
            CHECK_AT(seed, gang_fits_idle(&b.c, &r) == fits);
            /* What is promised is kept: on the idle cluster it does start, in any layout. */
            CHECK_AT(seed, gang_find(&b.c, &r, &b.g, b.slot) == fits);
        }
    }
}

static const struct test tests[] = {
    { "all replicas get a place or none", all_replicas_get_a_place_or_none },
    { "few nodes are used and the tightest closes", few_nodes_are_used_and_the_tightest_closes },
    { "fewest waits rather than scatters", fewest_waits_rather_than_scatters },
    { "spread puts each replica on a node of its own",
      spread_puts_each_replica_on_a_node_of_its_own },
    { "the fullest switch that holds the gang is used",
      the_fullest_switch_that_holds_the_gang_is_used },
    { "one machine without a switch is close enough",
      one_machine_without_a_switch_is_close_enough },
    { "fewest behind a switch counts that switch", fewest_behind_a_switch_counts_that_switch },
    { "within a node means one node", within_a_node_means_one_node },
    { "one model is preferred to a mixture", one_model_is_preferred_to_a_mixture },
    { "linked replicas stay inside link groups", linked_replicas_stay_inside_link_groups },
    { "shares of GPUs come in gangs too", shares_of_gpus_come_in_gangs_too },
    { "replicas without GPUs need none", replicas_without_gpus_need_none },
    { "room that is kept is found only by its nodes",
      room_that_is_kept_is_found_only_by_its_nodes },
    { "a gang is placed exactly when all nodes together have room",
      a_gang_is_placed_exactly_when_all_nodes_together_have_room },
    { "what fits idle agrees with all nodes", what_fits_idle_agrees_with_all_nodes },
};
TEST_CASES(tests)
