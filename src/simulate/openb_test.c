#include "simulate/openb.h"

#include <math.h>

#include "tests/lib/gen_trace.h"
#include "tests/lib/test.h"

static struct csv_source named(const char *file, const struct buf *b)
{
    return (struct csv_source){ file, buf_str(b) };
}

static struct openb_sources sources(const struct gen_openb *g)
{
    return (struct openb_sources){ named("nodes.csv", &g->nodes), named("pods.csv", &g->pods),
                                   named("seq.txt", &g->seq), named("ranks.txt", &g->ranks),
                                   named("published.csv", &g->published) };
}

static void reads_a_whole_folder(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        AUTO(gen_openb_free) struct gen_openb g;
        AUTO(openb_free) struct openb o = { 0 };
        struct err e = { 0 };
        gen_openb(seed, &g);
        struct openb_sources from = sources(&g);
        CHECK_AT(seed, openb_parse(&from, "default", &o, &e) == 0);
        CHECK_AT(seed, o.nodes == GEN_OPENB_NODES && o.pods == GEN_OPENB_PODS);
        CHECK_AT(seed, o.seeds == GEN_OPENB_SEEDS && o.publisheds == GEN_OPENB_SEEDS);
        for (uint32_t s = 0; s < o.seeds; s++) {
            uint64_t order = 0, rank = 0;
            CHECK_AT(seed, o.seed[s].orders == o.pods && o.seed[s].seed == 42 + s);
            for (uint32_t i = 0; i < o.pods; i++)
                order += o.seed[s].order[i];
            for (uint32_t i = 0; i < o.nodes; i++)
                rank += o.seed[s].rank[i];
            CHECK_AT(seed, order == GEN_OPENB_PODS * (GEN_OPENB_PODS - 1) / 2);
            CHECK_AT(seed, rank == GEN_OPENB_NODES * (GEN_OPENB_NODES - 1) / 2);
        }
        for (uint32_t i = 0; i < o.pods; i++)
            CHECK_AT(seed, (o.pod[i].num_gpu > 0) == (o.pod[i].gpu_milli > 0));
    }
}

#define NODES "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,1024,8,V100\n"
#define PODS "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,12000,16384,1,1000\np1,6000,0,1,460\n"
#define SEQ "42 1 0 1\n43 0\n"
#define RANKS "42 1 0\n43 0 1\n"
#define PUBLISHED                                                                                  \
    "metric,workload,policy,seed,a10,a100\nalloc_pct,w,FGD,42,10.5,\nalloc_pct,v,FGD,42,1,2\n"

/* One small world whose parts a test replaces. */
struct world {
    const char *nodes, *pods, *seq, *ranks, *published;
};
static const struct world good = { NODES, PODS, SEQ, RANKS, PUBLISHED };

static int parse(const struct world *w, struct openb *out, struct err *e)
{
    const struct openb_sources from = {
        { "nodes.csv", str_of(w->nodes) },
        { "pods.csv", str_of(w->pods) },
        { "seq.txt", str_of(w->seq) },
        { "ranks.txt", str_of(w->ranks) },
        { w->published ? "published.csv" : NULL, str_of(w->published ? w->published : "") },
    };
    return openb_parse(&from, "w", out, e);
}

static void keeps_what_the_files_say(void)
{
    AUTO(openb_free) struct openb o = { 0 };
    struct err e = { 0 };
    CHECK(parse(&good, &o, &e) == 0);
    CHECK_STR(o.node[1].name, "n1");
    CHECK_STR(o.node[1].model, "V100");
    CHECK(o.node[1].gpus == 8 && o.node[1].cpu_milli == 96000 && o.node[1].mem_mib == 1024);
    CHECK_STR(o.pod[1].spec, "");
    CHECK(o.pod[1].gpu_milli == 460 && o.pod[1].num_gpu == 1 && o.pod[1].mem_mib == 0);
    CHECK(o.seeds == 2 && o.seed[0].orders == 3 && o.seed[0].order[2] == 1);
    CHECK(o.seed[0].rank[0] == 1 && o.seed[1].rank[0] == 0);
    CHECK(o.publisheds == 1 && o.published[0].n == 2 && o.published[0].demand[1] == 100);
    CHECK(o.published[0].alloc[0] == 10.5 && isnan(o.published[0].alloc[1]));
    CHECK_STR(o.published[0].policy, "FGD");
}

static void published_results_may_be_absent(void)
{
    AUTO(openb_free) struct openb o = { 0 };
    struct err e = { 0 };
    struct world w = good;
    w.published = NULL;
    CHECK(parse(&w, &o, &e) == 0 && o.publisheds == 0);
}

static void a_pod_may_ask_for_models(void)
{
    AUTO(openb_free) struct openb o = { 0 };
    struct err e = { 0 };
    struct world w = good;
    w.pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
             "p0,1,1,1,1000,V100M16|V100M32,LS\np1,1,1,0,0,,LS\n";
    CHECK(parse(&w, &o, &e) == 0);
    CHECK_STR(o.pod[0].spec, "V100M16|V100M32");
    CHECK_STR(o.pod[1].spec, "");
}

static void refused(const struct world *w, const char *start)
{
    struct openb o;
    struct err e = { 0 };
    memset(&o, 0x5a, sizeof o);
    CHECK(parse(w, &o, &e) < 0);
    CHECK_INT(e.code, ERR_INVALID);
    if (strncmp(e.msg, start, strlen(start)) != 0)
        CHECK_STR(e.msg, start);
    CHECK(e.hint[0]);
    for (size_t i = 0; i < sizeof o; i++)
        CHECK(((const char *)&o)[i] == 0x5a); /* left alone */
}

static void refuses_broken_nodes(void)
{
    static const char *const cases[][2] = {
        { "n0,-1,1,2,P100", "nodes.csv:2: field 'cpu_milli': '-1' is not" },
        { "n0,1,4294967296,2,P100", "nodes.csv:2: field 'memory_mib': '4294967296' is not" },
        { "n0,1,1,17,P100", "nodes.csv:2: field 'gpu': '17' is not a whole number from 0 to 16" },
        { "n0,1,1,2,", "nodes.csv:2: field 'model': it is empty, and the node has 2 GPUs" },
        { "n0,1,1,2,A|B", "nodes.csv:2: field 'model': 'A|B' names more than one" },
        { "n0,1,1,0,\nn0,1,1,0,", "nodes.csv:3: field 'sn': 'n0' is there twice" },
        { ",1,1,1,A", "nodes.csv:2: field 'sn': it is empty" },
        { "n0,1,1,1", "nodes.csv:2: field 'model': missing" },
        { "n0,1,1,1,A,B", "nodes.csv:2: field '6': one too many" },
        { "", "nodes.csv:2: field 'sn': the table has no rows" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf_free) struct buf text = BUF(4096);
        struct world w = good;
        buf_printf(&text, "sn,cpu_milli,memory_mib,gpu,model\n%s\n", cases[i][0]);
        w.nodes = text.p;
        refused(&w, cases[i][1]);
    }
}

static void refuses_broken_pods(void)
{
    static const char *const cases[][2] = {
        { "p0,x,1,1,1000,", "pods.csv:2: field 'cpu_milli': 'x' is not" },
        { "p0,1,-1,1,1000,", "pods.csv:2: field 'memory_mib': '-1' is not" },
        { "p0,1,1,17,1000,", "pods.csv:2: field 'num_gpu': '17' is not" },
        { "p0,1,1,1,0,",
          "pods.csv:2: field 'gpu_milli': '0' is not a whole number from 1 to 1000" },
        { "p0,1,1,1,1001,", "pods.csv:2: field 'gpu_milli': '1001' is not" },
        { "p0,1,1,0,500,", "pods.csv:2: field 'gpu_milli': '500' is not" },
        { "p0,1,1,1,500,A||B", "pods.csv:2: field 'gpu_spec': 'A||B' is not a list of models" },
        { "p0,1,1,1,500,A|", "pods.csv:2: field 'gpu_spec': 'A|' is not a list of models" },
        { ",1,1,1,500,", "pods.csv:2: field 'name': it is empty" },
        { "", "pods.csv:2: field 'name': the table has no rows" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf_free) struct buf text = BUF(4096);
        struct world w = good;
        buf_printf(&text, "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n%s\n",
                   cases[i][0]);
        w.pods = text.p;
        refused(&w, cases[i][1]);
    }
}

static void refuses_broken_orders(void)
{
    static const char *const cases[][2] = {
        { "", "seq.txt:1: field 'seed': the file is empty" },
        { "x 1 0\n", "seq.txt:1: field 'seed': 'x' is not" },
        { "42\n", "seq.txt:1: field 'row': no pod arrives for seed 42" },
        { "42 1\n42 0\n", "seq.txt:2: field 'seed': 42 is there twice" },
        { "42 1 2\n", "seq.txt:1: field 'row': '2' is not a whole number from 0 to 1" },
        { "42 1 -1\n", "seq.txt:1: field 'row': '-1' is not" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct world w = good;
        w.seq = cases[i][0];
        refused(&w, cases[i][1]);
    }
}

static void refuses_broken_ranks(void)
{
    static const char *const cases[][2] = {
        { "42 0 0\n", "ranks.txt:1: field 'rank': 0 is there twice" },
        { "42 0\n", "ranks.txt:1: field 'rank': 1 ranks for 2 nodes" },
        { "42 0 1 1\n", "ranks.txt:1: field 'rank': 3 ranks for 2 nodes" },
        { "42 0 2\n", "ranks.txt:1: field 'rank': '2' is not a whole number from 0 to 1" },
        { "42 0 1\n", "ranks.txt:1: field 'seed': no line for seed 43" },
        { "42 0 1\n42 1 0\n", "ranks.txt:2: field 'seed': 42 is there twice" },
        { "", "ranks.txt:1: field 'seed': no line for seed 42" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct world w = good;
        w.ranks = cases[i][0];
        refused(&w, cases[i][1]);
    }
}

static void refuses_broken_results(void)
{
    struct world w = good;
    w.published = "metric,workload,policy,seed,a10\nalloc_pct,w,FGD,42,101\n";
    refused(&w, "published.csv:2: field 'a10': '101' is not a number from 0 to 100");
    w.published = "metric,workload,policy,seed,a10\nalloc_pct,w,FGD,-1,10\n";
    refused(&w, "published.csv:2: field 'seed': '-1' is not");
    AUTO(buf_free) struct buf text = BUF(4096);
    buf_addz(&text, "metric,workload,policy,seed");
    for (int i = 1; i <= OPENB_DEMANDS + 1; i++)
        buf_printf(&text, ",a%d", i);
    w.published = text.p;
    refused(&w, "published.csv:1: field 'a33': more than 32 columns of results");
}

static void a_workload_cannot_leave_the_folder(void)
{
    static const char *const names[] = { "", "../x", "a/b", "a b", "%s" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct openb o;
        struct err e = { 0 };
        CHECK(openb_read("/nonexistent", names[i], &o, &e) < 0);
        CHECK(e.code == ERR_INVALID && e.hint[0]);
    }
    struct openb o;
    struct err e = { 0 };
    CHECK(openb_read("/nonexistent", "default", &o, &e) < 0 && e.code == ERR_NOT_FOUND);
}

static const struct test tests[] = {
    { "generated folders are read whole, for 20 seeds", reads_a_whole_folder },
    { "values are those of the files", keeps_what_the_files_say },
    { "published results may be absent", published_results_may_be_absent },
    { "a pod may allow some models; the columns for it may be absent", a_pod_may_ask_for_models },
    { "a broken node is refused with file, line and field", refuses_broken_nodes },
    { "a broken pod is refused with file, line and field", refuses_broken_pods },
    { "an order that names no pod is refused with file, line and field", refuses_broken_orders },
    { "ranks that are no permutation are refused", refuses_broken_ranks },
    { "broken published results are refused", refuses_broken_results },
    { "a workload's name cannot leave the folder", a_workload_cannot_leave_the_folder },
};
TEST_CASES(tests)
