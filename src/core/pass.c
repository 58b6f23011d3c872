/* One scheduling pass: who is next, does it fit, take it; until nothing more can start.
 *
 * Only groups on the todo list are tried.  Leaving the others out changes no decision: a group that did not fit
 * still does not fit unless room was freed for its shape, or under the limit it ran into, and both put
 * it back on the list.
 */
#include "core/state.h"

#define FREED_LOOK_MAX 64 /* with more nodes freed at once, trying is cheaper than looking first */

struct order {
    const struct queue *q;
    const struct policy *policy;
    int64_t now_ms;
};

/* Inside one user: priority lifted by age, then who came first. */
static bool group_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct order *o = ctx;
    const struct job *x = &o->q->job[o->q->group[a].first], *y = &o->q->job[o->q->group[b].first];
    uint32_t rx = queue_rank(x, o->policy, o->now_ms), ry = queue_rank(y, o->policy, o->now_ms);
    if (rx != ry)
        return rx > ry;
    return x->id < y->id;
}

/* ---- what may be tried ---- */

/* Has room come for this shape on the nodes that were freed?  A gang has to look everywhere. */
static bool may_fit_now(const struct cluster *c, const struct request *r)
{
    if (r->replicas > 1 || c->freed_n > FREED_LOOK_MAX)
        return true;
    for (uint32_t i = 0; i < c->freed_n; i++) {
        const struct node *n = &c->node[c->freed[i]];
        if (n->cell != NONE && room_replicas(&c->kind[n->kind], &n->room, r, 1))
            return true;
    }
    return false;
}

static void wake_for_room(struct core *c)
{
    if (c->cluster.freed_n == 0)
        return;
    for (uint32_t i = 0; i < c->shapes.n; i++) {
        struct shape *s = &c->shapes.at[i];
        if (s->refs == 0 || !s->no_room || !may_fit_now(&c->cluster, &s->request))
            continue;
        s->no_room = false;
        for (uint32_t g = s->groups; g != NONE; g = c->queue.group[g].shape_next)
            if (c->queue.group[g].blocked_on == NONE)
                queue_todo(&c->queue, &c->shares, g);
    }
    cluster_forget_freed(&c->cluster);
}

/* Files the share under its parent, and so on upwards until one is there already. */
static void ready_push(struct core *c, uint32_t share, int64_t now_ms)
{
    while (share != SHARE_ROOT && c->shares.pos[share] == HEAP_OUT) {
        uint32_t parent = c->shares.at[share].parent;
        struct heap *h = &c->shares.at[parent].ready;
        h->pos = c->shares.pos;
        h->before = share_before;
        h->ctx = &c->shares;
        share_set_key(&c->shares, share, now_ms);
        heap_push(h, share);
        share = parent;
    }
}

static void ready_all(struct core *c, const struct order *o)
{
    struct queue *q = &c->queue;
    if (q->todo_n)
        shares_set_levels(&c->shares, o->now_ms);
    for (uint32_t i = 0; i < q->todo_n; i++) {
        struct group *g = &q->group[q->todo[i]];
        g->todo = false;
        if (g->n == 0)
            continue; /* its jobs are gone */
        struct heap *h = &c->shares.at[g->leaf].ready;
        h->pos = q->group_pos;
        h->before = group_before;
        h->ctx = o;
        heap_push(h, q->todo[i]);
        ready_push(c, g->leaf, o->now_ms);
    }
    q->todo_n = 0;
}

/* ---- trying ---- */

static void plan_add(struct plan *p, struct arena *a, const struct job *j)
{
    if (p->n == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 16;
        struct action *grown = arena_array(a, struct action, cap);
        if (p->n)
            memcpy(grown, p->action, p->n * sizeof *grown);
        p->action = grown;
        p->cap = cap;
    }
    struct slot *slots = arena_array(a, struct slot, j->slots_n);
    memcpy(slots, j->slots, j->slots_n * sizeof *slots);
    p->action[p->n++] = (struct action){
        .kind = j->state == JOB_THAWING ? ACT_THAW : ACT_START,
        .job = { j->id },
        .slots = slots,
        .n = j->slots_n,
    };
}

static uint32_t over_limit(const struct core *c, const struct job *j, enum resource *out_which)
{
    struct amounts a = core_amounts(c, &c->shapes.at[j->shape].request);
    return shares_over_limit(&c->shares, j->leaf, &a, out_which);
}

/* Starts the group's first job, or blocks the group. */
static bool try_group(struct core *c, uint32_t group, int64_t now_ms)
{
    struct group *g = &c->queue.group[group];
    struct job *j = &c->queue.job[g->first];
    struct shape *s = &c->shapes.at[g->shape];
    enum resource which;
    uint32_t over = over_limit(c, j, &which);
    if (over == NONE && !s->no_room)
        s->no_room = !place_find(&c->cluster, &s->request, &c->scratch, c->slots);
    if (over != NONE) {
        queue_block_limit(&c->queue, &c->shares, group, over, which);
        return false;
    }
    if (s->no_room) {
        queue_block_room(&c->queue, group, WHY_ROOM);
        return false;
    }
    core_place(c, g->first, c->slots, s->request.replicas, now_ms);
    return true;
}

/* The next group in the order of the policy. */
static uint32_t next_group(const struct core *c)
{
    uint32_t share = SHARE_ROOT;
    while (!c->shares.at[share].is_user)
        share = heap_top(&c->shares.at[share].ready);
    return heap_top(&c->shares.at[share].ready);
}

/* After a try: the group moves or leaves, and so do the shares above it. */
static void reorder(struct core *c, uint32_t group, uint32_t leaf, bool again, int64_t now_ms)
{
    struct heap *h = &c->shares.at[leaf].ready;
    if (again)
        heap_moved(h, group);
    else
        heap_remove(h, group);
    for (uint32_t share = leaf; share != SHARE_ROOT; share = c->shares.at[share].parent) {
        struct heap *up = &c->shares.at[c->shares.at[share].parent].ready;
        if (c->shares.at[share].ready.n == 0) {
            heap_remove(up, share);
        } else {
            share_set_key(&c->shares, share, now_ms);
            heap_moved(up, share);
        }
    }
}

/* Starts the job of one claim, on its own nodes or elsewhere; or drops a claim it may not use. */
static bool try_claim(struct core *c, uint32_t claim, struct arena *a, struct plan *out)
{
    const struct claim *cl = &c->claim[claim];
    uint32_t job = cl->job;
    const struct job *j = &c->queue.job[job];
    const struct request *r = &c->shapes.at[j->shape].request;
    enum resource which;
    out->considered++;
    if (over_limit(c, j, &which) != NONE) {
        claims_drop(c, job);
        return true;
    }
    if (!gang_find_on(&c->cluster, r, cl->node, cl->n, &c->scratch, c->slots) &&
        !place_find(&c->cluster, r, &c->scratch, c->slots))
        return false;
    core_place(c, job, c->slots, r->replicas, c->now_ms);
    plan_add(out, a, &c->queue.job[job]);
    return true;
}

/* Jobs that nodes are kept for go first.  Each claim that falls gives room to the others, so again
 * until none moves: afterwards no such job fits, and the order of the rest is not disturbed. */
static void try_claims(struct core *c, struct arena *a, struct plan *out)
{
    for (uint32_t i = 0; i < c->claims;)
        i = try_claim(c, i, a, out) ? 0 : i + 1;
}

void core_pass(struct core *c, int64_t now_ms, struct arena *a, struct plan *out)
{
    c->now_ms = MAX(now_ms, c->now_ms);
    *out = (struct plan){ 0 };
    struct order o = { &c->queue, &c->policy, c->now_ms };
    try_claims(c, a, out);
    wake_for_room(c);
    ready_all(c, &o);
    const struct share *root = &c->shares.at[SHARE_ROOT];
    while (root->ready.n) {
        uint32_t group = next_group(c), leaf = c->queue.group[group].leaf,
                 job = c->queue.group[group].first;
        bool more = c->queue.group[group].n > 1;
        out->considered++;
        bool started = try_group(c, group, c->now_ms);
        if (started)
            plan_add(out, a, &c->queue.job[job]);
        reorder(c, group, leaf, started && more, c->now_ms);
    }
    claims_make(c, c->now_ms);
}

void core_pass_full(struct core *c, int64_t now_ms, struct arena *a, struct plan *out)
{
    queue_wake_all(&c->queue, &c->shapes, &c->shares);
    core_pass(c, now_ms, a, out);
}
