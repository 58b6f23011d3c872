#include "simulate/packer.h"

/* ---- cells, for the published packers ---- */

static bool cell_fits(const struct kind *k, const struct cell *ce, const struct request *r)
{
    if (ce->room.cpu_milli < r->cpu_milli || ce->room.mem_mib < r->mem_mib)
        return false;
    if (request_shares_gpu(r) && ce->whole == 0)
        return ce->best_part >= kind_share_milli(k, r);
    return !r->linked || k->links == 1 || room_replicas(k, &ce->room, r, 1);
}

static uint32_t first_row(const struct kind *k, const struct request *r)
{
    if (request_shares_gpu(r))
        return row_of_part(kind_share_milli(k, r));
    return r->gpus ? ROW_WHOLE + r->gpus : 0;
}

static uint32_t first_node(const struct cell *ce)
{
    return ce->node[ce->n - 1];
}

struct best {
    uint32_t cell, node; /* cell NONE: none yet */
    int score;
};

struct search {
    struct cluster *c;
    const struct request *r;
    cell_score score;
    void *self;
    struct best best;
};

static bool is_better(const struct best *a, const struct best *b)
{
    return b->cell == NONE || a->score > b->score || (a->score == b->score && a->node < b->node);
}

static void search_row(struct search *s, const struct kind *k, const struct row *row)
{
    for (uint32_t i = 0; i < row->n; i++) {
        const struct cell *ce = &s->c->cell[row->at[i].cell];
        if (!cell_fits(k, ce, s->r))
            continue;
        struct best one = { row->at[i].cell, first_node(ce), 0 };
        one.score = s->score(s->self, k, one.cell, ce, s->r);
        if (is_better(&one, &s->best))
            s->best = one;
    }
}

uint32_t packer_best_cell(struct cluster *c, const struct request *r, cell_score score, void *self)
{
    struct search s = { c, r, score, self, { .cell = NONE } };
    for (uint32_t i = 0; i < c->kinds; i++) {
        const struct kind *k = &c->kind[i];
        if (!kind_allows(k, r))
            continue;
        for (uint32_t w = first_row(k, r); w < ROWS; w++)
            search_row(&s, k, &k->row[w]);
    }
    return s.best.cell;
}

/* ---- best fit: what is left of CPUs and GPUs, half each, in percent of a large node ---- */

#define LARGE_CPU_MILLI 128000.0
#define LARGE_GPU_MILLI 8000.0

static int bestfit_score(void *self, const struct kind *k, uint32_t cell, const struct cell *ce,
                         const struct request *r)
{
    (void)self;
    (void)cell;
    uint32_t take = r->gpus ? r->gpus * GPU_MILLI : kind_share_milli(k, r);
    double cpu = (double)(ce->room.cpu_milli - r->cpu_milli) / LARGE_CPU_MILLI;
    double gpu = (double)(ce->gpu_free - take) / LARGE_GPU_MILLI;
    return (int)((1 - (0.5 * cpu + 0.5 * gpu)) * 100);
}

static bool bestfit_find(void *self, struct cluster *c, const struct request *r, struct slot *out)
{
    uint32_t cell = packer_best_cell(c, r, bestfit_score, self);
    if (cell == NONE)
        return false;
    uint32_t node = first_node(&c->cell[cell]);
    const struct kind *k = &c->kind[c->cell[cell].kind];
    uint16_t mask = room_pick(k, &c->node[node].offer, r);
    uint32_t milli = r->gpus ? GPU_MILLI : kind_share_milli(k, r);
    *out = (struct slot){ .node = node, .gpu_mask = mask, .milli = mask ? (uint16_t)milli : 0 };
    return true;
}

static void *nothing(void)
{
    return NULL;
}

static void learn_nothing(void *self, const struct cluster *c, const struct request *r,
                          const char *spec)
{
    (void)self;
    (void)c;
    (void)r;
    (void)spec;
}

static void do_nothing(void *self)
{
    (void)self;
}

static const struct packer_ops packer_bestfit = {
    .name = "bestfit",
    .open = nothing,
    .learn = learn_nothing,
    .seal = do_nothing,
    .find = bestfit_find,
    .close = do_nothing,
};

/* ---- the product's own ---- */

struct own {
    struct demand demand;
    struct gang_scratch scratch;
};

static void *own_open(void)
{
    struct own *o = xcalloc(1, sizeof *o);
    demand_init(&o->demand);
    return o;
}

static void own_learn(void *self, const struct cluster *c, const struct request *r,
                      const char *spec)
{
    (void)spec;
    demand_learn(&((struct own *)self)->demand, c, r);
}

static bool own_find(void *self, struct cluster *c, const struct request *r, struct slot *out)
{
    struct own *o = self;
    return place_find(c, &o->demand, r, &o->scratch, out);
}

static void own_close(void *self)
{
    struct own *o = self;
    demand_free(&o->demand);
    gang_scratch_free(&o->scratch);
    free(o);
}

static const struct packer_ops packer_own = {
    .name = "nightshift",
    .open = own_open,
    .learn = own_learn,
    .seal = do_nothing,
    .find = own_find,
    .close = own_close,
};

/* ---- the interface ---- */

bool packer_open(const char *name, struct packer *out)
{
    static const struct packer_ops *const all[] = { &packer_own, &packer_bestfit, &packer_fgd };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (strcmp(all[i]->name, name) == 0) {
            *out = (struct packer){ .ops = all[i], .self = all[i]->open() };
            return true;
        }
    return false;
}

void packer_close(struct packer *p)
{
    if (p->ops)
        p->ops->close(p->self);
    *p = (struct packer){ 0 };
}

void packer_learn(struct packer *p, const struct cluster *c, const struct request *r,
                  const char *spec)
{
    if (!p->sealed)
        p->ops->learn(p->self, c, r, spec);
}

void packer_seal(struct packer *p)
{
    p->ops->seal(p->self);
    p->sealed = true;
}

bool packer_find(struct packer *p, struct cluster *c, const struct request *r, struct slot *out)
{
    return p->ops->find(p->self, c, r, out);
}
