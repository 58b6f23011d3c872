#include "core/cluster.h"

#include "tests/lib/brute.h"
#include "tests/lib/test.h"

static struct event_node server(const char *name)
{
    return (struct event_node){ .name = str_of(name),
                                .model = STR("a100"),
                                .net_switch = STR("s"),
                                .gpus = 4,
                                .gpu_mem_mib = 40000,
                                .cpu_milli = 16000,
                                .mem_mib = 64000,
                                .link = { 0, 0, 1, 1 } };
}

static uint32_t add(struct cluster *c, struct event_node n)
{
    struct err e;
    CHECK(cluster_add_node(c, &n, &e) == 0);
    return c->nodes - 1;
}

static struct cluster fresh(uint32_t servers)
{
    struct cluster c;
    cluster_init(&c);
    for (uint32_t i = 0; i < servers; i++)
        add(&c, server((char[]){ 'n', (char)('0' + i), 0 }));
    return c;
}

static void use(struct cluster *c, uint32_t node, uint16_t mask, uint16_t milli, bool take)
{
    struct request r = { .replicas = 1, .cpu_milli = 1000, .mem_mib = 1000 };
    struct slot s = { node, mask, milli };
    if (take)
        cluster_take(c, &r, &s, 1);
    else
        cluster_give(c, &r, &s, 1);
}

static void nodes_that_are_alike_share_one_cell(void)
{
    AUTO(cluster_free) struct cluster c = fresh(3);
    CHECK(c.cells_live == 1 && c.kinds == 1 && c.kind[0].nodes == 3);
    const struct cell *ce = &c.cell[c.node[0].cell];
    CHECK(ce->n == 3 && ce->node[2] == 0 && ce->node[0] == 2); /* the first enrolled is last */
    CHECK(ce->whole == 4 && ce->gpu_free == 4000);
    CHECK(c.kind[0].whole == 12 && c.net_switch[0].whole == 12);
    struct event_node other = server("n9");
    other.mem_mib++;
    add(&c, other);
    CHECK(c.cells_live == 2 && c.kinds == 2);
}

static void gpus_of_one_link_group_are_interchangeable(void)
{
    AUTO(cluster_free) struct cluster c = fresh(3);
    use(&c, 0, 1 << 0, 300, true);
    use(&c, 1, 1 << 1, 300, true);
    CHECK(c.node[0].cell == c.node[1].cell && c.cells_live == 2);
    use(&c, 2, 1 << 2, 300, true); /* the other group */
    CHECK(c.node[2].cell != c.node[0].cell);
    const struct cell *ce = &c.cell[c.node[0].cell];
    CHECK(ce->room.gpu[0] == 1000 && ce->room.gpu[1] == 700 && ce->best_part == 700);
    CHECK(ce->whole == 3 && c.node[0].room.gpu[0] == 700);
}

static void giving_back_restores_everything(void)
{
    AUTO(cluster_free) struct cluster c = fresh(2);
    struct amounts was = c.free;
    uint32_t cell = c.node[0].cell;
    use(&c, 0, 1 << 3, 1000, true);
    CHECK(c.free.of[RES_GPU] == was.of[RES_GPU] - 1000 && c.free.of[RES_CPU] == 31000);
    CHECK(c.kind[0].whole == 7 && c.kind[0].gpu_free == 7000 && c.net_switch[0].whole == 7);
    use(&c, 0, 1 << 3, 1000, false);
    CHECK(memcmp(&c.free, &was, sizeof was) == 0 && memcmp(&c.total, &was, sizeof was) == 0);
    CHECK(c.node[0].cell == cell && c.cells_live == 1 && c.kind[0].whole == 8);
}

static bool in_order(const struct cell *a, const struct cell *b)
{
    if (a->room.cpu_milli != b->room.cpu_milli)
        return a->room.cpu_milli < b->room.cpu_milli;
    if (a->room.mem_mib != b->room.mem_mib)
        return a->room.mem_mib < b->room.mem_mib;
    return memcmp(a->room.gpu, b->room.gpu, sizeof a->room.gpu) < 0;
}

static void check_row(uint64_t seed, const struct cluster *c, const struct kind *k, uint32_t row)
{
    const struct row *r = &k->row[row];
    CHECK_AT(seed, !!r->n == (k->rows_used >> row & 1));
    for (uint32_t i = 0; i < r->n; i++) {
        const struct row_cell *rc = &r->at[i];
        const struct cell *ce = &c->cell[rc->cell];
        CHECK_AT(seed, ce->n > 0 && rc->gpu_free == ce->gpu_free);
        CHECK_AT(seed, rc->cpu_milli == ce->room.cpu_milli && rc->mem_mib == ce->room.mem_mib);
        CHECK_AT(seed, row == (ce->whole ? ROW_WHOLE + ce->whole : row_of_part(ce->best_part)));
        CHECK_AT(seed, i == 0 || in_order(&c->cell[r->at[i - 1].cell], ce));
    }
}

static void rows_stay_sorted_whatever_is_taken(void)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        AUTO(cluster_free) struct cluster c;
        struct rng r = { seed };
        cluster_init(&c);
        brute_cluster(&r, &c, 40);
        brute_use(&r, &c, 300);
        for (uint32_t k = 0; k < c.kinds; k++)
            for (uint32_t w = 0; w < ROWS; w++)
                check_row(seed, &c, &c.kind[k], w);
    }
}

/* The same nodes with the same room give the same cells, whatever happened before. */
static void history_leaves_no_trace_in_the_cells(void)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        AUTO(cluster_free) struct cluster c, fresh_one;
        struct rng r = { seed }, twin = { seed };
        cluster_init(&c);
        cluster_init(&fresh_one);
        brute_cluster(&r, &c, 12);
        brute_cluster(&twin, &fresh_one, 12);
        struct {
            struct request q;
            struct slot s;
        } took[60];
        uint32_t n = 0;
        for (int i = 0; i < 60; i++) {
            struct request q = brute_request(&r, false);
            struct slot s = { .node = rng_below(&r, c.nodes) };
            const struct kind *k = &c.kind[c.node[s.node].kind];
            if (!room_replicas(k, &c.node[s.node].room, &q, 1))
                continue;
            s.gpu_mask = room_pick(k, &c.node[s.node].room, &q);
            s.milli = (uint16_t)(q.gpus ? 1000 : s.gpu_mask ? kind_share_milli(k, &q) : 0);
            cluster_take(&c, &q, &s, 1);
            took[n].q = q;
            took[n++].s = s;
        }
        while (n) {
            uint32_t i = rng_below(&r, n--);
            cluster_give(&c, &took[i].q, &took[i].s, 1);
            took[i] = took[n];
        }
        CHECK_AT(seed, c.cells_live == fresh_one.cells_live);
        for (uint32_t k = 0; k < c.kinds; k++)
            CHECK_AT(seed, c.kind[k].whole == fresh_one.kind[k].whole &&
                               c.kind[k].rows_used == fresh_one.kind[k].rows_used);
        CHECK_AT(seed, memcmp(&c.free, &c.total, sizeof c.free) == 0);
    }
}

static void a_node_that_drains_or_is_down_leaves_the_cells(void)
{
    AUTO(cluster_free) struct cluster c = fresh(2);
    cluster_set_state(&c, 0, NODE_DRAIN);
    CHECK(c.node[0].cell == NONE && c.kind[0].whole == 4 && c.net_switch[0].whole == 4);
    CHECK(c.total.of[RES_GPU] == 4000 && c.free.of[RES_CPU] == 16000);
    cluster_set_state(&c, 1, NODE_DOWN);
    CHECK(c.cells_live == 0 && c.total.of[RES_GPU] == 0 && c.kind[0].rows_used == 0);
    cluster_set_state(&c, 0, NODE_UP);
    cluster_set_state(&c, 1, NODE_UP);
    CHECK(c.cells_live == 1 && c.total.of[RES_GPU] == 8000);
    CHECK(memcmp(&c.free, &c.total, sizeof c.free) == 0);
}

static void what_ends_on_a_node_that_is_down_is_free_when_it_returns(void)
{
    AUTO(cluster_free) struct cluster c = fresh(1);
    use(&c, 0, 1, 1000, true);
    cluster_set_state(&c, 0, NODE_DOWN);
    use(&c, 0, 1, 1000, false);
    CHECK(c.cells_live == 0 && c.free.of[RES_GPU] == 0);
    cluster_set_state(&c, 0, NODE_UP);
    CHECK(c.free.of[RES_GPU] == 4000 && c.cell[c.node[0].cell].whole == 4);
}

static void what_is_kept_is_free_but_not_offered(void)
{
    AUTO(cluster_free) struct cluster c = fresh(2);
    struct request r = { .replicas = 4, .gpus = 1, .cpu_milli = 2000, .mem_mib = 1000 };
    cluster_keep(&c, 1, 7, &r, 3);
    CHECK(c.free.of[RES_GPU] == 8000 && c.node[1].room.gpu[0] == 1000);
    CHECK(c.node[1].cell != c.node[0].cell && c.cell[c.node[1].cell].whole == 1);
    CHECK(c.node[1].offer.cpu_milli == 10000 && c.node[1].offer.mem_mib == 61000);
    CHECK(c.kind[0].whole == 5 && c.net_switch[0].whole == 5);
    cluster_set_state(&c, 1, NODE_DRAIN);
    cluster_unkeep(&c, 1);
    CHECK(c.node[1].cell == NONE);
    cluster_set_state(&c, 1, NODE_UP);
    CHECK(c.node[1].cell == c.node[0].cell && c.kind[0].whole == 8);
}

/* Others start on the rest only, so the job that the room is kept for gets nearer with each end. */
static void the_freest_gpus_are_the_kept_ones(void)
{
    AUTO(cluster_free) struct cluster c = fresh(1);
    struct request two = { .replicas = 1, .gpus = 2 }, linked = two;
    linked.linked = 1;
    use(&c, 0, 0x1, 1000, true);
    use(&c, 0, 0x8, 300, true);
    cluster_keep(&c, 0, 7, &two, 1);
    CHECK(c.node[0].offer.gpu[1] == 0 && c.node[0].offer.gpu[2] == 0);
    CHECK(c.node[0].offer.gpu[3] == 700);
    cluster_unkeep(&c, 0);
    cluster_keep(&c, 0, 7, &linked, 1);
    CHECK(c.node[0].offer.gpu[2] == 0 && c.node[0].offer.gpu[3] == 0); /* the freer group */
    CHECK(c.node[0].offer.gpu[1] == 1000);
}

/* Two shares of 0.4 go on one GPU and not two and a half: five need three GPUs. */
static void shares_are_kept_in_gpus_that_hold_them(void)
{
    AUTO(cluster_free) struct cluster c = fresh(1);
    struct request r = { .replicas = 5, .gpu_milli = 400 };
    cluster_keep(&c, 0, 7, &r, 5);
    CHECK_INT(c.cell[c.node[0].cell].whole, 1);
}

static void only_more_room_is_remembered_as_freed(void)
{
    AUTO(cluster_free) struct cluster c = fresh(3);
    CHECK_INT(c.freed_n, 3); /* new nodes */
    cluster_forget_freed(&c);
    use(&c, 1, 1, 500, true);
    CHECK_INT(c.freed_n, 0);
    use(&c, 1, 1, 500, false);
    use(&c, 1, 0, 0, true);
    use(&c, 1, 0, 0, false);
    CHECK(c.freed_n == 1 && c.freed[0] == 1); /* once, however often */
    cluster_keep(&c, 2, 0, &(struct request){ .replicas = 1, .gpus = 1 }, 1);
    CHECK_INT(c.freed_n, 1);
    cluster_unkeep(&c, 2);
    CHECK(c.freed_n == 2 && c.freed[1] == 2);
    cluster_forget_freed(&c);
    use(&c, 1, 1, 500, true);
    use(&c, 1, 1, 500, false);
    CHECK_INT(c.freed_n, 1);
}

static void slots_have_room_only_if_all_have_it_together(void)
{
    AUTO(cluster_free) struct cluster c = fresh(2);
    struct request r = { .replicas = 2, .gpus = 2, .cpu_milli = 8000, .mem_mib = 32000 };
    const struct slot good[] = { { 0, 0x3, 1000 }, { 0, 0xC, 1000 } };
    CHECK(cluster_has_room(&c, &r, good, 2));
    const struct slot twice[] = { { 0, 0x3, 1000 }, { 0, 0x6, 1000 } };
    CHECK(!cluster_has_room(&c, &r, twice, 2));
    const struct slot back[] = { { 1, 0x3, 1000 }, { 0, 0x3, 1000 } };
    CHECK(!cluster_has_room(&c, &r, back, 2));
    const struct slot unknown[] = { { 0, 0x3, 1000 }, { 2, 0x3, 1000 } };
    CHECK(!cluster_has_room(&c, &r, unknown, 2));
    const struct slot absent[] = { { 0, 0x3, 1000 }, { 1, 0x30, 1000 } };
    CHECK(!cluster_has_room(&c, &r, absent, 2));
    r.cpu_milli = 8001;
    CHECK(!cluster_has_room(&c, &r, good, 2) && cluster_has_room(&c, &r, good, 1));
    r.cpu_milli = 0;
    r.mem_mib = 32001;
    CHECK(!cluster_has_room(&c, &r, good, 2) && cluster_has_room(&c, &r, good, 1));
}

/* A journal may say anything: what it says must be what the job asked for. */
static void slots_that_are_not_what_was_asked_for_have_no_room(void)
{
    AUTO(cluster_free) struct cluster c = fresh(1);
    struct request two = { .replicas = 1, .gpus = 2 }, linked = { .replicas = 1, .gpus = 2 };
    struct request half = { .replicas = 1, .gpu_milli = 500 }, none = { .replicas = 1 };
    linked.linked = 1;
    const struct {
        const struct request *r;
        struct slot s;
        bool ok;
    } cases[] = {
        { &two, { 0, 0x6, 1000 }, true },    { &two, { 0, 0x7, 1000 }, false },
        { &two, { 0, 0x3, 999 }, false },    { &two, { 0, 0, 0 }, false },
        { &linked, { 0, 0xC, 1000 }, true }, { &linked, { 0, 0x6, 1000 }, false },
        { &half, { 0, 0x1, 500 }, true },    { &half, { 0, 0x1, 400 }, false },
        { &half, { 0, 0x3, 500 }, false },   { &half, { 0, 0x10, 0 }, false },
        { &none, { 0, 0, 0 }, true },        { &none, { 0, 0x1, 1000 }, false },
        { &none, { 0, 0x1, 0 }, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (cluster_has_room(&c, cases[i].r, &cases[i].s, 1) != cases[i].ok)
            test_fail(__FILE__, __LINE__, "case %zu", i);
    two.models = 2; /* a model this node does not have */
    CHECK(!cluster_has_room(&c, &two, &cases[0].s, 1));
}

static void cost_goes_by_model_part_and_cpu(void)
{
    AUTO(cluster_free) struct cluster c = fresh(2);
    struct err e;
    struct request r = { .replicas = 2, .gpus = 2, .cpu_milli = 4000 };
    const struct slot s[] = { { 0, 0x3, 1000 }, { 1, 0x3, 1000 } };
    const struct slot part[] = { { 0, 0x1, 250 } };
    CHECK_INT(cluster_cost_milli(&c, &r, s, 2, 0), 4000);
    CHECK_INT(cluster_cost_milli(&c, &r, s, 2, 10), 4080);
    CHECK(cluster_set_model(&c, &(struct event_model){ STR("a100"), 2500 }, &e) == 0);
    CHECK_INT(cluster_cost_milli(&c, &r, s, 2, 0), 10000);
    CHECK_INT(cluster_cost_milli(&c, &r, part, 1, 0), 625);
}

static void a_list_of_models_becomes_bits(void)
{
    AUTO(cluster_free) struct cluster c = fresh(1);
    struct err e = { 0 };
    uint64_t bits = 77;
    struct event_node n = server("x");
    n.model = STR("v100");
    add(&c, n);
    CHECK(cluster_parse_models(&c, STR("v100"), &bits, &e) == 0 && bits == 2);
    CHECK(cluster_parse_models(&c, STR("v100 | a100"), &bits, &e) == 0 && bits == 3);
    CHECK(cluster_parse_models(&c, STR(""), &bits, &e) == 0 && bits == 0);
    bits = 77;
    CHECK(cluster_parse_models(&c, STR("a100|h100"), &bits, &e) < 0);
    CHECK(bits == 77 && e.code == ERR_INVALID);
    CHECK_STR(e.msg, "no node has a GPU of model 'h100'");
    CHECK_STR(e.hint, "known models: a100, v100");
    CHECK(cluster_parse_models(&c, STR("a100||v100"), &bits, &e) < 0);
}

static void more_models_than_there_are_bits_are_refused(void)
{
    AUTO(cluster_free) struct cluster c = fresh(0);
    struct err e = { 0 };
    uint64_t bits;
    char name[16], model[16], list[1024] = "";
    for (int i = 0; i < MODELS_MAX; i++) {
        snprintf(name, sizeof name, "n%d", i);
        snprintf(model, sizeof model, "a-long-name-%d", i);
        struct event_node n = server(name);
        n.model = str_of(model);
        add(&c, n);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? "|" : "", model);
    }
    CHECK(cluster_parse_models(&c, str_of(list), &bits, &e) == 0 && bits == UINT64_MAX);
    struct event_node n = server("more");
    n.model = STR("new");
    CHECK(cluster_add_node(&c, &n, &e) < 0 && e.code == ERR_TOO_LARGE && c.nodes == MODELS_MAX);
    CHECK_STR(e.msg, "node 'more': more than 64 GPU models in one cluster");
    CHECK(cluster_set_model(&c, &(struct event_model){ STR("new"), 1000 }, &e) < 0);
    CHECK(cluster_parse_models(&c, STR("new"), &bits, &e) < 0 && strlen(e.hint) > 100);
    n.gpus = 0; /* without GPUs it has no model */
    CHECK(cluster_add_node(&c, &n, &e) == 0);
}

static void refused(struct cluster *c, struct event_node n, const char *msg)
{
    struct err e = { 0 };
    uint32_t nodes = c->nodes;
    CHECK(cluster_add_node(c, &n, &e) < 0);
    CHECK_STR(e.msg, msg);
    CHECK(c->nodes == nodes && c->cells_live == 1 && c->kinds == 1);
}

static void bad_nodes_are_refused(void)
{
    AUTO(cluster_free) struct cluster c = fresh(1);
    struct event_node n = server("");
    static char long_name[NAME_MAX_BYTES + 2];
    refused(&c, n, "a node needs a name of 1 to 253 bytes");
    memset(long_name, 'x', NAME_MAX_BYTES + 1);
    refused(&c, server(long_name), "a node needs a name of 1 to 253 bytes");
    refused(&c, server("n0"), "node 'n0' is enrolled already");
    n = server("x");
    n.gpus = 17;
    refused(&c, n, "node 'x': 17 GPUs; at most 16 are supported");
    n = server("x");
    n.model = STR("");
    refused(&c, n, "node 'x' has GPUs but no GPU model");
    n = server("x");
    n.link[2] = 4;
    refused(&c, n, "node 'x': link group 4 of GPU 2; groups are numbered from 0");
}

static void bad_models_are_refused(void)
{
    AUTO(cluster_free) struct cluster c = fresh(1);
    struct err e = { 0 };
    CHECK(cluster_set_model(&c, &(struct event_model){ STR(""), 1000 }, &e) < 0);
    CHECK_STR(e.msg, "model: a name of 1 to 253 bytes is needed");
    CHECK(cluster_set_model(&c, &(struct event_model){ STR("h"), MODEL_COST_MAX + 1 }, &e) < 0);
    CHECK_STR(e.msg, "model 'h': cost_milli is 1000001; at most 1000000");
    CHECK(e.code == ERR_INVALID && c.models.n == 1);
}

static const struct test tests[] = {
    { "nodes that are alike share one cell", nodes_that_are_alike_share_one_cell },
    { "GPUs of one link group are interchangeable", gpus_of_one_link_group_are_interchangeable },
    { "giving back restores everything", giving_back_restores_everything },
    { "rows stay sorted whatever is taken", rows_stay_sorted_whatever_is_taken },
    { "history leaves no trace in the cells", history_leaves_no_trace_in_the_cells },
    { "a node that drains or is down leaves the cells",
      a_node_that_drains_or_is_down_leaves_the_cells },
    { "what ends on a node that is down is free when it returns",
      what_ends_on_a_node_that_is_down_is_free_when_it_returns },
    { "what is kept is free but not offered", what_is_kept_is_free_but_not_offered },
    { "the freest GPUs are the kept ones", the_freest_gpus_are_the_kept_ones },
    { "shares are kept in GPUs that hold them", shares_are_kept_in_gpus_that_hold_them },
    { "only more room is remembered as freed", only_more_room_is_remembered_as_freed },
    { "slots have room only if all have it together",
      slots_have_room_only_if_all_have_it_together },
    { "slots that are not what was asked for have no room",
      slots_that_are_not_what_was_asked_for_have_no_room },
    { "cost goes by model, part and CPU", cost_goes_by_model_part_and_cpu },
    { "a list of models becomes bits", a_list_of_models_becomes_bits },
    { "more models than there are bits are refused", more_models_than_there_are_bits_are_refused },
    { "bad nodes are refused", bad_nodes_are_refused },
    { "bad models are refused", bad_models_are_refused },
};
TEST_CASES(tests)
