/* One scheduling pass: who is next, does it fit, take it; until nothing more can start.
 *
 * Only ready groups are tried.  Leaving the others out changes no decision: a group that did not
 * fit still does not fit unless room was freed for its shape, or under the limit it ran into, and
 * both make it ready again.
 */
#include "core/state.h"

#define FREED_LOOK_MAX 64 /* with more nodes freed at once, trying is cheaper than looking first */

/* Inside one user: priority lifted by age, then who came first. */
static bool group_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct user_group *x = &((const struct user_groups *)ctx)->at[a];
    const struct user_group *y = &((const struct user_groups *)ctx)->at[b];
    if (x->rank != y->rank)
        return x->rank > y->rank;
    return x->first_id < y->first_id;
}

static bool find_place(struct core *c, const struct request *r)
{
    return place_find(&c->cluster, &c->demand, r, &c->scratch, c->slots);
}

/* ---- what may be tried ---- */

/* A shape that did not fit can only fit now with a replica on a node that was freed. */
static bool freed_has_room(const struct cluster *cl, const struct request *r)
{
    for (uint32_t i = 0; i < cl->freed_n; i++) {
        const struct node *n = &cl->node[cl->freed[i]];
        if (n->cell != NONE && room_replicas(&cl->kind[n->kind], &n->offer, r, 1))
            return true;
    }
    return false;
}

static void wake_for_room(struct core *c)
{
    bool look = c->cluster.freed_n <= FREED_LOOK_MAX;
    for (uint32_t i = 0; i < c->shapes.n && c->cluster.freed_n; i++) {
        struct shape *s = &c->shapes.at[i];
        if (s->refs == 0 || !c->shapes.no_room[i])
            continue;
        if (look && s->open && !freed_has_room(&c->cluster, &s->request))
            continue;
        if (look && s->open && s->request.replicas > 1 && !find_place(c, &s->request))
            continue;
        s->woken = look ? c->passes : 0;
        queue_room_came(&c->queue, &c->shapes, i);
    }
}

/* Files the share under its parent, and so on upwards until one is there already. */
static void ready_push(struct core *c, uint32_t share)
{
    while (share != SHARE_ROOT && c->shares.pos[share] == HEAP_OUT) {
        uint32_t parent = c->shares.at[share].parent;
        struct heap *h = &c->shares.at[parent].ready;
        h->pos = c->shares.pos;
        h->before = share_before;
        h->ctx = &c->shares;
        share_set_key(&c->shares, share);
        heap_push(h, share);
        share = parent;
    }
}

/* Users who may have a ready group: all who wait when room came, else those that were touched. */
static void ready_users(struct core *c)
{
    for (uint32_t i = 0; i < c->shares.n; i++) {
        struct share *s = &c->shares.at[i];
        if (s->is_user && s->waiting && (s->touched || c->queue.room_came))
            ready_push(c, i);
        s->touched = s->opened = false;
    }
    c->queue.room_came = false;
}

/* Looks at a user's groups when it is his turn for the first time. */
static void open_user(struct core *c, uint32_t leaf)
{
    struct share *s = &c->shares.at[leaf];
    struct user_groups *u = &s->groups;
    s->ready.pos = u->pos;
    s->ready.before = group_before;
    s->ready.ctx = u;
    s->opened = true;
    for (uint32_t i = 0; i < u->n; i++) {
        if (u->at[i].shape == NONE || c->shapes.no_room[u->at[i].shape])
            continue;
        u->at[i].rank = queue_rank(&u->at[i], &c->policy, c->now_ms);
        heap_push(&s->ready, i);
    }
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
    const struct held *h = j->held;
    struct slot *slots = arena_array(a, struct slot, h->n);
    memcpy(slots, h->slot, h->n * sizeof *slots);
    p->action[p->n++] = (struct action){
        .kind = j->state == JOB_THAWING ? ACT_THAW : ACT_START,
        .job = { j->id },
        .slots = slots,
        .n = h->n,
    };
}

/* Starts the group's first job, or finds out why not. */
static bool try_group(struct core *c, uint32_t group)
{
    struct group *g = &c->queue.group[group];
    const struct shape *s = &c->shapes.at[g->shape];
    enum resource which;
    uint32_t over = core_over_limit(c, &c->queue.job[g->first], &which);
    if (over != NONE) {
        queue_block_limit(&c->queue, &c->shapes, &c->shares, group, over, which);
        return false;
    }
    if ((s->woken == c->passes && !freed_has_room(&c->cluster, &s->request)) ||
        !find_place(c, &s->request)) {
        queue_no_room(&c->queue, &c->shapes, g->shape);
        return false;
    }
    core_place(c, g->first, c->slots, s->request.replicas, c->now_ms);
    return true;
}

/* The user who is next in the order of the policy. */
static uint32_t next_user(const struct core *c)
{
    uint32_t share = SHARE_ROOT;
    while (!c->shares.at[share].is_user)
        share = heap_top(&c->shares.at[share].ready);
    return share;
}

/* After a turn the user's share has changed, or he has nothing more to try; so for those above. */
static void reorder(struct core *c, uint32_t leaf)
{
    for (uint32_t share = leaf; share != SHARE_ROOT; share = c->shares.at[share].parent) {
        struct heap *up = &c->shares.at[c->shares.at[share].parent].ready;
        if (c->shares.at[share].ready.n == 0) {
            heap_remove(up, share);
        } else {
            share_set_key(&c->shares, share);
            heap_moved(up, share);
        }
    }
}

/* One turn of one user: groups are tried in their order until a job starts; a try that fails
 * changes nobody's share, so it stays this user's turn.  true when a job started. */
static bool take_turn(struct core *c, uint32_t leaf, struct plan *p, uint32_t *out_job)
{
    struct queue *q = &c->queue;
    struct user_groups *u = &c->shares.at[leaf].groups;
    struct heap *h = &c->shares.at[leaf].ready;
    if (!c->shares.at[leaf].opened)
        open_user(c, leaf);
    while (h->n && q->ready) {
        uint32_t at = heap_pop(h), group = u->at[at].group;
        p->considered++;
        if (c->shapes.no_room[u->at[at].shape])
            continue;
        bool more = q->group[group].n > 1;
        *out_job = q->group[group].first;
        if (!try_group(c, group))
            continue;
        if (more) { /* else the group is gone, and its place may be another's */
            u->at[at].rank = queue_rank(&u->at[at], &c->policy, c->now_ms);
            heap_push(h, at);
        }
        return true;
    }
    return false;
}

/* Nothing is ready any more: what is still in the heaps is known not to fit. */
static void leave_heaps(struct core *c)
{
    for (uint32_t i = 0; i < c->shares.n; i++)
        heap_clear(&c->shares.at[i].ready);
}

/* Starts the job of one claim, on its own nodes or elsewhere. */
static bool try_claim(struct core *c, uint32_t claim, struct arena *a, struct plan *out)
{
    const struct claim *cl = &c->claim[claim];
    uint32_t job = cl->job;
    const struct job *j = &c->queue.job[job];
    const struct request *r = &c->shapes.at[j->shape].request;
    enum resource which;
    out->considered++;
    if (core_over_limit(c, j, &which) != NONE)
        return false;
    if (!gang_find_on(&c->cluster, r, cl->node, cl->n, &c->scratch, c->slots) && !find_place(c, r))
        return false;
    core_place(c, job, c->slots, r->replicas, c->now_ms);
    plan_add(out, a, &c->queue.job[job]);
    return true;
}

/* Jobs that room is kept for go first.  Each claim that falls gives room to the others, so again
 * until none moves: afterwards no such job fits, and the order of the rest is not disturbed. */
static void try_claims(struct core *c, struct arena *a, struct plan *out)
{
    for (uint32_t i = 0; i < c->claims;)
        i = try_claim(c, i, a, out) ? 0 : i + 1;
}

void core_pass(struct core *c, int64_t now_ms, struct arena *a, struct plan *out)
{
    core_close_pass(c);
    c->now_ms = MAX(now_ms, c->now_ms);
    c->passes++;
    *out = (struct plan){ 0 };
    later_due(c, now_ms);
    claims_review(c);
    try_claims(c, a, out);
    wake_for_room(c);
    if (c->queue.ready) {
        shares_set_levels(&c->shares, c->now_ms);
        ready_users(c);
    }
    while (c->queue.ready && c->shares.at[SHARE_ROOT].ready.n) {
        uint32_t leaf = next_user(c), job;
        if (take_turn(c, leaf, out, &job))
            plan_add(out, a, &c->queue.job[job]);
        reorder(c, leaf);
    }
    leave_heaps(c);
    cluster_forget_freed(&c->cluster);
    claims_make(c, c->now_ms);
}

void core_pass_full(struct core *c, int64_t now_ms, struct arena *a, struct plan *out)
{
    queue_wake_all(&c->queue, &c->shapes, &c->shares);
    core_pass(c, now_ms, a, out);
}
