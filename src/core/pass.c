/* One scheduling pass: who is next, does it fit, take it; until nothing more can start.
 *
 * Only ready groups are tried.  Leaving the others out changes no decision: a group that did not
 * fit still does not fit unless room was freed for its shape, or under the limit it ran into, and
 * both make it ready again.
 */
#include "core/state.h"

#define LOOKS_MAX 50000     /* nodes and shares that one pass looks at for taking back */
#define NODES_A_REVIEW 1000 /* on a larger cluster the jobs take turns in several reviews */
#define FREED_LOOK_MAX 64 /* with more nodes freed at once, trying is cheaper than looking first */

/* Inside one user: priority lifted by age, then who came first. */
static bool group_before(const void *ctx, uint32_t a, uint32_t b)
{
    const struct user_groups *u = ctx;
    return u->key[a] != u->key[b] ? u->key[a] > u->key[b] : u->at[a].first_id < u->at[b].first_id;
}

/* A worth is above 0, and the bits of such numbers have their order. */
static void set_key(struct user_groups *u, uint32_t i)
{
    uint32_t worth;
    memcpy(&worth, &u->at[i].worth, sizeof worth);
    u->key[i] = (uint64_t)u->at[i].rank << 32 | worth;
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
    if (c->cluster.freed_n || c->review)
        queue_wake_narrow(&c->queue, &c->shapes, &c->shares);
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
        if (s->is_user && s->waiting && (s->touched || c->queue.room_came || c->review_all))
            ready_push(c, i);
        s->touched = s->opened = false;
        s->take_failed_milli = UINT64_MAX;
    }
    c->queue.room_came = false;
}

static uint64_t review_turns(const struct core *c)
{
    return 1 + c->cluster.nodes / NODES_A_REVIEW;
}

/* Is room made for this job in this pass?  A search costs what the cluster is large, so on a large
 * one each job has its turn more rarely; on others, whoever comes has one at once. */
static bool is_its_review(const struct core *c, uint64_t id)
{
    uint64_t now = (uint64_t)(c->now_ms / MAX(c->policy.review_ms, INT64_C(1)));
    bool all = c->review_all && (id + now) % review_turns(c) == 0;
    return c->review && (all || id > c->new_after);
}

/* What a user's group is compared by. */
static void rate_group(struct core *c, uint32_t leaf, uint32_t at, struct rows_seen *seen,
                       int64_t now_ms)
{
    struct user_groups *u = &c->shares.at[leaf].groups;
    struct user_group *g = &u->at[at];
    g->rank = queue_rank(g, &c->policy, now_ms);
    g->worth = (float)core_worth(c, seen, leaf, c->queue.group[g->group].shape, g);
    set_key(u, at);
}

/* Looks at a user's groups when it is his turn for the first time. */
static void open_user(struct core *c, uint32_t leaf)
{
    struct share *s = &c->shares.at[leaf];
    struct user_groups *u = &s->groups;
    s->ready.pos = u->pos;
    s->ready.before = group_before;
    s->ready.ctx = u;
    struct rows_seen seen = { 0 };
    s->opened = true;
    for (uint32_t i = 0; i < u->n; i++) {
        if (u->at[i].shape == NONE ||
            (c->shapes.no_room[u->at[i].shape] && !is_its_review(c, u->at[i].first_id)))
            continue;
        rate_group(c, leaf, i, &seen, c->now_ms);
        heap_push(&s->ready, i);
    }
}

/* ---- trying ---- */

struct event action_event(const struct action *a, int64_t now_ms)
{
    struct event ev = { .t_ms = now_ms };
    switch (a->kind) {
    case ACT_START:
    case ACT_THAW:
    case ACT_PROMISE:
        ev.kind = a->kind == ACT_PROMISE ? EVENT_PROMISE : EVENT_PLACE;
        ev.place = (struct event_place){ a->job, a->slots, a->n };
        break;
    case ACT_TAKE:
        ev.kind = EVENT_TAKE;
        ev.take = (struct event_take){ a->job, a->by, a->why };
        break;
    }
    return ev;
}

static void plan_add(struct plan *p, struct arena *a, enum action_kind kind, const struct job *j,
                     const struct slot *from, uint32_t n)
{
    if (p->n == p->cap) {
        size_t cap = p->cap ? p->cap * 2 : 16;
        struct action *grown = arena_array(a, struct action, cap);
        if (p->n)
            memcpy(grown, p->action, p->n * sizeof *grown);
        p->action = grown;
        p->cap = cap;
    }
    struct slot *slots = arena_array(a, struct slot, n + 1);
    if (n)
        memcpy(slots, from, n * sizeof *slots);
    p->action[p->n++] = (struct action){ .kind = kind, .job = { j->id }, .slots = slots, .n = n };
}

static void plan_start(struct plan *p, struct arena *a, const struct job *j)
{
    plan_add(p, a, j->state == JOB_THAWING ? ACT_THAW : ACT_START, j, j->held->slot, j->held->n);
}

/* Freezes and moves what take_find found, and promises the room. */
static void take(struct core *c, uint32_t job, struct arena *a, struct plan *out)
{
    uint32_t n = c->shapes.at[c->queue.job[job].shape].request.replicas;
    for (uint32_t i = 0; i < c->take.steps; i++) {
        const struct take_step *s = &c->take.step[i];
        core_take(c, s->job, c->now_ms);
        plan_add(out, a, ACT_TAKE, &c->queue.job[s->job], NULL, 0);
        out->action[out->n - 1].by.v = c->queue.job[job].id;
        if (!s->moves)
            continue;
        promise_make(c, s->job, &s->to, 1);
        plan_add(out, a, ACT_PROMISE, &c->queue.job[s->job], &s->to, 1);
    }
    promise_make(c, job, c->slots, n);
    plan_add(out, a, ACT_PROMISE, &c->queue.job[job], c->slots, n);
}

/* There is no room that is nobody's: borrows some that is kept, or takes some back. */
static bool make_room(struct core *c, const struct request *r, const struct user_group *u,
                      struct arena *a, struct plan *out)
{
    uint32_t job = c->queue.group[u->group].first;
    uint64_t need_milli = core_amounts(c, r).of[RES_GPU];
    uint64_t *failed_milli = &c->shares.at[c->queue.job[job].leaf].take_failed_milli;
    if (claims_lend(c, job, r)) {
        core_place(c, job, c->slots, r->replicas, c->now_ms);
        plan_start(out, a, &c->queue.job[job]);
        return true;
    }
    if (!c->policy.take_back || need_milli >= *failed_milli)
        return false;
    if (c->take_looks > LOOKS_MAX) { /* the rest is for the next review */
        c->review = false;
        return false;
    }
    if (!take_find(c, job, r, u)) {
        *failed_milli = need_milli;
        return false;
    }
    take(c, job, a, out);
    return true;
}

/* Starts the group's first job, or makes room for it, or finds out why not. */
static bool try_group(struct core *c, uint32_t group, const struct user_group *u, struct arena *a,
                      struct plan *out)
{
    const struct group *g = &c->queue.group[group];
    const struct shape *s = &c->shapes.at[g->shape];
    struct request narrowed;
    struct refusal by;
    const struct request *r = core_allowed(c, g->leaf, &s->request, &narrowed, &by);
    uint32_t job = g->first, shape = g->shape;
    if (!r) {
        queue_block(&c->queue, &c->shapes, &c->shares, group, by, false);
        return false;
    }
    if (!c->shapes.no_room[shape] && !(s->woken == c->passes && !freed_has_room(&c->cluster, r)) &&
        find_place(c, r)) {
        core_place(c, job, c->slots, r->replicas, c->now_ms);
        plan_start(out, a, &c->queue.job[job]);
        return true;
    }
    if (r != &narrowed) /* else others may have room where this one may not go */
        queue_no_room(&c->queue, &c->shapes, shape);
    if (is_its_review(c, c->queue.job[job].id) && make_room(c, r, u, a, out))
        return true;
    if (r == &narrowed && !c->shapes.no_room[shape])
        queue_block(&c->queue, &c->shapes, &c->shares, group, by, true);
    return false;
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
static bool take_turn(struct core *c, uint32_t leaf, struct arena *a, struct plan *p)
{
    struct queue *q = &c->queue;
    struct user_groups *u = &c->shares.at[leaf].groups;
    struct heap *h = &c->shares.at[leaf].ready;
    if (!c->shares.at[leaf].opened)
        open_user(c, leaf);
    while (h->n && (q->ready || c->review)) {
        uint32_t at = heap_pop(h), group = u->at[at].group;
        p->considered++;
        if (c->shapes.no_room[u->at[at].shape] && !is_its_review(c, u->at[at].first_id))
            continue;
        bool more = q->group[group].n > 1;
        if (!try_group(c, group, &u->at[at], a, p))
            continue;
        if (more) { /* else the group is gone, and its place may be another's */
            u->at[at].rank = queue_rank(&u->at[at], &c->policy, c->now_ms);
            set_key(u, at);
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

bool core_find_claimed(struct core *c, const struct claim *cl, const struct request *r)
{
    struct cluster *cluster = &c->cluster;
    if (gang_find_on(cluster, r, cl->node, cl->n, &c->scratch, c->slots) || find_place(c, r))
        return true;
    AUTO(free_p) struct node_aside *aside = xcalloc(cl->n + 1, sizeof *aside);
    for (uint32_t i = 0; i < cl->n; i++) {
        aside[i] = node_aside(&cluster->node[cl->node[i]]);
        aside[i].kept = (struct kept){ .job = NONE };
        cluster_swap(cluster, cl->node[i], &aside[i]);
    }
    bool found = find_place(c, r);
    for (uint32_t i = 0; i < cl->n; i++)
        cluster_swap(cluster, cl->node[i], &aside[i]);
    return found;
}

/* Starts the job of one claim, on its own nodes or elsewhere. */
static bool try_claim(struct core *c, uint32_t claim, struct arena *a, struct plan *out)
{
    const struct claim *cl = &c->claim[claim];
    uint32_t job = cl->job;
    struct request narrowed;
    const struct request *r = core_job_allowed(c, &c->queue.job[job], &narrowed);
    out->considered++;
    if (!r || !core_find_claimed(c, cl, r))
        return false;
    core_place(c, job, c->slots, r->replicas, c->now_ms);
    plan_start(out, a, &c->queue.job[job]);
    return true;
}

/* What has to leave the node before its window ends is frozen, and goes on by itself. */
static void hand_back_node(struct core *c, const struct closing *at, const struct node *n,
                           struct arena *a, struct plan *out)
{
    for (uint32_t k = 0; k < n->jobs; k++) {
        uint32_t job = n->job[k];
        if (!closing_is_due(c, at, &c->queue.job[job]))
            continue;
        core_take(c, job, c->now_ms);
        plan_add(out, a, ACT_TAKE, &c->queue.job[job], NULL, 0);
    }
}

static void hand_back_all(struct core *c, const struct closing *at, struct arena *a,
                          struct plan *out)
{
    for (uint32_t i = 0; i < at->n && closing_is_near(c, at); i++)
        hand_back_node(c, at, &c->cluster.node[at->node[i]], a, out);
}

static void hand_back(struct core *c, struct arena *a, struct plan *out)
{
    for (uint32_t i = 0; i < c->cluster.pool_names.n; i++) {
        struct closing at = window_closing(&c->cluster.pool[i]);
        hand_back_all(c, &at, a, out);
    }
    for (uint32_t i = 0; i < c->reservations && c->cluster.reservations; i++) {
        struct closing at = reservation_closing(c, &c->reservation[i]);
        hand_back_all(c, &at, a, out);
    }
}

static int by_id(const void *pa, const void *pb)
{
    uint64_t a = ((const struct action *)pa)->job.v, b = ((const struct action *)pb)->job.v;
    return a < b ? -1 : a > b;
}

/* What is frozen because a tenant above it is closed: only what loses no work, and runs. */
static bool leaves_closed(const struct core *c, const struct job *j, enum take_why *out)
{
    struct refusal by;
    if (j->state != JOB_RUNNING || !j->thaw_cost_ms || j->restarts || !core_closed(c, j->leaf, &by))
        return false;
    *out = by.why == WHY_BUDGET ? TAKE_BUDGET : TAKE_EXPIRED;
    return *out == TAKE_EXPIRED || c->policy.budget_freezes;
}

static void hand_back_closed(struct core *c, struct arena *a, struct plan *out)
{
    size_t first = out->n;
    for (uint32_t i = 0; i < c->queue.holders && c->shares.closed; i++) {
        const struct job *j = &c->queue.job[c->queue.holder[i]];
        enum take_why why;
        if (!leaves_closed(c, j, &why))
            continue;
        core_take(c, c->queue.holder[i], c->now_ms);
        plan_add(out, a, ACT_TAKE, j, NULL, 0);
        out->action[out->n - 1].why = why;
    }
    if (out->n > first) /* holders stand in no order */
        qsort(out->action + first, out->n - first, sizeof *out->action, by_id);
}

/* Jobs that have a promise start when all of its slots are free. */
static void try_promises(struct core *c, struct arena *a, struct plan *out)
{
    for (uint32_t i = 0; i < c->promises;) {
        const struct promise *p = &c->promise[i];
        uint32_t job = p->job, n = p->n;
        const struct job *j = &c->queue.job[job];
        const struct request *r = &c->shapes.at[j->shape].request;
        out->considered++;
        if (j->state == JOB_FREEZING || !cluster_has_room(&c->cluster, r, p->slot, n) ||
            !core_may_have(c, j, p->slot, n)) { /* over a limit: the next pass breaks it */
            i++;
            continue;
        }
        memcpy(c->slots, p->slot, n * sizeof *c->slots);
        core_place(c, job, c->slots, n, c->now_ms);
        plan_start(out, a, &c->queue.job[job]);
    }
}

/* Jobs that room is kept for go first.  Each claim that falls gives room to the others, so again
 * until none moves: afterwards no such job fits, and the order of the rest is not disturbed. */
static void try_claims(struct core *c, struct arena *a, struct plan *out)
{
    for (uint32_t i = 0; i < c->claims;)
        i = try_claim(c, i, a, out) ? 0 : i + 1;
}

/* All that a pass does to the state before it decides anything.  A journal has the decisions only, so
 * restoring does this part again. */
void core_open_pass(struct core *c, int64_t wall_ms)
{
    windows_review(c, wall_ms);
    reservations_review(c, wall_ms);
    rules_review(c, wall_ms);
    core_learn(c);
    windows_learn(c);
    later_due(c, wall_ms);
    forecast_miss(c);
    promises_review(c);
    claims_review(c);
    c->take_looks = 0;
    c->review_all = c->now_ms >= c->review_ms;
    c->new_after = review_turns(c) > 1 ? UINT64_MAX : c->passed_job;
    c->passed_job = c->last_job;
    c->review = c->review_all || c->new_after < c->last_job;
    if (c->review_all)
        c->review_ms = c->now_ms + c->policy.review_ms;
}

void core_pass(struct core *c, int64_t now_ms, struct arena *a, struct plan *out)
{
    core_close_pass(c);
    c->now_ms = MAX(now_ms, c->now_ms);
    c->passes++;
    *out = (struct plan){ 0 };
    ledger_look(c, c->now_ms);
    ledger_count(c, c->now_ms);
    core_open_pass(c, now_ms);
    hand_back(c, a, out);
    hand_back_closed(c, a, out);
    try_promises(c, a, out);
    try_claims(c, a, out);
    wake_for_room(c);
    if (c->queue.ready || c->review) {
        shares_set_levels(&c->shares, c->now_ms);
        ready_users(c);
    }
    while ((c->queue.ready || c->review) && c->shares.at[SHARE_ROOT].ready.n) {
        uint32_t leaf = next_user(c);
        take_turn(c, leaf, a, out);
        reorder(c, leaf);
    }
    leave_heaps(c);
    cluster_forget_freed(&c->cluster);
    claims_make(c, c->now_ms);
    forecast_state(c);
}

/* ---- whose turn it is ---- */

/* Is it the turn of user a before that of user b?  Asked where their ways up meet. */
static bool user_before(const struct shares *s, uint32_t a, uint32_t b)
{
    while (s->at[a].parent != s->at[b].parent)
        if (s->at[a].depth > s->at[b].depth)
            a = s->at[a].parent;
        else
            b = s->at[b].parent;
    return share_before(s, a, b);
}

/* The same user's jobs whose turn is before this one's. */
static uint64_t own_before(struct core *c, const struct job *j, int64_t now_ms, bool *before)
{
    struct user_groups *u = &c->shares.at[j->leaf].groups;
    struct rows_seen seen = { 0 };
    uint32_t own = c->queue.group[j->group].leaf_at;
    uint64_t n = 0;
    for (uint32_t i = 0; i < u->n; i++)
        rate_group(c, j->leaf, i, &seen, now_ms);
    for (uint32_t i = 0; i < u->n; i++) {
        bool first = i != own && group_before(u, i, own);
        n += first ? c->queue.group[u->at[i].group].n : 0;
        if (before)
            before[u->at[i].group] = first;
    }
    for (uint32_t i = j->prev; i != NONE; i = c->queue.job[i].prev)
        n++;
    return n;
}

struct before core_before(struct core *c, uint32_t job, int64_t now_ms, bool *before)
{
    const struct job *j = &c->queue.job[job];
    struct before t = { 0 };
    shares_set_levels(&c->shares, now_ms);
    for (uint32_t i = SHARE_ROOT + 1; i < c->shares.n; i++)
        if (c->shares.at[i].waiting)
            share_set_key(&c->shares, i);
    t.own = own_before(c, j, now_ms, before);
    for (uint32_t i = 0; i < c->shares.n; i++) {
        const struct share *s = &c->shares.at[i];
        if (!s->is_user || !s->waiting || i == j->leaf || !user_before(&c->shares, i, j->leaf))
            continue;
        t.users++;
        for (uint32_t g = 0; g < s->groups.n && before; g++)
            before[s->groups.at[g].group] = true;
    }
    return t;
}

void core_pass_full(struct core *c, int64_t now_ms, struct arena *a, struct plan *out)
{
    queue_wake_all(&c->queue, &c->shapes, &c->shares);
    core_pass(c, now_ms, a, out);
}
