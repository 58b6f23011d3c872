#include "core/cluster.h"
#include "tests/lib/brute.h"
#include "tests/lib/test.h"

/* Eight GPUs in two link groups: 0-3 and 4-7. */
static struct kind server(void)
{
    struct kind k = { .nodes = 1,
                      .gpus = 8,
                      .links = 2,
                      .gpu_mem_mib = 40000,
                      .cpu_milli = 64000,
                      .mem_mib = 256000,
                      .link = { 0, 0, 0, 0, 1, 1, 1, 1 } };
    return k;
}

static void a_share_by_memory_is_rounded_up(void)
{
    struct kind k = server();
    struct request r = { .replicas = 1, .gpu_mem_mib = 10000 };
    CHECK_INT(kind_share_milli(&k, &r), 250);
    r.gpu_mem_mib = 10001;
    CHECK_INT(kind_share_milli(&k, &r), 251);
    r.gpu_milli = 600; /* the larger of the two counts */
    CHECK_INT(kind_share_milli(&k, &r), 600);
    r.gpu_mem_mib = 40000;
    CHECK_INT(kind_share_milli(&k, &r), 1000);
    r.gpu_mem_mib = 40001;
    CHECK_INT(kind_share_milli(&k, &r), 0);
    CHECK(!kind_allows(&k, &r));
    k.gpu_mem_mib = 0; /* a GPU of unknown memory promises none */
    r.gpu_mem_mib = 1;
    CHECK_INT(kind_share_milli(&k, &r), 0);
}

static void a_kind_allows_what_an_idle_node_could_run(void)
{
    struct kind k = server(), gone = server();
    k.model = 5;
    gone.nodes = 0; /* there were such machines once */
    CHECK(!kind_allows(&gone, &(struct request){ .replicas = 1 }));
    struct request r = { .replicas = 1, .gpus = 8, .cpu_milli = 64000, .mem_mib = 256000 };
    CHECK(kind_allows(&k, &r));
    r.models = 1u << 5;
    CHECK(kind_allows(&k, &r));
    r.models = 1u << 4;
    CHECK(!kind_allows(&k, &r));
    r = (struct request){ .replicas = 1, .gpus = 9 };
    CHECK(!kind_allows(&k, &r));
    r = (struct request){ .replicas = 1, .cpu_milli = 64001 };
    CHECK(!kind_allows(&k, &r));
    r = (struct request){ .replicas = 1, .mem_mib = 256001 };
    CHECK(!kind_allows(&k, &r));
    r = (struct request){ .replicas = 1, .gpus = 1, .gpu_mem_mib = 40001 };
    CHECK(!kind_allows(&k, &r));
}

static void the_most_a_share_takes_is_over_all_kinds(void)
{
    AUTO(cluster_free) struct cluster c;
    struct err e;
    cluster_init(&c);
    struct event_node n = { .name = STR("big"),
                            .model = STR("a"),
                            .gpus = 1,
                            .gpu_mem_mib = 80000,
                            .cpu_milli = 1000,
                            .mem_mib = 1000 };
    CHECK(cluster_add_node(&c, &n, &e) == 0);
    n.name = STR("small");
    n.model = STR("b");
    n.gpu_mem_mib = 20000;
    CHECK(cluster_add_node(&c, &n, &e) == 0);
    struct request r = { .replicas = 1, .gpu_mem_mib = 8000 };
    CHECK_INT(cluster_most_share_milli(&c, &r), 400);
    r.models = 1; /* only on the big one */
    CHECK_INT(cluster_most_share_milli(&c, &r), 100);
    r = (struct request){ .replicas = 1, .gpu_milli = 300 };
    CHECK_INT(cluster_most_share_milli(&c, &r), 300);
    r = (struct request){ .replicas = 1, .gpus = 1, .gpu_mem_mib = 8000 };
    CHECK_INT(cluster_most_share_milli(&c, &r), 0); /* whole GPUs are counted as such */
}

static void linked_gpus_do_not_cross_groups(void)
{
    struct kind k = server();
    struct room m = kind_room(&k);
    struct request r = { .replicas = 1, .gpus = 3, .linked = 1 };
    CHECK_INT(room_replicas(&k, &m, &r, 9), 2);
    m.gpu[1] = m.gpu[2] = 0;
    CHECK_INT(room_replicas(&k, &m, &r, 9), 1);
    r.linked = 0;
    CHECK_INT(room_replicas(&k, &m, &r, 9), 2);
}

static void the_tightest_gpus_are_picked(void)
{
    struct kind k = server();
    struct room m = kind_room(&k);
    struct request share = { .replicas = 1, .gpu_milli = 300 };
    struct request two = { .replicas = 1, .gpus = 2 }, six = { .replicas = 1, .gpus = 6 };
    m.gpu[6] = 500;
    m.gpu[2] = 400;
    CHECK_INT(room_pick(&k, &m, &share), 1 << 2); /* the fullest that has room */
    m.gpu[2] = m.gpu[6] = 500;
    m.gpu[5] = 0;
    CHECK_INT(room_pick(&k, &m, &share), 1 << 6); /* of equals, where fewer whole ones are lost */
    CHECK_INT(room_pick(&k, &m, &two), 1 << 4 | 1 << 7); /* the group it fills exactly */
    m = kind_room(&k);
    m.gpu[0] = 0;
    CHECK_INT(room_pick(&k, &m, &six), 0xF0 | 1 << 1 | 1 << 2);
    struct request none = { .replicas = 1, .cpu_milli = 1000 };
    CHECK_INT(room_pick(&k, &m, &none), 0);
}

static void what_is_taken_and_given_back_leaves_the_room_as_it_was(void)
{
    struct kind k = server();
    struct room m = kind_room(&k), was = m;
    struct request r = { .replicas = 1, .gpus = 2, .cpu_milli = 3000, .mem_mib = 500 };
    room_take(&k, &m, &r, 1 << 1 | 1 << 5, 1000);
    CHECK(m.gpu[1] == 0 && m.gpu[5] == 0 && m.gpu[0] == 1000);
    CHECK(m.cpu_milli == 61000 && m.mem_mib == 255500);
    room_give(&k, &m, &r, 1 << 1 | 1 << 5, 1000);
    CHECK(memcmp(&m, &was, sizeof m) == 0);
}

/* Counting says how many; picking one after the other must come to the same number. */
static void as_many_can_be_picked_as_are_counted(void)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        struct rng rng = { seed };
        struct kind k = server();
        struct room m = kind_room(&k);
        for (int g = 0; g < k.gpus; g++)
            m.gpu[g] = (uint16_t)(rng_below(&rng, 2) ? 1000 : rng_below(&rng, 1000));
        m.cpu_milli = rng_below(&rng, 64001);
        m.mem_mib = rng_below(&rng, 64001);
        struct request r = brute_request(&rng, false);
        r.models = 0;
        r.replicas = 64;
        uint32_t n = room_replicas(&k, &m, &r, 64),
                 milli = r.gpus ? 1000 : kind_share_milli(&k, &r);
        CHECK_AT(seed, n == brute_fits(&k, &m, &r));
        for (uint32_t i = 0; i < n; i++) {
            uint16_t mask = room_pick(&k, &m, &r);
            int want = r.gpus ? r.gpus : request_shares_gpu(&r) ? 1 : 0;
            CHECK_AT(seed, __builtin_popcount(mask) == want);
            CHECK_AT(seed, !r.linked || (mask & 0x0F) == 0 || (mask & 0xF0) == 0);
            for (int g = 0; g < k.gpus; g++)
                CHECK_AT(seed, !(mask >> g & 1) || m.gpu[g] >= milli);
            room_take(&k, &m, &r, mask, milli);
        }
        CHECK_AT(seed, n == 64 || room_replicas(&k, &m, &r, 1) == 0);
    }
}

static const struct test tests[] = {
    { "a share by memory is rounded up", a_share_by_memory_is_rounded_up },
    { "a kind allows what an idle node could run", a_kind_allows_what_an_idle_node_could_run },
    { "the most a share takes is over all kinds", the_most_a_share_takes_is_over_all_kinds },
    { "linked GPUs do not cross groups", linked_gpus_do_not_cross_groups },
    { "the tightest GPUs are picked", the_tightest_gpus_are_picked },
    { "what is taken and given back leaves the room as it was",
      what_is_taken_and_given_back_leaves_the_room_as_it_was },
    { "as many can be picked as are counted", as_many_can_be_picked_as_are_counted },
};
TEST_CASES(tests)
