#include "simulate/stage.h"

/* ---- consolidated placement ---- */

/* The lowest node with exactly `whole` free GPUs and room for the rest of the request, after
 * node `after`. */
static uint32_t node_with(const struct stage *s, uint32_t whole, const struct request *q,
                          uint32_t after)
{
    uint32_t best = NONE;
    for (uint32_t k = 0; k < s->c.kinds; k++) {
        const struct kind *kind = &s->c.kind[k];
        const struct row *row = &kind->row[ROW_WHOLE + whole];
        if (whole > kind->gpus || !kind_allows(kind, q))
            continue;
        for (uint32_t i = 0; i < row->n; i++) {
            const struct cell *ce = &s->c.cell[row->at[i].cell];
            if (!room_replicas(kind, &ce->room, q, 1))
                continue;
            uint32_t j = ce->n; /* the lowest number stands last */
            while (j && after != NONE && ce->node[j - 1] <= after)
                j--;
            if (j && (best == NONE || ce->node[j - 1] < best))
                best = ce->node[j - 1];
        }
    }
    return best;
}

static struct slot whole_slot(const struct stage *s, uint32_t node, const struct request *q)
{
    const struct node *n = &s->c.node[node];
    return (struct slot){ .node = node,
                          .gpu_mask = room_pick(&s->c.kind[n->kind], &n->offer, q),
                          .milli = GPU_MILLI };
}

static int by_node(const void *pa, const void *pb)
{
    const struct slot *a = pa, *b = pb;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* A job of more GPUs than a node has: whole nodes, the rest on the one with the most free. */
static uint32_t consolidate_gang(const struct stage *s, const struct trace_job *j, struct slot *out)
{
    uint32_t per_node = s->c.kind[0].gpus, nodes = j->gpus / per_node, rest = j->gpus % per_node,
             n = 0;
    struct request q = { .replicas = 1, .gpus = (uint16_t)per_node };
    uint32_t last = NONE;
    for (; n < nodes; n++) {
        last = node_with(s, per_node, &q, last);
        if (last == NONE)
            return 0;
        out[n] = whole_slot(s, last, &q);
    }
    q.gpus = (uint16_t)rest;
    for (uint32_t whole = per_node; rest && whole >= rest; whole--) {
        uint32_t node = node_with(s, whole, &q, whole == per_node ? last : NONE);
        if (node == NONE)
            continue;
        out[n++] = whole_slot(s, node, &q);
        rest = 0;
    }
    qsort(out, n, sizeof *out, by_node);
    return rest ? 0 : n;
}

static uint32_t consolidate_one(const struct stage *s, const struct request *q, struct slot *out)
{
    for (uint32_t whole = q->gpus; whole <= GPUS_PER_NODE_MAX; whole++) {
        uint32_t node = node_with(s, whole, q, NONE);
        if (node == NONE)
            continue;
        *out = whole_slot(s, node, q);
        return 1;
    }
    return 0;
}

/* Whole nodes are slots of another size than the replicas: right only where GPUs are all it asks
 * for. */
static bool may_consolidate_gang(const struct stage *s, const struct request *q)
{
    return s->consolidate && s->c.kinds == 1 && q->replicas > 1 && q->layout == LAYOUT_FEWEST &&
           q->gpus && !q->linked && q->scope == SCOPE_ANY && !q->cpu_milli && !q->mem_mib;
}

/* How many slots the job got; 0: no place. */
static uint32_t find(struct stage *s, uint32_t i, struct slot *out)
{
    const struct request *q = &s->request[i];
    if (may_consolidate_gang(s, q))
        return consolidate_gang(s, stage_job(s, i), out);
    if (q->replicas > 1)
        return gang_find(&s->c, q, &s->scratch, out) ? q->replicas : 0;
    if (s->consolidate && q->gpus)
        return consolidate_one(s, q, out);
    return packer_find(&s->packer, &s->c, q, out) ? 1 : 0;
}

/* ---- the life of a stage ---- */

int stage_open(struct stage *s, const struct part *p, const char *packing, struct err *e)
{
    s->p = p;
    cluster_init(&s->c);
    s->consolidate = strcmp(packing, STAGE_CONSOLIDATE) == 0;
    if (!packer_open(s->consolidate ? "bestfit" : packing, &s->packer))
        return err_set(e, ERR_INTERNAL, "there is no packer '%s'", packing);
    s->request = xcalloc(p->jobs + 1, sizeof *s->request);
    s->held = xcalloc(p->jobs + 1, sizeof *s->held);
    s->found = xcalloc(REPLICAS_MAX, sizeof *s->found);
    for (uint32_t i = 0; i < p->nodes; i++)
        if (cluster_add_node(&s->c, &p->t->node[p->node[i]], e) < 0)
            return -1;
    return 0;
}

void stage_close(struct stage *s)
{
    for (uint32_t i = 0; s->held && i < s->p->jobs; i++)
        free(s->held[i].slots);
    free(s->held);
    free(s->request);
    free(s->found);
    gang_scratch_free(&s->scratch);
    packer_close(&s->packer);
    cluster_free(&s->c);
}

int stage_admit(struct stage *s, uint32_t i, struct err *e)
{
    const struct trace_job *j = stage_job(s, i);
    s->request[i] = j->request;
    if (cluster_parse_models(&s->c, str_of(j->models), &s->request[i].models, e) < 0 ||
        place_check_possible(&s->c, &s->request[i], e) < 0)
        return err_wrap(e, "%s, job %llu of the trace", s->p->t->name, (unsigned long long)j->id);
    packer_learn(&s->packer, &s->c, &s->request[i], j->models);
    return 0;
}

bool stage_take(struct stage *s, uint32_t i)
{
    uint32_t n = find(s, i, s->found);
    if (n == 0)
        return false;
    cluster_take(&s->c, &s->request[i], s->found, n);
    s->held[i] = (struct held){ .slots = xcalloc(n, sizeof *s->found), .n = n };
    memcpy(s->held[i].slots, s->found, n * sizeof *s->found);
    return true;
}

void stage_give(struct stage *s, uint32_t i)
{
    cluster_give(&s->c, &s->request[i], s->held[i].slots, s->held[i].n);
    cluster_forget_freed(&s->c);
    free(s->held[i].slots);
    s->held[i] = (struct held){ 0 };
}

double stage_gpus(const struct stage *s, uint32_t i)
{
    return slots_gpus(s->held[i].slots, s->held[i].n);
}

uint64_t stage_total_milli(const struct stage *s)
{
    return s->c.total.of[RES_GPU];
}

uint64_t stage_wants_milli(const struct stage *s, uint32_t i)
{
    const struct request *q = &s->request[i];
    uint64_t each = q->gpus ? (uint64_t)q->gpus * GPU_MILLI : cluster_most_share_milli(&s->c, q);
    return MIN(each * q->replicas, stage_total_milli(s));
}
