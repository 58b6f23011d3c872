#include "simulate/packer.h"

#include "tests/lib/brute.h"

static const char *const packers[] = { "nightshift", "bestfit", "fgd" };

static void add(struct cluster *c, const char *name, uint32_t gpus, uint32_t cpus)
{
    const struct event_node n = { .name = str_of(name),
                                  .model = STR("gpu"),
                                  .gpus = gpus,
                                  .gpu_mem_mib = 16000,
                                  .cpu_milli = cpus * 1000,
                                  .mem_mib = 64000 };
    struct err e;
    CHECK(cluster_add_node(c, &n, &e) == 0);
}

static struct packer opened(const char *name)
{
    struct packer p;
    CHECK(packer_open(name, &p));
    return p;
}

static bool fits_somewhere(const struct cluster *c, const struct request *q)
{
    for (uint32_t i = 0; i < c->nodes; i++)
        if (c->node[i].state == NODE_UP &&
            brute_fits(&c->kind[c->node[i].kind], &c->node[i].offer, q))
            return true;
    return false;
}

static void a_packer_finds_a_place_exactly_when_there_is_one(void)
{
    uint64_t found = 0, full = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        AUTO(cluster_free) struct cluster c;
        AUTO(packer_close) struct packer p = opened(packers[seed % ARRAY_LEN(packers)]);
        struct rng r = { seed };
        cluster_init(&c);
        brute_cluster(&r, &c, 8);
        brute_use(&r, &c, 40);
        for (int i = 0; i < 60; i++) {
            struct request q = brute_request(&r, false);
            struct slot s = { .node = NONE };
            packer_learn(&p, &c, &q, "");
            bool fits = fits_somewhere(&c, &q);
            CHECK_AT(seed, packer_find(&p, &c, &q, &s) == fits);
            CHECK_AT(seed, !fits || cluster_has_room(&c, &q, &s, 1));
            if (fits && rng_below(&r, 2))
                cluster_take(&c, &q, &s, 1);
            found += fits;
            full += !fits;
        }
    }
    CHECK(found > 1000 && full > 1000); /* both sides were tried */
}

static void an_unknown_packer_is_not_opened(void)
{
    struct packer p = { .sealed = true };
    CHECK(!packer_open("firstfit", &p) && !packer_open("", &p));
    CHECK(p.sealed && !p.ops);
}

static void closing_twice_is_harmless(void)
{
    struct packer p = opened("fgd");
    packer_close(&p);
    packer_close(&p);
    CHECK(!p.ops);
}

static uint32_t node_for(const char *packer, struct cluster *c, const struct request *q)
{
    AUTO(packer_close) struct packer p = opened(packer);
    struct slot s;
    CHECK(packer_find(&p, c, q, &s));
    return s.node;
}

/* Left over: 6 of 8 GPUs on the first, 1 of 8 on the second. */
static void bestfit_takes_the_node_with_the_least_left(void)
{
    AUTO(cluster_free) struct cluster c;
    cluster_init(&c);
    add(&c, "empty", 8, 64);
    add(&c, "fuller", 8, 64);
    const struct request used = { .replicas = 1, .gpus = 5 }, q = { .replicas = 1, .gpus = 2 };
    cluster_take(&c, &used, &(struct slot){ 1, 0x1f, GPU_MILLI }, 1);
    CHECK_INT(node_for("bestfit", &c, &q), 1);
}

/* A GPU left is 1/16 of the score, 8 CPUs left are 1/32: 2 GPUs and 0 CPUs against 0 GPUs and
 * 56. */
static void bestfit_weighs_cpus_and_gpus_by_a_large_node(void)
{
    AUTO(cluster_free) struct cluster c;
    cluster_init(&c);
    add(&c, "few cpus", 4, 8);
    add(&c, "many cpus", 2, 64);
    const struct request q = { .replicas = 1, .gpus = 2, .cpu_milli = 8000 };
    CHECK_INT(node_for("bestfit", &c, &q), 0);
    const struct request small = { .replicas = 1, .cpu_milli = 8000 };
    CHECK_INT(node_for("bestfit", &c, &small), 0); /* 4 GPUs left are 1/4, 2 and 56 CPUs 11/32 */
}

/* 1 GPU and 21 or 20 CPUs left are both 85 percent: the first node wins. */
static void bestfit_scores_are_whole_percents(void)
{
    AUTO(cluster_free) struct cluster c;
    cluster_init(&c);
    add(&c, "a", 2, 21);
    add(&c, "b", 2, 20);
    const struct request q = { .replicas = 1, .gpus = 1 };
    CHECK_INT(node_for("bestfit", &c, &q), 0);
    add(&c, "c", 2, 8);
    CHECK_INT(node_for("bestfit", &c, &q), 2);
}

static void a_share_goes_to_the_tightest_gpu_that_holds_it(void)
{
    AUTO(cluster_free) struct cluster c;
    cluster_init(&c);
    add(&c, "a", 3, 16);
    const struct request half = { .replicas = 1, .gpu_milli = 500 },
                         most = { .replicas = 1, .gpu_milli = 700 },
                         q = { .replicas = 1, .gpu_milli = 300 };
    cluster_take(&c, &half, &(struct slot){ 0, 1, 500 }, 1);
    cluster_take(&c, &most, &(struct slot){ 0, 2, 700 }, 1);
    AUTO(packer_close) struct packer p = opened("bestfit");
    struct slot s;
    CHECK(packer_find(&p, &c, &q, &s));
    CHECK(s.gpu_mask == 2 && s.milli == 300);
}

/* The jobs that come want a whole GPU, so half of a whole one is lost to them and a half that was
 * lost already costs nothing. */
static void fgd_puts_a_share_where_nothing_more_is_broken(void)
{
    AUTO(cluster_free) struct cluster c;
    AUTO(packer_close) struct packer p = opened("fgd");
    cluster_init(&c);
    add(&c, "whole", 1, 16);
    add(&c, "broken", 1, 16);
    const struct request half = { .replicas = 1, .gpu_milli = 500 },
                         whole = { .replicas = 1, .gpus = 1 };
    cluster_take(&c, &half, &(struct slot){ 1, 1, 500 }, 1);
    packer_learn(&p, &c, &whole, "");
    packer_seal(&p);
    struct slot s;
    CHECK(packer_find(&p, &c, &half, &s));
    CHECK(s.node == 1 && s.gpu_mask == 1 && s.milli == 500);
}

/* Whether it learns of pairs or of single GPUs decides which node a single one goes to. */
static void fgd_keeps_pairs_for_those_who_want_pairs(void)
{
    AUTO(cluster_free) struct cluster c;
    cluster_init(&c);
    add(&c, "two", 2, 16);
    add(&c, "one", 1, 16);
    const struct request pair = { .replicas = 1, .gpus = 2 }, one = { .replicas = 1, .gpus = 1 };
    struct slot s;
    AUTO(packer_close) struct packer pairs = opened("fgd");
    packer_learn(&pairs, &c, &pair, "");
    CHECK(packer_find(&pairs, &c, &one, &s));
    CHECK_INT(s.node, 1);
    AUTO(packer_close) struct packer singles = opened("fgd");
    packer_learn(&singles, &c, &one, "");
    CHECK(packer_find(&singles, &c, &one, &s));
    CHECK_INT(s.node, 0); /* nothing is broken anywhere: the first */
}

/* Sealed with pairs in mind; what comes later does not change it. */
static void a_sealed_packer_learns_no_more(void)
{
    AUTO(cluster_free) struct cluster c;
    AUTO(packer_close) struct packer p = opened("fgd");
    cluster_init(&c);
    add(&c, "two", 2, 16);
    add(&c, "one", 1, 16);
    const struct request pair = { .replicas = 1, .gpus = 2 }, one = { .replicas = 1, .gpus = 1 };
    struct slot s;
    packer_learn(&p, &c, &pair, "");
    packer_seal(&p);
    for (int i = 0; i < 1000; i++)
        packer_learn(&p, &c, &one, "");
    CHECK(packer_find(&p, &c, &one, &s));
    CHECK_INT(s.node, 1);
}

static void fgd_forgets_what_is_not_typical(void)
{
    AUTO(cluster_free) struct cluster c;
    AUTO(packer_close) struct packer p = opened("fgd");
    cluster_init(&c);
    add(&c, "two", 2, 16);
    add(&c, "one", 1, 16);
    const struct request pair = { .replicas = 1, .gpus = 2 }, one = { .replicas = 1, .gpus = 1 };
    struct slot s;
    for (int i = 0; i < 96; i++)
        packer_learn(&p, &c, &one, "");
    for (int i = 0; i < 4; i++)
        packer_learn(&p, &c, &pair, "");
    packer_seal(&p);
    CHECK(packer_find(&p, &c, &one, &s));
    CHECK_INT(s.node, 0); /* 4 of 100 want pairs: beyond the typical 95 percent */
}

static void of_equal_nodes_the_one_enrolled_first_is_taken(void)
{
    const struct request q = { .replicas = 1, .gpus = 2, .cpu_milli = 1000 };
    for (size_t i = 0; i < ARRAY_LEN(packers); i++) {
        AUTO(cluster_free) struct cluster c;
        AUTO(packer_close) struct packer p = opened(packers[i]);
        cluster_init(&c);
        for (uint32_t n = 0; n < 5; n++)
            add(&c, (char[]){ (char)('e' - n), 0 }, 4, 16);
        packer_learn(&p, &c, &q, "");
        struct slot s;
        CHECK(packer_find(&p, &c, &q, &s));
        CHECK_INT(s.node, 0);
        cluster_set_state(&c, 0, NODE_DOWN);
        CHECK(packer_find(&p, &c, &q, &s));
        CHECK_INT(s.node, 1);
    }
}

/* Cells of different kinds with the same score, the later kind having the earlier node. */
static void a_tie_between_kinds_goes_to_the_first_node_too(void)
{
    AUTO(cluster_free) struct cluster c;
    cluster_init(&c);
    add(&c, "a", 4, 18);
    add(&c, "b", 4, 17); /* 74 percent both */
    add(&c, "c", 4, 18);
    const struct request q = { .replicas = 1, .gpus = 1 };
    cluster_set_state(&c, 0, NODE_DOWN);
    CHECK_INT(node_for("bestfit", &c, &q), 1);
}

static const struct test tests[] = {
    { "a packer finds a place exactly when there is one",
      a_packer_finds_a_place_exactly_when_there_is_one },
    { "an unknown packer is not opened", an_unknown_packer_is_not_opened },
    { "closing twice is harmless", closing_twice_is_harmless },
    { "bestfit takes the node with the least left", bestfit_takes_the_node_with_the_least_left },
    { "bestfit weighs CPUs and GPUs by a large node",
      bestfit_weighs_cpus_and_gpus_by_a_large_node },
    { "bestfit's scores are whole percents", bestfit_scores_are_whole_percents },
    { "a share goes to the tightest GPU that holds it",
      a_share_goes_to_the_tightest_gpu_that_holds_it },
    { "fgd puts a share where nothing more is broken",
      fgd_puts_a_share_where_nothing_more_is_broken },
    { "fgd keeps pairs for those who want pairs", fgd_keeps_pairs_for_those_who_want_pairs },
    { "a sealed packer learns no more", a_sealed_packer_learns_no_more },
    { "fgd forgets what is not typical", fgd_forgets_what_is_not_typical },
    { "of equal nodes the one enrolled first is taken",
      of_equal_nodes_the_one_enrolled_first_is_taken },
    { "a tie between kinds goes to the first node too",
      a_tie_between_kinds_goes_to_the_first_node_too },
};
TEST_CASES(tests)
