#include "core/place.h"

struct choice {
    uint64_t score; /* smaller is better */
    uint32_t cell;
};

static uint32_t first_node(const struct cell *ce)
{
    return ce->node[ce->n - 1];
}

static void consider(const struct cluster *c, uint32_t cell, uint64_t score, struct choice *best)
{
    if (best->cell == NONE || score < best->score ||
        (score == best->score && first_node(&c->cell[cell]) < first_node(&c->cell[best->cell])))
        *best = (struct choice){ score, cell };
}

/* Least CPU and memory left over, as parts of 2^20 of what the machine has. */
static uint64_t slack(const struct kind *k, const struct cell *ce, const struct request *r)
{
    uint64_t cpu = ((uint64_t)(ce->room.cpu_milli - r->cpu_milli) << 20) / k->cpu_milli;
    uint64_t mem = ((uint64_t)(ce->room.mem_mib - r->mem_mib) << 20) / k->mem_mib;
    return cpu + mem;
}

static bool scan_row(const struct cluster *c, const struct kind *k, uint32_t whole,
                     const struct request *r, struct choice *best)
{
    const struct row *row = &k->row[whole];
    bool share = request_shares_gpu(r), found = false;
    uint32_t milli = share ? kind_share_milli(k, r) : 0;
    for (uint32_t i = 0; i < row->n; i++) {
        const struct cell *ce = &c->cell[row->cell[i]];
        if (ce->room.cpu_milli < r->cpu_milli || ce->room.mem_mib < r->mem_mib)
            continue;
        if (share && whole == 0 && ce->best_part < milli)
            continue;
        if (r->linked && k->links > 1 && room_replicas(k, &ce->room, r, 1) == 0)
            continue;
        consider(c, row->cell[i], slack(k, ce, r), best);
        found = true;
    }
    return found;
}

static bool find_one(const struct cluster *c, const struct request *r, struct slot *out)
{
    struct choice best = { 0, NONE };
    for (uint32_t k = 0; k < c->kinds; k++) {
        const struct kind *kind = &c->kind[k];
        if (!kind_allows(kind, r))
            continue;
        for (uint32_t w = r->gpus; w <= kind->gpus; w++)
            if (kind->row[w].n && scan_row(c, kind, w, r, &best))
                break;
    }
    if (best.cell == NONE)
        return false;
    const struct cell *ce = &c->cell[best.cell];
    const struct kind *k = &c->kind[ce->kind];
    uint32_t node = first_node(ce);
    out->node = node;
    out->gpu_mask = room_pick(k, &c->node[node].room, r);
    out->milli = (uint16_t)(out->gpu_mask == 0 ? 0 : r->gpus ? GPU_MILLI : kind_share_milli(k, r));
    return true;
}

bool place_find(const struct cluster *c, const struct request *r, struct gang_scratch *g,
                struct slot *out)
{
    return r->replicas == 1 ? find_one(c, r, out) : gang_find(c, r, g, out);
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
