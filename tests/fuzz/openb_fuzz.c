/* The five files in one input, '%' between them: orders name pods, ranks are a permutation, what is
 * refused leaves the output alone. */
#include "simulate/openb.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void check(const struct openb *o)
{
    must(o->nodes > 0 && o->pods > 0 && o->seeds > 0);
    for (uint32_t s = 0; s < o->seeds; s++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < o->seed[s].orders; i++)
            must(o->seed[s].order[i] < o->pods);
        for (uint32_t i = 0; i < o->nodes; i++)
            sum += o->seed[s].rank[i];
        must(sum == (uint64_t)o->nodes * (o->nodes - 1) / 2);
    }
    for (uint32_t i = 0; i < o->pods; i++)
        must(o->pod[i].gpu_milli <= 1000 && (o->pod[i].gpu_milli > 0) == (o->pod[i].num_gpu > 0));
    for (uint32_t i = 0; i < o->publisheds; i++)
        for (uint32_t k = 0; k < o->published[i].n; k++)
            must(!(o->published[i].alloc[k] < 0 || o->published[i].alloc[k] > 100));
}

FUZZ_TARGET(data, size)
{
    struct str part[5], rest = { (const char *)data, size };
    for (size_t i = 0; i < ARRAY_LEN(part); i++)
        str_cut(rest, '%', &part[i], &rest);
    const struct openb_sources from = { { "nodes", part[0] },
                                        { "pods", part[1] },
                                        { "seq", part[2] },
                                        { "ranks", part[3] },
                                        { part[4].n ? "published" : NULL, part[4] } };
    struct openb o = { .nodes = 12345 };
    struct err e = { 0 };
    if (openb_parse(&from, "default", &o, &e) < 0) {
        must(o.nodes == 12345 && e.code == ERR_INVALID && e.hint[0] && strstr(e.msg, ": field '"));
        return 0;
    }
    check(&o);
    openb_free(&o);
    return 0;
}
