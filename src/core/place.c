#include "core/place.h"

#define ROW_LOOKS 32 /* cells of one row that are looked at */

/* One replica looking for a place on one kind of node. */
struct search {
    struct cluster *c;
    const struct demand *d;
    const struct request *r;
    const struct kind *k;
    uint32_t milli;     /* the share of one GPU it takes here; 0 for whole ones */
    uint32_t gpu_milli; /* all it takes of GPUs */
    float price;        /* of that on this model */
    bool every;         /* looks at every cell */
    float best_cost;
    uint32_t best_cell; /* NONE: nothing fits so far */
    uint8_t best_gpu;   /* for a share: which of the cell's GPUs */
};

static float step_waste(const struct search *s, uint32_t free_milli)
{
    return s->d->waste[s->k->model][free_milli * DEMAND_STEPS / GPU_MILLI];
}

/* The GPU where the share leaves the least waste. */
static float share_cost(const struct search *s, const struct cell *ce, uint8_t *out_gpu)
{
    float best = 0, opens = ce->whole ? s->d->block[ce->whole - 1] - s->d->block[ce->whole] : 0;
    uint32_t before = 0;
    bool any = false;
    for (uint8_t g = 0; g < s->k->gpus; g++) {
        uint32_t free_milli = ce->room.gpu[g];
        if (free_milli < s->milli || (any && free_milli == before))
            continue;
        before = free_milli;
        float cost = step_waste(s, free_milli - s->milli) - step_waste(s, free_milli);
        cost += free_milli == GPU_MILLI ? opens : 0;
        if (!any || cost < best) {
            best = cost;
            *out_gpu = g;
        }
        any = true;
    }
    return best;
}

static bool cell_fits(const struct search *s, const struct cell *ce)
{
    if (ce->room.cpu_milli < s->r->cpu_milli || ce->room.mem_mib < s->r->mem_mib)
        return false;
    if (s->milli && ce->whole == 0 && ce->best_part < s->milli)
        return false;
    return !s->r->linked || s->k->links == 1 || room_replicas(s->k, &ce->room, s->r, 1);
}

static void look(struct search *s, uint32_t cell, float row_cost)
{
    struct cell *ce = &s->c->cell[cell];
    const struct request *r = s->r;
    uint8_t gpu = 0;
    if (!cell_fits(s, ce))
        return;
    float cost = row_cost;
    if (s->k->gpus) {
        if (ce->strand_epoch != s->d->epoch) {
            ce->strand_epoch = s->d->epoch;
            ce->strand = demand_stranded(s->d, (float)ce->gpu_free, (float)ce->room.cpu_milli,
                                         (float)ce->room.mem_mib);
        }
        cost += demand_stranded(s->d, (float)(ce->gpu_free - s->gpu_milli),
                                (float)(ce->room.cpu_milli - r->cpu_milli),
                                (float)(ce->room.mem_mib - r->mem_mib)) -
                ce->strand;
    }
    if (s->milli)
        cost += share_cost(s, ce, &gpu);
    if (s->best_cell != NONE && cost >= s->best_cost)
        return;
    s->best_cost = cost;
    s->best_cell = cell;
    s->best_gpu = gpu;
}

/* Cells of a row lie in order of free CPUs: those with too few are not looked at. */
static uint32_t first_with_cpu(const struct search *s, const struct row *row)
{
    uint32_t lo = 0, hi = row->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s->c->cell[row->cell[mid]].room.cpu_milli < s->r->cpu_milli)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void look_row(struct search *s, uint32_t index)
{
    const struct row *row = &s->k->row[index];
    float cost = s->price;
    if (row->n == 0)
        return;
    if (s->r->gpus) {
        uint32_t whole = index - ROW_WHOLE;
        cost += s->d->block[whole - s->r->gpus] - s->d->block[whole];
        cost -= (float)s->r->gpus * s->d->waste[s->k->model][DEMAND_STEPS];
    }
    /* The most it can gain: to take GPUs that were stranded, and for a share also a part that was waste. */
    float least = cost - (float)s->gpu_milli - (s->milli ? (float)GPU_MILLI : 0);
    if (s->best_cell != NONE && least >= s->best_cost)
        return;
    uint32_t from = first_with_cpu(s, row), n = row->n - from;
    uint32_t looks = s->every ? n : MIN(n, (uint32_t)ROW_LOOKS);
    for (uint32_t i = 0; i < looks; i++)
        look(s, row->cell[from + (uint32_t)((uint64_t)i * n / looks)], cost);
}

static void look_kind(struct search *s, uint32_t kind)
{
    const struct request *r = s->r;
    s->k = &s->c->kind[kind];
    if (!kind_allows(s->k, r))
        return;
    s->milli = request_shares_gpu(r) ? kind_share_milli(s->k, r) : 0;
    s->gpu_milli = s->milli + r->gpus * GPU_MILLI;
    s->price = (float)s->gpu_milli * (s->gpu_milli ? s->d->price[s->k->model] : 0);
    uint32_t first = r->gpus ? ROW_WHOLE + r->gpus : s->milli ? row_of_part(s->milli) : 0;
    for (uint32_t i = first; i < ROWS; i++)
        look_row(s, i);
}

static struct slot make_slot(const struct search *s)
{
    const struct cell *ce = &s->c->cell[s->best_cell];
    const struct kind *k = &s->c->kind[ce->kind];
    uint32_t node = ce->node[ce->n - 1];
    const struct room *m = &s->c->node[node].room;
    struct slot out = { .node = node };
    if (request_shares_gpu(s->r)) {
        out.milli = (uint16_t)kind_share_milli(k, s->r);
        for (uint32_t g = 0; g < k->gpus && !out.gpu_mask; g++) /* the same free part, by index */
            if (m->gpu[g] == ce->room.gpu[s->best_gpu] && k->link[g] == k->link[s->best_gpu])
                out.gpu_mask = (uint16_t)(1u << g);
    } else if (s->r->gpus) {
        out.milli = GPU_MILLI;
        out.gpu_mask = room_pick(k, m, s->r);
    }
    return out;
}

static bool find_one(struct cluster *c, const struct demand *d, const struct request *r,
                     struct slot *out)
{
    struct search s = { .c = c, .d = d, .r = r, .best_cell = NONE };
    for (int all = 0; all < 2 && s.best_cell == NONE; all++) {
        s.every = all;
        for (uint32_t k = 0; k < c->kinds; k++)
            look_kind(&s, k);
    }
    if (s.best_cell == NONE)
        return false;
    *out = make_slot(&s);
    return true;
}

bool place_find(struct cluster *c, const struct demand *d, const struct request *r,
                struct gang_scratch *g, struct slot *out)
{
    return r->replicas == 1 ? find_one(c, d, r, out) : gang_find(c, r, g, out);
}

/* ---- never ---- */

static int why_no_kind(const struct cluster *c, const struct request *r, struct err *e)
{
    uint32_t gpus = 0, gpu_mem_mib = 0, cpu_milli = 0, mem_mib = 0; /* the most on one machine */
    for (uint32_t i = 0; i < c->kinds; i++) {
        const struct kind *k = &c->kind[i];
        if (r->models && !(r->models >> k->model & 1))
            continue;
        gpus = MAX(gpus, (uint32_t)k->gpus);
        gpu_mem_mib = MAX(gpu_mem_mib, k->gpu_mem_mib);
        cpu_milli = MAX(cpu_milli, k->cpu_milli);
        mem_mib = MAX(mem_mib, k->mem_mib);
    }
    const char *of = r->models ? " of the models asked for" : "";
    if (c->nodes == 0)
        err_set(e, ERR_INVALID, "there are no machines yet");
    else if (r->gpus > gpus)
        err_set(e, ERR_INVALID, "gpus: %u on one machine; the largest%s has %u", r->gpus, of, gpus);
    else if (r->cpu_milli > cpu_milli)
        err_set(e, ERR_INVALID, "cpus: %.6g on one machine; the largest%s has %.6g",
                r->cpu_milli / 1e3, of, cpu_milli / 1e3);
    else if (r->mem_mib > mem_mib)
        err_set(e, ERR_INVALID, "mem: %u MiB on one machine; the largest%s has %u MiB", r->mem_mib,
                of, mem_mib);
    else if (r->gpu_mem_mib > gpu_mem_mib)
        err_set(e, ERR_INVALID, "gpu_mem: %u MiB on one GPU; the largest%s has %u MiB",
                r->gpu_mem_mib, of, gpu_mem_mib);
    else
        err_set(e, ERR_INVALID,
                "no single machine has the GPUs, CPUs and memory that a replica asks for");
    return err_hint(e, "ask for less on each replica, or for more replicas");
}

int place_check_possible(const struct cluster *c, const struct request *r, struct err *e)
{
    bool any = false, one = false;
    struct request single = *r;
    single.replicas = 1;
    for (uint32_t i = 0; i < c->kinds; i++) {
        struct room idle = kind_room(&c->kind[i]);
        any = any || kind_allows(&c->kind[i], r);
        one = one || room_replicas(&c->kind[i], &idle, &single, 1) > 0;
    }
    if (!any)
        return why_no_kind(c, r, e);
    if (!one) {
        err_set(e, ERR_INVALID, "gpus: no machine has %u linked GPUs", r->gpus);
        return err_hint(e, "drop 'linked', or ask for fewer GPUs on each replica");
    }
    if (gang_fits_idle(c, r))
        return 0;
    const char *where = r->scope == SCOPE_NODE   ? " on one machine"
                      : r->scope == SCOPE_SWITCH ? " behind one switch"
                                                 : "";
    err_set(e, ERR_INVALID,
            "replicas: %u of %u GPUs, %.3g CPUs each do not fit%s, even with nothing else running",
            r->replicas, r->gpus, r->cpu_milli / 1e3, where);
    return err_hint(e, "ask for fewer replicas, or for a wider placement");
}
