#include "core/gang.h"

#include "core/window.h"

/* Nodes that are alike: each can take k replicas. */
struct candidate {
    uint32_t k;
    uint32_t model;
    uint32_t slack;       /* free GPU parts left over, thousandths: smaller is tighter */
    const uint32_t *node; /* taken from the end */
    uint32_t n;
};

struct fill {
    const struct cluster *c;
    const struct request *r;
    struct candidate *cand;
    uint32_t n;
    uint32_t nodes_max; /* LAYOUT_FEWEST; NONE = any number */
    bool kept;          /* also takes the room that is kept on the nodes: it is for this job */
    bool one_node;      /* all replicas on one node */
    struct slot *out;
};

static uint32_t per_node_max(const struct request *r)
{
    return r->layout == LAYOUT_SPREAD ? 1 : r->replicas;
}

/* The least number of nodes that idle machines (NONE: all, else those behind a switch) would need;
 * NONE when it does not matter. */
static uint32_t fewest_nodes(const struct cluster *c, const struct request *r, uint32_t net_switch)
{
    if (r->layout != LAYOUT_FEWEST)
        return NONE;
    const struct net_switch *sw = net_switch == NONE ? NULL : &c->net_switch[net_switch];
    uint32_t left = r->replicas, nodes = 0, below = NONE;
    while (left) {
        uint32_t k = 0; /* the next smaller capacity of an idle node, and how many have it */
        uint64_t n = 0;
        for (uint32_t i = 0; i < (sw ? sw->n : c->kinds); i++) {
            const struct kind *kind = &c->kind[sw ? c->node[sw->node[i]].kind : i];
            struct room idle = kind_room(kind);
            uint32_t fits = room_replicas(kind, &idle, r, r->replicas);
            if (!kind->nodes || fits >= below || fits < k || !window_ever_takes(c, kind, r))
                continue;
            n = (fits > k ? 0 : n) + (sw ? 1 : kind->nodes);
            k = fits;
        }
        if (k == 0)
            return 0;
        uint32_t take = (uint32_t)MIN(n, (uint64_t)(left + k - 1) / k);
        nodes += take;
        left -= MIN(left, take * k);
        below = k;
    }
    return nodes;
}

static void add_candidate(struct fill *f, const struct kind *k, const struct room *m,
                          const uint32_t *node, uint32_t n)
{
    uint32_t fits = room_replicas(k, m, f->r, per_node_max(f->r)), free_milli = 0;
    if (fits == 0 || (f->one_node && fits < f->r->replicas))
        return;
    for (int g = 0; g < k->gpus; g++)
        free_milli += m->gpu[g];
    f->cand[f->n++] = (struct candidate){
        .k = fits,
        .model = f->r->gpus || request_shares_gpu(f->r) ? k->model : 0,
        .slack = free_milli,
        .node = node,
        .n = n,
    };
}

/* Many replicas first, then the least free, then the node enrolled first. */
static int by_size(const void *pa, const void *pb)
{
    const struct candidate *a = pa, *b = pb;
    if (a->k != b->k)
        return a->k > b->k ? -1 : 1;
    if (a->slack != b->slack)
        return a->slack < b->slack ? -1 : 1;
    uint32_t x = a->node[a->n - 1], y = b->node[b->n - 1];
    return x < y ? -1 : x > y;
}

static int by_node(const void *pa, const void *pb)
{
    const struct slot *a = pa, *b = pb;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* Puts `count` replicas on the node; equal picks follow one another in its room. */
static void put(const struct fill *f, uint32_t node, uint32_t count, struct slot *out)
{
    const struct node *nd = &f->c->node[node];
    const struct kind *k = &f->c->kind[nd->kind];
    uint32_t milli = f->r->gpus ? GPU_MILLI : kind_share_milli(k, f->r);
    struct room m = f->kept ? nd->room : nd->offer;
    for (uint32_t i = 0; i < count; i++) {
        uint16_t mask = room_pick(k, &m, f->r);
        room_take(k, &m, f->r, mask, milli);
        out[i] =
            (struct slot){ .node = node, .gpu_mask = mask, .milli = mask ? (uint16_t)milli : 0 };
    }
}

/* From candidate `i` on, which holds the rest of the gang, the tightest that does. */
static const struct candidate *tightest(const struct fill *f, uint32_t i, uint32_t rest,
                                        uint32_t model)
{
    const struct candidate *tight = &f->cand[i];
    for (; i < f->n && f->cand[i].k >= rest; i++)
        if ((model == NONE || f->cand[i].model == model) && f->cand[i].k < tight->k)
            tight = &f->cand[i];
    return tight;
}

/* Candidates are sorted; takes only those of `model` (NONE: all). */
static bool fill_model(const struct fill *f, uint32_t model)
{
    uint32_t left = f->r->replicas, used = 0;
    struct slot *out = f->out;
    for (uint32_t i = 0; i < f->n && left; i++) {
        const struct candidate *ca = &f->cand[i];
        if (model != NONE && ca->model != model)
            continue;
        uint32_t full = MIN(ca->n, (left - 1) / ca->k); /* nodes that leave a rest to others */
        for (uint32_t j = 0; j < full; j++, out += ca->k)
            put(f, ca->node[ca->n - 1 - j], ca->k, out);
        left -= full * ca->k;
        used += full;
        if (full < ca->n) { /* one node more holds the rest */
            const struct candidate *last = tightest(f, i, left, model);
            put(f, last->node[last->n - 1 - (last == ca ? full : 0)], left, out);
            left = 0;
            used++;
        }
    }
    return left == 0 && used <= f->nodes_max;
}

/* One model if any has room for all, the one with the roomiest node first; else a mixture. */
static bool fill_any(const struct fill *f)
{
    uint64_t tried = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        uint64_t bit = UINT64_C(1) << f->cand[i].model;
        if (!(tried & bit) && fill_model(f, f->cand[i].model))
            return true;
        tried |= bit;
    }
    return fill_model(f, NONE);
}

static bool fill_best(const struct fill *f)
{
    if (f->n == 0)
        return false;
    qsort(f->cand, f->n, sizeof *f->cand, by_size);
    if (!fill_any(f))
        return false;
    qsort(f->out, f->r->replicas, sizeof *f->out, by_node);
    return true;
}

static bool find_on(struct fill *f, const uint32_t *node, uint32_t n)
{
    f->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct node *nd = &f->c->node[node[i]];
        const struct room *m = f->kept ? &nd->room : &nd->offer;
        if (node_takes(f->c, nd, f->r))
            add_candidate(f, &f->c->kind[nd->kind], m, &node[i], 1);
    }
    return fill_best(f);
}

static struct fill fill_new(const struct cluster *c, const struct request *r,
                            struct gang_scratch *g, uint32_t candidates, struct slot *out)
{
    if (g->cap < candidates) {
        g->cap = candidates + candidates / 2;
        g->cand = xrealloc(g->cand, g->cap, sizeof *g->cand);
    }
    return (struct fill){ .c = c,
                          .r = r,
                          .cand = g->cand,
                          .nodes_max = NONE,
                          .out = out,
                          .one_node = r->scope == SCOPE_NODE };
}

void gang_scratch_free(struct gang_scratch *g)
{
    free(g->cand);
    free(g->gain);
}

bool gang_find_on(const struct cluster *c, const struct request *r, const uint32_t *node,
                  uint32_t n, struct gang_scratch *g, struct slot *out)
{
    struct fill f = fill_new(c, r, g, n, out);
    f.kept = true; /* LAYOUT_FEWEST was seen to when the nodes were chosen */
    return find_on(&f, node, n);
}

/* The switch with the fewest free GPUs that holds it; the next when CPU or memory is short. */
static bool find_in_switch(struct fill *f)
{
    const struct cluster *c = f->c;
    uint64_t need = (uint64_t)f->r->replicas * f->r->gpus, floor = 0;
    for (;;) {
        uint32_t best = NONE;
        for (uint32_t s = 0; s < c->switches.n; s++) {
            const struct net_switch *sw = &c->net_switch[s];
            uint64_t rank = (uint64_t)sw->whole << 32 | s;
            if (sw->whole >= need && rank >= floor &&
                (best == NONE || rank < ((uint64_t)c->net_switch[best].whole << 32 | best)))
                best = s;
        }
        if (best == NONE)
            return false;
        f->nodes_max = fewest_nodes(c, f->r, best);
        if (find_on(f, c->net_switch[best].node, c->net_switch[best].n))
            return true;
        floor = ((uint64_t)c->net_switch[best].whole << 32 | best) + 1;
    }
}

/* Whole GPUs free on all machines together: the cheap way to say no. */
static bool too_few_gpus(const struct cluster *c, const struct request *r)
{
    uint64_t whole = 0, need = (uint64_t)r->replicas * r->gpus;
    for (uint32_t k = 0; k < c->kinds && whole < need; k++)
        if (kind_takes(&c->kind[k], r))
            whole += c->kind[k].whole;
    return whole < need;
}

bool gang_find(const struct cluster *c, const struct request *r, struct gang_scratch *g,
               struct slot *out)
{
    uint32_t most = c->cells_live;
    if (too_few_gpus(c, r))
        return false;
    if (r->scope == SCOPE_SWITCH)
        for (uint32_t s = 0; s < c->switches.n; s++)
            most = MAX(most, c->net_switch[s].n);
    struct fill f = fill_new(c, r, g, most, out);
    if (r->scope == SCOPE_SWITCH && find_in_switch(&f))
        return true;
    f.n = 0;
    f.one_node = r->scope != SCOPE_ANY; /* a machine without a switch is as close as one with it */
    f.nodes_max = f.one_node ? 1 : fewest_nodes(c, r, NONE);
    for (uint32_t k = 0; k < c->kinds; k++) {
        const struct kind *kind = &c->kind[k];
        if (!kind_takes(kind, r))
            continue;
        for (uint32_t w = r->gpus ? ROW_WHOLE + r->gpus : 0; w < ROWS; w++)
            for (uint32_t i = 0; i < kind->row[w].n; i++) {
                const struct cell *ce = &c->cell[kind->row[w].at[i].cell];
                add_candidate(&f, kind, &ce->room, ce->node, ce->n);
            }
    }
    return fill_best(&f);
}

bool gang_fits_idle(const struct cluster *c, const struct request *r)
{
    uint64_t replicas = 0, in_switch = 0;
    for (uint32_t i = 0; i < c->kinds; i++) {
        struct room idle = kind_room(&c->kind[i]);
        if (!c->kind[i].nodes || !kind_in_zone(&c->kind[i], r))
            continue;
        uint32_t k = room_replicas(&c->kind[i], &idle, r, per_node_max(r));
        if (k >= r->replicas)
            return true;
        if (r->scope != SCOPE_NODE)
            replicas += (uint64_t)k * c->kind[i].nodes;
    }
    if (r->scope != SCOPE_SWITCH)
        return replicas >= r->replicas;
    for (uint32_t s = 0; s < c->switches.n; s++, in_switch = 0) {
        for (uint32_t i = 0; i < c->net_switch[s].n; i++) {
            const struct kind *k = &c->kind[c->node[c->net_switch[s].node[i]].kind];
            struct room idle = kind_room(k);
            if (kind_in_zone(k, r))
                in_switch += room_replicas(k, &idle, r, per_node_max(r));
        }
        if (in_switch >= r->replicas)
            return true;
    }
    return false;
}
