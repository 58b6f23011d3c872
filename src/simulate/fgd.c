/* Fragmentation gradient descent, the published packer we are measured against.
 *
 * The fragmentation of a room for a kind of job is the free GPU parts which that kind cannot
 * use; a node's score is how little the expected fragmentation over the typical kinds rises.
 * Scores are whole percents of a sigmoid, so the order of additions matters: it is the published
 * one.
 */
#include <math.h>

#include "simulate/packer.h"

#define TYPICAL_PART 0.95 /* of the jobs are of a typical kind */
#define LEARN_GROWTH 8    /* online: derive anew when an eighth more was seen */

struct fgd_kind {
    uint64_t models;
    const char *spec;
    uint32_t cpu_milli, num, milli;
    double count, freq;
};

struct fgd_cache {
    uint64_t born;
    double before;
};

struct fgd {
    struct fgd_kind *kind; /* all that were seen */
    uint32_t kinds, kind_cap;
    struct fgd_kind *typical;
    uint32_t typicals;
    uint64_t seen, derive_at;
    struct fgd_cache *cache; /* by cell */
    uint32_t cache_n;
    uint64_t epoch;
    struct names specs;
};

static void *fgd_open(void)
{
    struct fgd *f = xcalloc(1, sizeof *f);
    f->derive_at = 1;
    return f;
}

static void fgd_close(void *self)
{
    struct fgd *f = self;
    free(f->kind);
    free(f->typical);
    free(f->cache);
    names_free(&f->specs);
    free(f);
}

/* ---- the typical kinds ---- */

/* The most frequent first; then the larger, field by field. */
static int by_frequency(const void *pa, const void *pb)
{
    const struct fgd_kind *a = pa, *b = pb;
    if (a->count < b->count || b->count < a->count)
        return a->count > b->count ? -1 : 1;
    if (a->cpu_milli != b->cpu_milli)
        return a->cpu_milli > b->cpu_milli ? -1 : 1;
    if (a->milli != b->milli)
        return a->milli > b->milli ? -1 : 1;
    if (a->num != b->num)
        return a->num > b->num ? -1 : 1;
    return strcmp(b->spec, a->spec);
}

static void derive(struct fgd *f)
{
    double all = 0, sum = 0;
    f->typical = xrealloc(f->typical, f->kinds + 1, sizeof *f->typical);
    memcpy(f->typical, f->kind, f->kinds * sizeof *f->kind);
    qsort(f->typical, f->kinds, sizeof *f->typical, by_frequency);
    for (uint32_t i = 0; i < f->kinds; i++)
        all += f->typical[i].count;
    for (f->typicals = 0; f->typicals < f->kinds && sum < TYPICAL_PART * all; f->typicals++)
        sum += f->typical[f->typicals].count;
    for (uint32_t i = 0; i < f->typicals; i++)
        f->typical[i].freq = f->typical[i].count / all / (sum / all);
    for (uint32_t i = 0; i < f->cache_n; i++)
        f->cache[i].born = 0;
}

static void count(struct fgd *f, const struct cluster *c, const struct request *r, const char *spec)
{
    struct fgd_kind k = {
        .models = r->models,
        .spec = names_get(&f->specs, names_intern(&f->specs, str_of(spec))),
        .cpu_milli = r->cpu_milli,
        .num = r->gpus ? r->gpus : request_shares_gpu(r),
        .milli = r->gpus ? GPU_MILLI : cluster_most_share_milli(c, r),
        .count = r->replicas,
    };
    for (uint32_t i = 0; i < f->kinds; i++)
        if (f->kind[i].cpu_milli == k.cpu_milli && f->kind[i].num == k.num &&
            f->kind[i].milli == k.milli && f->kind[i].spec == k.spec) {
            f->kind[i].count += k.count;
            return;
        }
    vec_grow(f->kind, f->kinds, f->kind_cap);
    f->kind[f->kinds++] = k;
}

static void fgd_learn(void *self, const struct cluster *c, const struct request *r,
                      const char *spec)
{
    struct fgd *f = self;
    count(f, c, r, spec);
    f->seen += r->replicas;
    if (f->seen < f->derive_at)
        return;
    f->derive_at = f->seen + 1 + f->seen / LEARN_GROWTH;
    derive(f);
}

static void fgd_seal(void *self)
{
    derive(self);
}

/* ---- fragmentation ---- */

static double fragmentation(const struct fgd *f, const struct kind *k, const struct room *m)
{
    uint32_t all = 0;
    double short_both = 0, usable = 0, short_cpu = 0, no_gpu = 0, no_gpu_short = 0, no_model = 0;
    for (int g = 0; g < k->gpus; g++)
        all += m->gpu[g];
    if (all == 0)
        return 0;
    for (uint32_t i = 0; i < f->typicals; i++) {
        const struct fgd_kind *t = &f->typical[i];
        bool cpu = m->cpu_milli >= t->cpu_milli;
        double whole = t->freq * all;
        if (t->milli == 0) {
            *(cpu ? &no_gpu : &no_gpu_short) += whole;
            continue;
        }
        if (t->models && !(t->models >> k->model & 1)) {
            no_model += whole;
            continue;
        }
        uint32_t fits = 0, lost = 0;
        for (int g = 0; g < k->gpus; g++) {
            fits += m->gpu[g] >= t->milli;
            lost += m->gpu[g] >= t->milli ? 0 : m->gpu[g];
        }
        if (fits >= t->num)
            *(cpu ? &usable : &short_cpu) += cpu ? t->freq * lost : whole;
        else
            *(cpu ? &usable : &short_both) += whole;
    }
    return short_both + usable + short_cpu + no_gpu + no_gpu_short + no_model;
}

static double before(struct fgd *f, const struct kind *k, uint32_t cell, const struct cell *ce)
{
    if (cell >= f->cache_n) {
        uint32_t n = cell + 1024;
        f->cache = xrealloc(f->cache, n, sizeof *f->cache);
        memset(f->cache + f->cache_n, 0, (n - f->cache_n) * sizeof *f->cache);
        f->cache_n = n;
    }
    if (f->cache[cell].born != ce->born)
        f->cache[cell] = (struct fgd_cache){ ce->born, fragmentation(f, k, &ce->room) };
    return f->cache[cell].before;
}

static int percent(double drop)
{
    return (int)(100 / (1 + exp(-drop / GPU_MILLI)));
}

/* The GPU of the room that a share takes: the first with the highest score. */
static int share_score(const struct fgd *f, const struct kind *k, const struct room *m,
                       const struct request *r, double frag, uint32_t *out_gpu)
{
    uint32_t milli = kind_share_milli(k, r);
    int best = -1;
    for (uint32_t g = 0; g < k->gpus; g++) {
        if (m->gpu[g] < milli)
            continue;
        struct room after = *m;
        room_take(k, &after, r, (uint16_t)(1u << g), milli);
        int score = percent(frag - fragmentation(f, k, &after));
        if (score > best) {
            best = score;
            *out_gpu = g;
        }
    }
    return best;
}

static int fgd_score(void *self, const struct kind *k, uint32_t cell, const struct cell *ce,
                     const struct request *r)
{
    struct fgd *f = self;
    double frag = before(f, k, cell, ce);
    uint32_t gpu;
    if (request_shares_gpu(r))
        return share_score(f, k, &ce->room, r, frag, &gpu);
    struct room after = ce->room;
    room_take(k, &after, r, room_pick(k, &ce->room, r), GPU_MILLI);
    return percent(frag - fragmentation(f, k, &after));
}

static bool fgd_find(void *self, struct cluster *c, const struct request *r, struct slot *out)
{
    struct fgd *f = self;
    uint32_t cell = packer_best_cell(c, r, fgd_score, self);
    if (cell == NONE)
        return false;
    const struct cell *ce = &c->cell[cell];
    const struct kind *k = &c->kind[ce->kind];
    uint32_t node = ce->node[ce->n - 1], gpu = 0;
    *out = (struct slot){ .node = node };
    if (request_shares_gpu(r)) {
        share_score(f, k, &c->node[node].offer, r, before(f, k, cell, ce), &gpu);
        out->gpu_mask = (uint16_t)(1u << gpu);
        out->milli = (uint16_t)kind_share_milli(k, r);
    } else if (r->gpus) {
        out->gpu_mask = room_pick(k, &c->node[node].offer, r);
        out->milli = GPU_MILLI;
    }
    return true;
}

const struct packer_ops packer_fgd = {
    .name = "fgd",
    .open = fgd_open,
    .learn = fgd_learn,
    .seal = fgd_seal,
    .find = fgd_find,
    .close = fgd_close,
};
