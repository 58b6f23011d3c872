/* Taking back: room for a waiting job by freezing jobs that are worth less now, and by moving small
 * ones that stay (frozen here, thawed there) into holes or onto others that are worth less.  Who may
 * be frozen for whom is in take_rights.c.  The search works on copies of the rooms of the nodes it
 * touches; nothing is changed until it has succeeded.
 */
#include "core/taker.h"

#define OPTIONS_MAX 64 /* jobs of one node that are looked at */
#define MOVE_HARM 0.4  /* of moving a GPU's worth of a job, next to freezing it */

void take_scratch_free(struct take_scratch *s)
{
    free(s->room);
    free(s->node_mark);
    free(s->reach);
    free(s->job_mark);
    free(s->step);
    free(s->fork);
    free(s->allowed[0]);
    free(s->allowed[1]);
    free(s->taken);
}

/* ---- the overlay ---- */

static void begin(struct taker *t)
{
    struct take_scratch *s = t->s;
    const struct core *c = t->c;
    if (s->node_cap < c->cluster.node_cap) {
        s->node_mark = xrealloc(s->node_mark, c->cluster.node_cap, sizeof *s->node_mark);
        memset(s->node_mark, 0, c->cluster.node_cap * sizeof *s->node_mark);
        s->reach = xrealloc(s->reach, c->cluster.node_cap, sizeof *s->reach);
        s->node_cap = c->cluster.node_cap;
    }
    if (s->job_cap < c->queue.job_cap) {
        s->job_mark = xrealloc(s->job_mark, c->queue.job_cap, sizeof *s->job_mark);
        memset(s->job_mark, 0, c->queue.job_cap * sizeof *s->job_mark);
        s->job_cap = c->queue.job_cap;
    }
    s->epoch++;
    s->rooms = s->steps = 0;
    memset(s->taken, 0, c->shares.n * sizeof *s->taken);
}

static struct take_room *touched(const struct taker *t, uint32_t node)
{
    uint64_t mark = t->s->node_mark[node];
    return mark >> 32 == t->s->epoch ? &t->s->room[(uint32_t)mark] : NULL;
}

static const struct room *room_of(const struct taker *t, uint32_t node)
{
    const struct take_room *m = touched(t, node);
    return m ? &m->room : &t->c->cluster.node[node].offer;
}

static struct take_room *touch(struct taker *t, uint32_t node)
{
    struct take_scratch *s = t->s;
    if (!touched(t, node)) {
        vec_grow(s->room, s->rooms, s->room_cap);
        s->room[s->rooms] =
            (struct take_room){ .node = node, .room = t->c->cluster.node[node].offer };
        s->node_mark[node] = (uint64_t)s->epoch << 32 | s->rooms++;
    }
    return &s->room[(uint32_t)s->node_mark[node]];
}

/* May replicas be put on this node, or jobs be moved to it? */
static bool is_open(const struct taker *t, uint32_t node, const struct request *r)
{
    const struct node *nd = &t->c->cluster.node[node];
    const struct take_room *m = touched(t, node);
    return !(m && m->closed) && node_takes(&t->c->cluster, nd, r);
}

/* Gives back what the job holds on one node. */
static void free_slots(struct room *m, const struct core *c, uint32_t job, uint32_t node)
{
    const struct job *v = &c->queue.job[job];
    const struct request *r = &c->shapes.at[v->shape].request;
    const struct kind *k = &c->cluster.kind[c->cluster.node[node].kind];
    for (uint32_t i = 0; i < v->held->n; i++)
        if (v->held->slot[i].node == node)
            room_give(k, m, r, v->held->slot[i].gpu_mask, v->held->slot[i].milli);
}

static void add_step(struct taker *t, uint32_t job, bool moves, struct slot to)
{
    struct take_scratch *s = t->s;
    const struct job *v = &t->c->queue.job[job];
    vec_grow(s->step, s->steps, s->step_cap);
    s->step[s->steps++] = (struct take_step){ job, moves, to };
    s->job_mark[job] = s->epoch;
    for (uint32_t i = 0; i < v->held->n; i++) {
        uint32_t node = v->held->slot[i].node;
        if (i == 0 || node != v->held->slot[i - 1].node)
            free_slots(&touch(t, node)->room, t->c, job, node);
    }
    for (uint32_t k = v->leaf; !moves && s->fork[k] != NONE; k = t->c->shares.at[k].parent)
        s->taken[k] += v->held->cost_milli;
}

/* Takes the GPUs of one replica of `r` in the overlay of the node. */
static struct slot take_slot(struct taker *t, uint32_t node, const struct request *r)
{
    const struct kind *k = &t->c->cluster.kind[t->c->cluster.node[node].kind];
    struct room *m = &touch(t, node)->room;
    uint32_t milli = r->gpus ? GPU_MILLI : kind_share_milli(k, r);
    uint16_t mask = room_pick(k, m, r);
    room_take(k, m, r, mask, milli);
    return (struct slot){ .node = node, .gpu_mask = mask, .milli = mask ? (uint16_t)milli : 0 };
}

/* ---- one node ---- */

struct option {
    uint32_t job;
    bool moves;
    double harm;
};

/* What has to go so that so many replicas fit on a node. */
struct clearing {
    uint32_t node, n;
    double harm;
    struct option pick[OPTIONS_MAX];
};

/* Those that are frozen for good first, the least harm first. */
static int by_harm(const void *pa, const void *pb)
{
    const struct option *a = pa, *b = pb;
    if (a->moves != b->moves)
        return a->moves ? 1 : -1;
    if (a->harm < b->harm || b->harm < a->harm)
        return a->harm < b->harm ? -1 : 1;
    return a->job < b->job ? -1 : a->job > b->job;
}

static uint32_t list_options(const struct taker *t, uint32_t node, bool moves, struct option *out)
{
    const struct core *c = t->c;
    const struct node *nd = &c->cluster.node[node];
    uint32_t n = 0;
    for (uint32_t i = 0; i < nd->jobs && n < OPTIONS_MAX; i++) {
        const struct job *v = &c->queue.job[nd->job[i]];
        if (!taker_can_freeze(t, nd->job[i]))
            continue;
        if (taker_may_take(t, v))
            out[n++] = (struct option){ nd->job[i], false, taker_harm_of(t, v) };
        else if (moves && v->held->n == 1)
            out[n++] = (struct option){ nd->job[i], true,
                                        FREEZE_HARM + MOVE_HARM * taker_gpus_of(v->held) };
    }
    qsort(out, n, sizeof *out, by_harm);
    return n;
}

/* So many replicas of this on that node. */
struct want {
    uint32_t node, q;
    const struct request *r;
};

/* Does it fit when the first n of the options are gone, but for number `but`? */
static bool fits_without(const struct taker *t, const struct want *w, const struct option *opt,
                         uint32_t n, uint32_t but)
{
    const struct cluster *cl = &t->c->cluster;
    struct room m = *room_of(t, w->node);
    for (uint32_t i = 0; i < n; i++)
        if (i != but && opt[i].job != NONE)
            free_slots(&m, t->c, opt[i].job, w->node);
    return room_replicas(&cl->kind[cl->node[w->node].kind], &m, w->r, w->q) >= w->q;
}

/* What would have to go from the node so that `q` replicas fit; false when nothing helps. */
static bool price_node(const struct taker *t, const struct want *w, bool moves,
                       struct clearing *out)
{
    struct option opt[OPTIONS_MAX];
    uint32_t used = 0;
    out->node = w->node;
    out->n = 0;
    out->harm = 0;
    if (fits_without(t, w, NULL, 0, NONE))
        return true;
    uint32_t n = list_options(t, w->node, moves, opt);
    if (n == 0 || !fits_without(t, w, opt, n, NONE))
        return false;
    do
        used++;
    while (!fits_without(t, w, opt, used, NONE));
    for (uint32_t i = used; i-- > 0;) /* the dearest that are not needed after all stay */
        if (fits_without(t, w, opt, used, i))
            opt[i].job = NONE;
    for (uint32_t i = 0; i < used; i++)
        if (opt[i].job != NONE) {
            out->pick[out->n++] = opt[i];
            out->harm += opt[i].harm;
        }
    return true;
}

static uint32_t free_milli(const struct taker *t, uint32_t node)
{
    const struct room *m = room_of(t, node);
    uint32_t sum = 0;
    for (int g = 0; g < GPUS_PER_NODE_MAX; g++)
        sum += m->gpu[g];
    return sum;
}

/* What it may ask for elsewhere, once it has left what it holds; NULL: its tenants let it go nowhere. */
static const struct request *may_move_as(const struct taker *t, uint32_t job,
                                         struct request *narrowed)
{
    const struct job *v = &t->c->queue.job[job];
    uint32_t by;
    *narrowed = t->c->shapes.at[v->shape].request;
    if (t->c->shares.ruled == 0)
        return narrowed;
    if (core_opens_ms(t->c, v->leaf) != INT64_MIN)
        return NULL;
    narrowed->models = core_open_models(t->c, v->leaf, narrowed, (struct gone){ &job, 1 }, &by);
    return narrowed->models ? narrowed : NULL;
}

/* Where a job that has to move goes: the tightest hole, else where it displaces the least. */
static bool move_job(struct taker *t, uint32_t job)
{
    struct core *c = t->c;
    struct request narrowed;
    const struct request *r = may_move_as(t, job, &narrowed);
    struct clearing best = { .node = NONE }, one;
    uint32_t tightest = UINT32_MAX;
    if (!r)
        return false;
    c->take_looks += c->cluster.nodes;
    for (uint32_t i = 0; i < c->cluster.nodes; i++) {
        if (t->s->reach[i].frozen < r->gpus * GPU_MILLI || !is_open(t, i, r) ||
            (tightest != UINT32_MAX && free_milli(t, i) >= tightest) ||
            !price_node(t, &(struct want){ i, 1, r }, false, &one) ||
            (one.n && tightest != UINT32_MAX))
            continue;
        if (one.n == 0) {
            tightest = free_milli(t, i);
            best = (struct clearing){ .node = i };
        } else if (best.node == NONE || one.harm < best.harm) {
            best = one;
        }
    }
    if (best.node == NONE)
        return false;
    for (uint32_t i = 0; i < best.n; i++)
        add_step(t, best.pick[i].job, false, (struct slot){ 0 });
    struct slot to = take_slot(t, best.node, r);
    add_step(t, job, true, to);
    return true;
}

/* Clears the node and puts q replicas on it. */
static bool clear_node(struct taker *t, const struct clearing *cl, uint32_t q, struct slot *out)
{
    touch(t, cl->node)->closed = true;
    for (uint32_t i = 0; i < cl->n; i++)
        if (!cl->pick[i].moves)
            add_step(t, cl->pick[i].job, false, (struct slot){ 0 });
    for (uint32_t i = 0; i < cl->n; i++)
        if (cl->pick[i].moves && !move_job(t, cl->pick[i].job))
            return false;
    for (uint32_t i = 0; i < q; i++)
        out[i] = take_slot(t, cl->node, t->r);
    return true;
}

/* ---- the whole job ---- */

/* Of the `left` replicas still to place, those that an idle node of this kind can take. */
static uint32_t replicas_on(const struct taker *t, const struct kind *k, uint32_t left)
{
    struct room idle = kind_room(k);
    return room_replicas(k, &idle, t->r, t->r->layout == LAYOUT_SPREAD ? 1 : left);
}

static bool is_bad(const struct taker *t, uint32_t node)
{
    for (uint32_t i = 0; i < t->bads; i++)
        if (t->bad[i] == node)
            return true;
    return false;
}

/* The node where the next replicas do the least harm. */
static bool cheapest(const struct taker *t, uint32_t left, uint32_t *out_q, struct clearing *out)
{
    const struct cluster *cl = &t->c->cluster;
    uint32_t q = 0, each = t->r->gpus * GPU_MILLI;
    struct clearing one;
    out->node = NONE;
    out->n = 0;
    for (uint32_t k = 0; k < cl->kinds; k++)
        if (kind_takes(&cl->kind[k], t->r))
            q = MAX(q, replicas_on(t, &cl->kind[k], left));
    if (t->r->scope == SCOPE_NODE && q < left)
        return false; /* the machines that would hold it all are given back soon, or closed */
    for (uint32_t i = 0; i < cl->nodes && q; i++) {
        if ((t->moves ? t->s->reach[i].moved : t->s->reach[i].frozen) < q * each)
            continue;
        if (!is_open(t, i, t->r) || is_bad(t, i) ||
            !price_node(t, &(struct want){ i, q, t->r }, t->moves, &one))
            continue;
        if (out->node == NONE || one.harm < out->harm)
            *out = one;
    }
    t->c->take_looks += cl->nodes;
    *out_q = q;
    return out->node != NONE;
}

static int by_node(const void *pa, const void *pb)
{
    const struct slot *a = pa, *b = pb;
    return a->node < b->node ? -1 : a->node > b->node;
}

static bool find_once(struct taker *t)
{
    struct slot *out = t->c->slots;
    begin(t);
    for (uint32_t left = t->r->replicas, q; left; left -= q, out += q) {
        struct clearing best;
        if (!cheapest(t, left, &q, &best))
            return false;
        if (!clear_node(t, &best, q, out)) {
            t->bad[t->bads++] = best.node;
            return false;
        }
    }
    qsort(t->c->slots, t->r->replicas, sizeof *t->c->slots, by_node);
    return true;
}

/* A node that could not be cleared is left out, and all begins again. */
static bool find(struct taker *t)
{
    for (uint32_t bads = NONE; bads != t->bads && t->bads < TRIES_MAX;) {
        bads = t->bads;
        if (find_once(t))
            return true;
    }
    return false;
}

static uint32_t held_on(const struct held *h, uint32_t node)
{
    uint32_t milli = 0;
    for (uint32_t i = 0; i < h->n; i++)
        if (h->slot[i].node == node)
            milli += (uint32_t)__builtin_popcount(h->slot[i].gpu_mask) * h->slot[i].milli;
    return milli;
}

/* Looks once at all machines: what each could give if jobs were frozen, and if others moved as
 * well.  false: all that may be taken is not enough, on whatever machines. */
static bool has_capacity(const struct taker *t)
{
    const struct cluster *cl = &t->c->cluster;
    uint64_t milli = 0, need = core_gpu_milli(t->c, t->r);
    t->c->take_looks += cl->nodes;
    for (uint32_t i = 0; i < cl->nodes; i++) {
        struct take_reach *reach = &t->s->reach[i];
        *reach = (struct take_reach){ 0 };
        if (cl->node[i].state != NODE_UP)
            continue;
        reach->moved = reach->frozen = free_milli(t, i);
        for (uint32_t k = 0; k < cl->node[i].jobs; k++) {
            uint32_t job = cl->node[i].job[k];
            const struct job *v = &t->c->queue.job[job];
            if (!taker_can_freeze(t, job))
                continue;
            uint32_t here = v->held->n == 1 ? v->held->gpu_milli : held_on(v->held, i);
            bool taken = taker_may_take(t, v);
            reach->frozen += taken ? here : 0;
            reach->moved += taken || v->held->n == 1 ? here : 0;
        }
        milli += is_open(t, i, t->r) ? reach->frozen : 0;
    }
    return milli >= need;
}

bool take_find(struct core *c, uint32_t job, const struct request *r, const struct user_group *u)
{
    const struct job *j = &c->queue.job[job];
    struct taker t = { .c = c, .s = &c->take, .j = j, .r = r, .rank = u->rank };
    t.worth = (double)u->worth;
    t.express = core_is_express(c, j);
    if (!(r->gpus || request_shares_gpu(r) || request_has_devices(r)) || r->scope == SCOPE_SWITCH)
        return false;
    t.overdue = core_is_overdue(c, j, c->now_ms);
    if (!taker_has_rights(&t) && !t.overdue && !j->has_claim &&
        c->cluster.free.of[RES_GPU] < core_gpu_milli(c, r))
        return false;
    begin(&t);
    if (!has_capacity(&t))
        return false;
    if (find(&t))
        return true;
    t.moves = true;
    return find(&t);
}
