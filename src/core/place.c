#include "core/place.h"

#include "core/device.h"

#define INFINITE 3e38f
#define ROW_LOOKS 32 /* cells of one row that are looked at */
#define GAINS 256    /* that are remembered */
#define DEVICE_LOOSE                                                                               \
    0.01f /* thousandths of a GPU, for each free device: the fuller machine first */

/* What a share that takes so many steps of a GPU does to its waste, by how much of that is free; and
 * the best of all GPUs with no more free than that.  Shares come in few sizes, searches often. */
struct gain {
    uint32_t epoch, model, take; /* what it was made for */
    float of[DEMAND_STEPS + 1], least[DEMAND_STEPS + 1];
};

/* One replica looking for a place on one kind of node. */
struct search {
    struct cluster *c;
    const struct demand *d;
    const struct request *r;
    struct kind *k;
    uint32_t milli;     /* the share of one GPU it takes here; 0 for whole ones */
    uint32_t gpu_milli; /* all it takes of GPUs */
    float price;        /* of that on this model */
    bool every;         /* looks at every cell */
    bool left_out;      /* cells of a long row were not looked at */
    struct gain *gains; /* remembered */
    const struct gain *gain;
    float open_cost; /* of a share on a whole GPU in the row that is looked at */
    float best_cost; /* infinite: nothing fits so far */
    uint32_t best_cell;
    uint8_t best_gpu; /* for a share: which of the cell's GPUs */
};

static const struct gain *find_gain(const struct search *s)
{
    const float *waste = s->d->waste[s->k->model];
    uint32_t take = (s->milli * DEMAND_STEPS + GPU_MILLI - 1) / GPU_MILLI;
    struct gain *g = &s->gains[(s->k->model * 37 + take) % GAINS]; /* round shares meet rarely */
    float least = INFINITE;
    if (g->epoch == s->d->epoch && g->model == s->k->model && g->take == take)
        return g;
    g->epoch = s->d->epoch;
    g->model = s->k->model;
    g->take = take;
    for (uint32_t f = 0; f <= DEMAND_STEPS; f++) {
        g->of[f] = waste[f > take ? f - take : 0] - waste[f];
        if (f + 1 >= take) /* a step holds parts a little larger, too */
            least = MIN(least, g->of[f]);
        g->least[f] = least;
    }
    return g;
}

/* The GPU where the share leaves the least waste.  In one link group the GPUs lie sorted, whole
 * ones first: one of those stands for all, and after the first that is too full there is none. */
static float share_cost(const struct search *s, const struct cell *ce, uint8_t *out_gpu)
{
    float opens = ce->whole ? s->d->block[ce->whole - 1] - s->d->block[ce->whole] : 0;
    float best = INFINITE;
    bool sorted = s->k->links == 1;
    for (uint8_t g = sorted && ce->whole ? (uint8_t)(ce->whole - 1) : 0; g < s->k->gpus; g++) {
        uint32_t free_milli = ce->room.gpu[g];
        if (free_milli < s->milli && sorted)
            break;
        if (free_milli < s->milli)
            continue;
        float cost = s->gain->of[free_milli * DEMAND_STEPS / GPU_MILLI];
        cost += free_milli == GPU_MILLI ? opens : 0;
        if (cost < best) {
            best = cost;
            *out_gpu = g;
        }
    }
    return best;
}

/* GPUs of the cell that its CPUs and memory cannot feed. */
static float stranded(const struct search *s, struct row_cell *rc)
{
    if (rc->strand_epoch != s->d->epoch) {
        rc->strand_epoch = s->d->epoch;
        rc->strand =
            demand_stranded(s->d, (float)rc->gpu_free, (float)rc->cpu_milli, (float)rc->mem_mib);
    }
    return rc->strand;
}

static float stranded_after(const struct search *s, const struct row_cell *rc)
{
    return demand_stranded(s->d, (float)(rc->gpu_free - s->gpu_milli),
                           (float)(rc->cpu_milli - s->r->cpu_milli),
                           (float)(rc->mem_mib - s->r->mem_mib));
}

/* The best that the share can do here: a part that is open already, or a whole GPU. */
static float least_share(const struct search *s, const struct row_cell *rc)
{
    float part =
        rc->part < s->milli ? INFINITE : s->gain->least[rc->part * DEMAND_STEPS / GPU_MILLI];
    return rc->best_part == GPU_MILLI ? MIN(part, s->open_cost) : part;
}

static void look(struct search *s, struct row_cell *rc, float row_cost)
{
    uint8_t gpu = 0;
    if (rc->mem_mib < s->r->mem_mib || rc->best_part < s->milli)
        return;
    /* At best the placement takes only GPUs that were stranded, on the GPU that suits it most. */
    float before = stranded(s, rc), taken = (float)s->gpu_milli;
    float least = s->milli ? least_share(s, rc) : 0;
    if (row_cost + least - MIN(before, taken) >= s->best_cost)
        return;
    float cost = row_cost + stranded_after(s, rc) - before;
    if (cost + least >= s->best_cost)
        return;
    const struct cell *ce = &s->c->cell[rc->cell];
    if (s->r->linked && s->k->links > 1 && !room_replicas(s->k, &ce->room, s->r, 1))
        return;
    if (request_has_devices(s->r)) {
        if (!room_devices(s->k, &ce->room, s->r, 1))
            return;
        cost += DEVICE_LOOSE * (float)ce->room.device[kind_device(s->k, s->r->device[0])];
    }
    if (s->milli)
        cost += share_cost(s, ce, &gpu);
    if (cost >= s->best_cost)
        return;
    s->best_cost = cost;
    s->best_cell = rc->cell;
    s->best_gpu = gpu;
}

/* The most that is stranded in a cell of the row. */
static float most_stranded(const struct search *s, struct row *row)
{
    if (row->strand_epoch != s->d->epoch) {
        row->strand_epoch = s->d->epoch;
        row->strand_most = 0;
        for (uint32_t i = 0; i < row->n; i++)
            row->strand_most = MAX(row->strand_most, stranded(s, &row->at[i]));
    }
    return row->strand_most;
}

/* The best that the share can do in a row; see row_of_part. */
static float least_in_row(const struct search *s, uint32_t index)
{
    static const uint8_t part_below[] = { 20, 50, DEMAND_STEPS };
    if (index <= ROW_WHOLE)
        return s->gain->least[part_below[index] - 1];
    return MIN(s->gain->least[DEMAND_STEPS - 1], s->open_cost);
}

/* Cells of a row lie in order of free CPUs: those with too few are not looked at. */
static uint32_t first_with_cpu(const struct search *s, const struct row *row)
{
    uint32_t lo = 0, hi = row->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (row->at[mid].cpu_milli < s->r->cpu_milli)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void look_row(struct search *s, uint32_t index)
{
    struct row *row = &s->k->row[index];
    float cost = s->price;
    if (s->r->gpus) {
        uint32_t whole = index - ROW_WHOLE;
        cost += s->d->block[whole - s->r->gpus] - s->d->block[whole];
        cost -= (float)s->r->gpus * s->d->waste[s->k->model][DEMAND_STEPS];
    }
    if (s->milli && index > ROW_WHOLE) {
        uint32_t whole = index - ROW_WHOLE;
        s->open_cost = s->gain->of[DEMAND_STEPS] + s->d->block[whole - 1] - s->d->block[whole];
    }
    /* No cell is looked at in vain: look() would find out the same of each. */
    float least = s->milli ? least_in_row(s, index) : 0, taken = (float)s->gpu_milli;
    if (cost + least - MIN(most_stranded(s, row), taken) >= s->best_cost)
        return;
    uint32_t from = first_with_cpu(s, row), n = row->n - from;
    uint32_t looks = s->every ? n : MIN(n, (uint32_t)ROW_LOOKS);
    s->left_out = s->left_out || looks < n;
    uint64_t step = looks == n ? ROW_LOOKS : n; /* in parts of ROW_LOOKS: a shift, no division */
    for (uint32_t i = 0; i < looks; i++)
        look(s, &row->at[from + (uint32_t)(i * step / ROW_LOOKS)], cost);
}

static void look_kind(struct search *s, uint32_t kind)
{
    const struct request *r = s->r;
    s->k = &s->c->kind[kind];
    if (!kind_takes(s->k, r))
        return;
    s->milli = request_shares_gpu(r) ? kind_share_milli(s->k, r) : 0;
    s->gpu_milli = s->milli + r->gpus * GPU_MILLI;
    s->price = (float)s->gpu_milli * (s->gpu_milli ? s->d->price[s->k->model] : 0);
    if (s->milli)
        s->gain = find_gain(s);
    uint32_t first = r->gpus ? ROW_WHOLE + r->gpus : s->milli ? row_of_part(s->milli) : 0;
    for (uint32_t left = s->k->rows_used >> first << first; left; left &= left - 1)
        look_row(s, (uint32_t)__builtin_ctz(left));
}

static struct slot make_slot(const struct search *s)
{
    const struct cell *ce = &s->c->cell[s->best_cell];
    const struct kind *k = &s->c->kind[ce->kind];
    uint32_t node = ce->node[ce->n - 1];
    const struct room *m = &s->c->node[node].offer;
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
                     struct gang_scratch *g, struct slot *out)
{
    struct search s = { .c = c, .d = d, .r = r, .best_cell = NONE, .best_cost = INFINITE };
    if (!g->gain)
        g->gain = xcalloc(GAINS, sizeof *g->gain);
    s.gains = g->gain;
    for (uint32_t k = 0; k < c->kinds; k++)
        look_kind(&s, k);
    s.every = s.best_cell == NONE && s.left_out;
    for (uint32_t k = 0; k < c->kinds && s.every; k++)
        look_kind(&s, k);
    if (s.best_cell == NONE)
        return false;
    *out = make_slot(&s);
    return true;
}

bool place_find(struct cluster *c, const struct demand *d, const struct request *r,
                struct gang_scratch *g, struct slot *out)
{
    return r->replicas == 1 ? find_one(c, d, r, g, out) : gang_find(c, r, g, out);
}

/* ---- never ---- */

static int why_no_kind(const struct cluster *c, const struct request *r, struct err *e)
{
    uint32_t gpus = 0, gpu_mem_mib = 0, cpu_milli = 0, mem_mib = 0; /* the most on one machine */
    uint32_t dev = NONE;
    for (uint32_t i = 0; i < c->kinds; i++) {
        const struct kind *k = &c->kind[i];
        if (!k->nodes || (r->models && !(r->models >> k->model & 1)) || !kind_in_zone(k, r))
            continue;
        gpus = MAX(gpus, (uint32_t)k->gpus);
        gpu_mem_mib = MAX(gpu_mem_mib, k->gpu_mem_mib);
        cpu_milli = MAX(cpu_milli, k->cpu_milli);
        mem_mib = MAX(mem_mib, k->mem_mib);
    }
    const char *of = r->models ? " of the models asked for" : "", *about = "resources";
    if (c->nodes == 0) {
        err_set(e, ERR_INVALID, "there are no machines yet");
    } else if (r->gpus > gpus) {
        err_set(e, ERR_INVALID, "gpus: %u on one machine; the largest%s has %u", r->gpus, of, gpus);
        about = "resources.gpus";
    } else if (r->cpu_milli > cpu_milli) {
        err_set(e, ERR_INVALID, "cpus: %.6g on one machine; the largest%s has %.6g",
                r->cpu_milli / 1e3, of, cpu_milli / 1e3);
        about = "resources.cpus";
    } else if (r->mem_mib > mem_mib) {
        err_set(e, ERR_INVALID, "mem: %u MiB on one machine; the largest%s has %u MiB", r->mem_mib,
                of, mem_mib);
        about = "resources.mem";
    } else if (r->gpu_mem_mib > gpu_mem_mib) {
        err_set(e, ERR_INVALID, "gpu_mem: %u MiB on one GPU; the largest%s has %u MiB",
                r->gpu_mem_mib, of, gpu_mem_mib);
        about = "resources.gpu_mem";
    } else if ((dev = devices_short(c, r, false)) != NONE) {
        err_set(e, ERR_INVALID, "devices: %u of %s on one machine; the largest has %u",
                r->device_n[dev], device_name(c, r, dev), devices_most(c, r, dev, false));
        about = "resources.devices";
    } else {
        err_set(e, ERR_INVALID, "no single machine has the GPUs, CPUs%s that a replica asks for",
                request_has_devices(r) ? ", memory and devices" : " and memory");
    }
    err_about(e, "%s", about);
    return err_hint(e, "ask for less on each replica, or for more replicas");
}

int place_check_possible(const struct cluster *c, const struct request *r, struct err *e)
{
    bool any = false, one = false;
    struct request single = *r;
    single.replicas = 1;
    for (uint32_t i = 0; i < c->kinds; i++) {
        struct room idle = kind_room(&c->kind[i]);
        if (!c->kind[i].nodes || !kind_in_zone(&c->kind[i], r))
            continue;
        any = any || kind_allows(&c->kind[i], r);
        one = one || room_replicas(&c->kind[i], &idle, &single, 1) > 0;
    }
    if (!any)
        return why_no_kind(c, r, e);
    if (!one) {
        err_set(e, ERR_INVALID, "gpus: no machine has %u linked GPUs", r->gpus);
        err_about(e, "placement.linked");
        return err_hint(e, "drop 'linked', or ask for fewer GPUs on each replica");
    }
    if (gang_fits_idle(c, r))
        return 0;
    const char *where = r->scope == SCOPE_NODE   ? " on one machine"
                      : r->scope == SCOPE_SWITCH ? " behind one switch"
                                                 : "";
    err_set(
        e, ERR_INVALID,
        "replicas: %u of %u GPUs, %.3g CPUs%s each do not fit%s, even with nothing else running",
        r->replicas, r->gpus, r->cpu_milli / 1e3,
        request_has_devices(r) ? " and their devices" : "", where);
    err_about(e, "replicas");
    return err_hint(e, "ask for fewer replicas, or for a wider placement");
}
