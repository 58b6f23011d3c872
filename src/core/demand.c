#include "core/demand.h"

#define STEP_MILLI 10u
#define KINDS_MAX 4096      /* distinct requests remembered */
#define SEEN_MAX (1u << 17) /* then the old count half, so that it follows the lab's work */
#define LEARN_GROWTH 4      /* derive anew when a quarter more was seen */
#define PRICE_EVERY 64      /* prices follow what is free: more often */
#define GROUPS 4            /* of demand ratios; the lanes of a vec4 */
#define UNLIMITED 1e6f      /* a CPU or MiB feeds this much when jobs ask for none of it */
_Static_assert(STEP_MILLI *DEMAND_STEPS == GPU_MILLI, "the steps make up a GPU");

void demand_init(struct demand *d)
{
    *d = (struct demand){ .learn_at = 1, .price_at = 1, .epoch = 1 };
    for (int q = 0; q < GROUPS; q++)
        d->per_cpu[q] = d->per_mem[q] = UNLIMITED;
}

void demand_free(struct demand *d)
{
    free(d->kind);
    free(d->bound);
    map_free(&d->kind_by_hash);
}

/* ---- counting ---- */

static bool same_kind(const struct demand_kind *a, const struct demand_kind *b)
{
    return a->models == b->models && a->cpu_milli == b->cpu_milli && a->mem_mib == b->mem_mib &&
           a->gpus == b->gpus && a->milli == b->milli;
}

static uint64_t kind_hash(const struct demand_kind *k)
{
    uint64_t h = k->models * 0x9E3779B97F4A7C15ull;
    h ^= ((uint64_t)k->cpu_milli << 32 | k->mem_mib) * 0xBF58476D1CE4E5B9ull;
    h ^= ((uint64_t)k->gpus << 16 | k->milli) * 0x94D049BB133111EBull;
    return h ^ h >> 31;
}

static double kind_milli(const struct demand_kind *k)
{
    return (double)MAX(k->gpus, (uint16_t)1) * k->milli;
}

static void count(struct demand *d, const struct demand_kind *k)
{
    uint64_t key = kind_hash(k), hit;
    d->asked += k->count * kind_milli(k);
    while (map_get(&d->kind_by_hash, key, &hit)) {
        if (same_kind(&d->kind[hit], k)) {
            d->kind[hit].count += k->count;
            return;
        }
        key++;
    }
    vec_grow(d->kind, d->kinds, d->kind_cap);
    map_set(&d->kind_by_hash, key, d->kinds);
    if (k->models && k->milli) {
        vec_grow(d->bound, d->bounds, d->bound_cap);
        d->bound[d->bounds++] = d->kinds;
    }
    d->kind[d->kinds++] = *k;
}

/* Every count by half; what falls to nothing is forgotten. */
static void forget_half(struct demand *d)
{
    uint32_t n = d->kinds;
    AUTO(free_p) struct demand_kind *old = TAKE(d->kind);
    map_free(&d->kind_by_hash);
    d->kind_by_hash = (struct map){ 0 };
    d->kinds = d->kind_cap = d->bounds = 0;
    d->seen = 0;
    d->asked = 0;
    for (uint32_t i = 0; i < n; i++) {
        old[i].count /= 2;
        if (old[i].count == 0)
            continue;
        count(d, &old[i]);
        d->seen += old[i].count;
    }
    d->learn_at = d->price_at = 0;
}

/* ---- deriving ---- */

static bool asks_model(const struct demand_kind *k, uint32_t model)
{
    return k->models == 0 || (k->models >> model & 1);
}

/* What is lost, on average, of a GPU with so much free when jobs come at random: one that does not
 * fit loses what is free, one that fits leaves a smaller part to the next. */
static void learn_waste(struct demand *d, uint32_t model)
{
    double share[DEMAND_STEPS + 1] = { 0 }, all = 0;
    float *waste = d->waste[model];
    for (uint32_t i = 0; i < d->kinds; i++) {
        const struct demand_kind *k = &d->kind[i];
        if (k->milli == 0 || !asks_model(k, model))
            continue;
        share[(k->milli + STEP_MILLI - 1) / STEP_MILLI] += k->count;
        all += k->count;
    }
    int size[DEMAND_STEPS + 1], sizes = 0;
    for (int s = 1; s <= DEMAND_STEPS; s++)
        if (share[s] > 0)
            size[sizes++] = s;
    waste[0] = 0;
    for (int f = 1; f <= DEMAND_STEPS; f++) {
        double sum = 0, fits = 0, lost = (double)f * STEP_MILLI;
        for (int i = 0; i < sizes && size[i] <= f; i++) {
            sum += share[size[i]] * (double)waste[f - size[i]];
            fits += share[size[i]];
        }
        waste[f] = (float)(all > 0 ? (sum + (all - fits) * lost) / all : lost);
    }
}

/* Where no job names its models they are all alike. */
static void learn_wastes(struct demand *d, uint32_t models)
{
    d->models_differ = d->bounds > 0;
    for (uint32_t m = 0; m < models; m++) {
        if (m == 0 || d->models_differ)
            learn_waste(d, m);
        else
            memcpy(d->waste[m], d->waste[0], sizeof d->waste[0]);
    }
}

static void learn_block(struct demand *d)
{
    double many[GPUS_PER_NODE_MAX + 1] = { 0 }, all = 0, sum = 0;
    for (uint32_t i = 0; i < d->kinds; i++) {
        all += d->kind[i].count;
        if (d->kind[i].gpus > 1)
            many[d->kind[i].gpus] += d->kind[i].count;
    }
    for (int n = 0; n <= GPUS_PER_NODE_MAX; n++) {
        sum += many[n];
        d->block[n] = (float)(all > 0 ? -1000.0 * n * sum / all : 0);
    }
}

struct ratio {
    double ratio, weight;
};

static int by_ratio(const void *pa, const void *pb)
{
    const struct ratio *a = pa, *b = pb;
    if (a->ratio < b->ratio || b->ratio < a->ratio)
        return a->ratio < b->ratio ? -1 : 1;
    return a->weight < b->weight ? -1 : a->weight > b->weight;
}

/* Cuts the demand into groups of equal weight by CPU (or memory) for each part of a GPU; gives what
 * one CPU (MiB) feeds in each group. */
static vec4 learn_ratio(const struct demand *d, bool memory)
{
    AUTO(free_p) struct ratio *r = xcalloc(d->kinds + 1, sizeof *r);
    double all = 0;
    size_t n = 0, i = 0;
    vec4 out = { UNLIMITED, UNLIMITED, UNLIMITED, UNLIMITED };
    for (uint32_t k = 0; k < d->kinds; k++) {
        const struct demand_kind *dk = &d->kind[k];
        double gpu_milli = kind_milli(dk);
        if (dk->milli == 0)
            continue;
        r[n].ratio = (memory ? dk->mem_mib : dk->cpu_milli) / gpu_milli;
        r[n].weight = dk->count * gpu_milli;
        all += r[n++].weight;
    }
    qsort(r, n, sizeof *r, by_ratio);
    for (int q = 0; q < GROUPS && n; q++) {
        double room = all / GROUPS, sum = 0;
        while (room > all * 1e-9 && i < n) {
            double take = MIN(r[i].weight, room);
            sum += take * r[i].ratio;
            room -= take;
            r[i].weight -= take;
            i += r[i].weight <= all * 1e-12;
        }
        double mean = sum / (all / GROUPS);
        out[q] = mean > 1e-6 ? (float)(1 / mean) : UNLIMITED;
    }
    return out;
}

/* What jobs that name their models ask for, spread over the models they name by what is free of
 * each, against what is free of all. */
static void learn_prices(struct demand *d, const struct cluster *c)
{
    double left[MODELS_MAX] = { 0 }, bound[MODELS_MAX] = { 0 }, left_all = 0;
    for (uint32_t k = 0; k < c->kinds; k++) {
        left[c->kind[k].model] += (double)c->kind[k].gpu_free;
        left_all += (double)c->kind[k].gpu_free;
    }
    for (uint32_t i = 0; i < d->bounds; i++) {
        const struct demand_kind *k = &d->kind[d->bound[i]];
        double want = k->count * kind_milli(k), have = 0;
        for (uint64_t m = k->models; m; m &= m - 1)
            have += left[__builtin_ctzll(m)];
        for (uint64_t m = k->models; m && have > 0; m &= m - 1)
            bound[__builtin_ctzll(m)] += want * left[__builtin_ctzll(m)] / have;
    }
    for (uint32_t m = 0; m < c->models.n; m++) {
        double rho = left[m] > 0 && d->asked > 0 ? bound[m] / d->asked * left_all / left[m] : 0;
        d->price[m] = (float)MIN(rho, 1.0);
    }
}

void demand_learn(struct demand *d, const struct cluster *c, const struct request *r)
{
    struct demand_kind k = {
        .models = r->models,
        .cpu_milli = r->cpu_milli,
        .mem_mib = r->mem_mib,
        .gpus = r->gpus,
        .milli = (uint16_t)(r->gpus ? GPU_MILLI : cluster_most_share_milli(c, r)),
        .count = r->replicas,
    };
    demand_add(d, c, &k);
}

void demand_add(struct demand *d, const struct cluster *c, const struct demand_kind *k)
{
    if (d->kinds >= KINDS_MAX || d->seen >= SEEN_MAX)
        forget_half(d);
    count(d, k);
    d->seen += k->count;
    if (d->seen >= d->learn_at) {
        d->learn_at = d->seen + 1 + d->seen / LEARN_GROWTH;
        learn_wastes(d, (uint32_t)c->models.n);
        learn_block(d);
        d->per_cpu = learn_ratio(d, false);
        d->per_mem = learn_ratio(d, true);
        d->epoch++;
    }
    if (d->seen >= d->price_at) {
        d->price_at = d->seen + PRICE_EVERY;
        learn_prices(d, c);
    }
}
