/* The reference policies: one queue in a fixed order that stops at the first job without a
 * place. */
#include "base/heap.h"
#include "simulate/packer.h"
#include "simulate/replay.h"
#include "sys/progress.h"

struct reference {
    struct cluster c;
    struct packer packer;
    struct gang_scratch scratch;
    const struct part *p;
    struct outcome *out;
    struct replay_meter *meter;
    bool shortest_first;
    bool consolidate; /* the tightest node; gangs on whole nodes, their rest on the emptiest */
    struct heap waiting, ends;
    uint32_t *waiting_pos, *ends_pos;
    struct request *request; /* with models resolved */
    struct held {
        struct slot *slots;
        uint32_t n;
    } * held;
};

static void reference_free(struct reference *r)
{
    for (uint32_t i = 0; r->held && i < r->p->jobs; i++)
        free(r->held[i].slots);
    free(r->held);
    free(r->request);
    free(r->waiting_pos);
    free(r->ends_pos);
    heap_free(&r->waiting);
    heap_free(&r->ends);
    gang_scratch_free(&r->scratch);
    packer_close(&r->packer);
    cluster_free(&r->c);
}

static const struct trace_job *job_of(const struct reference *r, uint32_t i)
{
    return &r->p->t->job[r->p->job[i]];
}

/* Jobs of a part lie in order of submit time and id, so their index is the order of arrival. */
static bool waits_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct reference *r = ctx;
    int64_t x = job_of(r, a)->duration_ms, y = job_of(r, b)->duration_ms;
    return r->shortest_first && x != y ? x < y : a < b;
}

static bool ends_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct reference *r = ctx;
    int64_t x = r->out->end_ms[r->p->job[a]], y = r->out->end_ms[r->p->job[b]];
    return x != y ? x < y : a < b;
}

/* ---- consolidated placement ---- */

/* The lowest node with exactly `whole` free GPUs and room for the rest of the request, after
 * node `after`. */
static uint32_t node_with(const struct reference *r, uint32_t whole, const struct request *q,
                          uint32_t after)
{
    uint32_t best = NONE;
    for (uint32_t k = 0; k < r->c.kinds; k++) {
        const struct kind *kind = &r->c.kind[k];
        const struct row *row = &kind->row[ROW_WHOLE + whole];
        if (whole > kind->gpus || !kind_allows(kind, q))
            continue;
        for (uint32_t i = 0; i < row->n; i++) {
            const struct cell *ce = &r->c.cell[row->at[i].cell];
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

static struct slot whole_slot(const struct reference *r, uint32_t node, const struct request *q)
{
    const struct node *n = &r->c.node[node];
    return (struct slot){ .node = node,
                          .gpu_mask = room_pick(&r->c.kind[n->kind], &n->offer, q),
                          .milli = GPU_MILLI };
}

static int by_node(const void *pa, const void *pb)
{
    const struct slot *a = pa, *b = pb;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* A job of more GPUs than a node has: whole nodes, the rest on the one with the most free. */
static uint32_t consolidate_gang(const struct reference *r, const struct trace_job *j,
                                 struct slot *out)
{
    uint32_t per_node = r->c.kind[0].gpus, nodes = j->gpus / per_node, rest = j->gpus % per_node,
             n = 0;
    struct request q = { .replicas = 1, .gpus = (uint16_t)per_node };
    uint32_t last = NONE;
    for (; n < nodes; n++) {
        last = node_with(r, per_node, &q, last);
        if (last == NONE)
            return 0;
        out[n] = whole_slot(r, last, &q);
    }
    q.gpus = (uint16_t)rest;
    for (uint32_t whole = per_node; rest && whole >= rest; whole--) {
        uint32_t node = node_with(r, whole, &q, whole == per_node ? last : NONE);
        if (node == NONE)
            continue;
        out[n++] = whole_slot(r, node, &q);
        rest = 0;
    }
    qsort(out, n, sizeof *out, by_node);
    return rest ? 0 : n;
}

static uint32_t consolidate_one(const struct reference *r, const struct request *q,
                                struct slot *out)
{
    for (uint32_t whole = q->gpus; whole <= GPUS_PER_NODE_MAX; whole++) {
        uint32_t node = node_with(r, whole, q, NONE);
        if (node == NONE)
            continue;
        *out = whole_slot(r, node, q);
        return 1;
    }
    return 0;
}

/* Whole nodes are slots of another size than the replicas: right only where GPUs are all it asks
 * for. */
static bool may_consolidate_gang(const struct reference *r, const struct request *q)
{
    return r->consolidate && r->c.kinds == 1 && q->replicas > 1 && q->layout == LAYOUT_FEWEST &&
           q->gpus && !q->linked && q->scope == SCOPE_ANY && !q->cpu_milli && !q->mem_mib;
}

/* How many slots the job got; 0: no place. */
static uint32_t find(struct reference *r, uint32_t i, struct slot *out)
{
    const struct request *q = &r->request[i];
    if (may_consolidate_gang(r, q))
        return consolidate_gang(r, job_of(r, i), out);
    if (q->replicas > 1)
        return gang_find(&r->c, q, &r->scratch, out) ? q->replicas : 0;
    if (r->consolidate && q->gpus)
        return consolidate_one(r, q, out);
    return packer_find(&r->packer, &r->c, q, out) ? 1 : 0;
}

/* ---- the loop ---- */

static void start(struct reference *r, uint32_t i, const struct slot *slots, uint32_t n,
                  int64_t now_ms)
{
    uint32_t job = r->p->job[i];
    cluster_take(&r->c, &r->request[i], slots, n);
    r->held[i] = (struct held){ .slots = xcalloc(n, sizeof *slots), .n = n };
    memcpy(r->held[i].slots, slots, n * sizeof *slots);
    r->out->start_ms[job] = now_ms;
    r->out->gpus[job] = slots_gpus(slots, n);
    r->out->end_ms[job] = now_ms + job_of(r, i)->duration_ms;
    heap_push(&r->ends, i);
}

static void finish(struct reference *r, uint32_t i)
{
    uint32_t job = r->p->job[i];
    outcome_hold(r->p->t, r->out, job, r->out->start_ms[job], r->out->end_ms[job]);
    cluster_give(&r->c, &r->request[i], r->held[i].slots, r->held[i].n);
    cluster_forget_freed(&r->c);
    free(r->held[i].slots);
    r->held[i] = (struct held){ 0 };
    progress_set(r->meter->bar, ++r->meter->done);
}

static int arrive(struct reference *r, uint32_t i, struct err *e)
{
    const struct trace_job *j = job_of(r, i);
    r->request[i] = j->request;
    if (cluster_parse_models(&r->c, str_of(j->models), &r->request[i].models, e) < 0 ||
        place_check_possible(&r->c, &r->request[i], e) < 0)
        return err_wrap(e, "%s, job %llu of the trace", r->p->t->name, (unsigned long long)j->id);
    packer_learn(&r->packer, &r->c, &r->request[i], j->models);
    heap_push(&r->waiting, i);
    return 0;
}

static int step(struct reference *r, int64_t now_ms, uint32_t *next, struct slot *slots,
                struct err *e)
{
    while (r->ends.n && r->out->end_ms[r->p->job[heap_top(&r->ends)]] <= now_ms)
        finish(r, heap_pop(&r->ends));
    for (; *next < r->p->jobs && job_of(r, *next)->submit_ms <= now_ms; ++*next)
        if (arrive(r, *next, e) < 0)
            return -1;
    while (r->waiting.n) {
        uint32_t n = find(r, heap_top(&r->waiting), slots);
        if (n == 0)
            break;
        start(r, heap_pop(&r->waiting), slots, n, now_ms);
    }
    return 0;
}

static uint32_t *positions(uint32_t n)
{
    uint32_t *p = xcalloc(n + 1, sizeof *p);
    memset(p, 0xFF, (n + 1) * sizeof *p); /* HEAP_OUT */
    return p;
}

static int open_reference(struct reference *r, const char *policy, struct err *e)
{
    const struct part *p = r->p;
    r->shortest_first = strcmp(policy, "sjf") == 0;
    r->consolidate = r->shortest_first || strcmp(policy, "fifo") == 0;
    if (!packer_open(r->consolidate ? "bestfit" : policy, &r->packer)) {
        err_set(e, ERR_INVALID, "--policy: '%s' is not known", policy);
        return err_hint(e, "choose " REPLAY_POLICIES);
    }
    r->held = xcalloc(p->jobs + 1, sizeof *r->held);
    r->request = xcalloc(p->jobs + 1, sizeof *r->request);
    r->waiting_pos = positions(p->jobs);
    r->ends_pos = positions(p->jobs);
    r->waiting = (struct heap){ .pos = r->waiting_pos, .before = waits_before, .ctx = r };
    r->ends = (struct heap){ .pos = r->ends_pos, .before = ends_before, .ctx = r };
    for (uint32_t i = 0; i < p->nodes; i++)
        if (cluster_add_node(&r->c, &p->t->node[p->node[i]], e) < 0)
            return -1;
    return 0;
}

int replay_reference(const struct part *p, const char *policy, struct outcome *out,
                     struct replay_meter *m, struct err *e)
{
    AUTO(reference_free) struct reference r = { .p = p, .out = out, .meter = m };
    AUTO(free_p) struct slot *slots = xcalloc(REPLICAS_MAX, sizeof *slots);
    uint32_t next = 0;
    cluster_init(&r.c);
    if (open_reference(&r, policy, e) < 0)
        return -1;
    while (next < p->jobs || r.ends.n) {
        int64_t now_ms = INT64_MAX;
        if (r.ends.n)
            now_ms = out->end_ms[p->job[heap_top(&r.ends)]];
        if (next < p->jobs)
            now_ms = MIN(now_ms, job_of(&r, next)->submit_ms);
        if (step(&r, now_ms, &next, slots, e) < 0)
            return -1;
    }
    return 0;
}
