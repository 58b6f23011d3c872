/* Claims: the jobs that are next have room reserved, with the time at which they will start there, so
 * that small jobs which always fit somewhere cannot starve a large one, nor take the share of a
 * tenant with large ones.  The tenant that is next by its share goes first, with its oldest such
 * job.  Only as much of a node is kept as the job needs, for one job a node; what runs on it runs
 * on.  Others use the kept room if that delays nobody: they end before, or are frozen then. */
#include "core/state.h"

#define CHECK_EVERY_MS (60 * INT64_C(1000))
#define SURELY 0.9   /* of the cases: when a job that borrows kept room is surely gone */
#define FAILS_MAX 16 /* jobs looked at in one check whose machines are down or kept already */

static void release(struct core *c, struct claim *cl)
{
    shares_keep(&c->shares, c->queue.job[cl->job].leaf, -cl->cost_milli);
    for (uint32_t i = 0; i < cl->n; i++)
        cluster_unkeep(&c->cluster, cl->node[i]);
    free(cl->node);
}

void claims_drop(struct core *c, uint32_t job)
{
    if (!c->queue.job[job].has_claim)
        return;
    c->queue.job[job].has_claim = false;
    for (uint32_t i = 0; i < c->claims; i++)
        if (c->claim[i].job == job) {
            release(c, &c->claim[i]);
            memmove(c->claim + i, c->claim + i + 1, (c->claims - i - 1) * sizeof *c->claim);
            c->claims--;
            return;
        }
}

/* Nobody on the way up has had more than the siblings: a tenant above its share waits for a
 * reason. */
static bool is_owed(const struct core *c, uint32_t leaf)
{
    for (uint32_t i = leaf; i != NONE; i = c->shares.at[i].parent)
        if (!share_is_owed(&c->shares, i))
            return false;
    return true;
}

bool core_is_overdue(const struct core *c, const struct job *j, int64_t now_ms)
{
    return now_ms - j->wait_ms >= c->policy.claim_after_ms && is_owed(c, j->leaf);
}

/* Waits for room, and has waited too long.  Asked of the state as it is, not of what the last try
 * found: a pass that tried fewer groups must come to the same claims. */
static bool is_overdue(const struct core *c, uint32_t group, int64_t now_ms)
{
    const struct group *g = &c->queue.group[group];
    struct request narrowed;
    if (g->n == 0)
        return false;
    const struct job *j = &c->queue.job[g->first];
    return now_ms - j->since_ms >= c->policy.claim_after_ms && !j->has_claim &&
           is_owed(c, g->leaf) && core_job_allowed(c, j, &narrowed);
}

static bool group_older(const struct core *c, uint32_t a, uint32_t b)
{
    return c->queue.job[c->queue.group[a].first].id < c->queue.job[c->queue.group[b].first].id;
}

/* Of the shares below `parent` that have an overdue group, the one that is next by its share. */
static uint32_t next_share(struct core *c, uint32_t parent, const uint32_t *oldest)
{
    uint32_t best = NONE;
    for (uint32_t i = 0; i < c->shares.n; i++) {
        if (c->shares.at[i].parent != parent || oldest[i] == NONE)
            continue;
        share_set_key(&c->shares, i);
        if (best == NONE || share_before(&c->shares, i, best))
            best = i;
    }
    return best;
}

/* Remembers the oldest overdue group of each share from the user upwards. */
static void note_overdue(const struct core *c, uint32_t group, uint32_t *oldest)
{
    for (uint32_t i = c->queue.group[group].leaf; i != NONE; i = c->shares.at[i].parent)
        if (oldest[i] == NONE || group_older(c, group, oldest[i]))
            oldest[i] = group;
}

/* The overdue group that is next in the order of the policy, without those in `tried`. */
static uint32_t next_overdue(struct core *c, const uint8_t *tried, int64_t now_ms)
{
    AUTO(free_p) uint32_t *oldest = xcalloc(c->shares.n, sizeof *oldest);
    memset(oldest, 0xFF, c->shares.n * sizeof *oldest); /* NONE */
    for (uint32_t g = 0; g < c->queue.groups; g++)
        if (!tried[g] && is_overdue(c, g, now_ms))
            note_overdue(c, g, oldest);
    if (oldest[SHARE_ROOT] == NONE)
        return NONE;
    uint32_t share = SHARE_ROOT;
    while (!c->shares.at[share].is_user)
        share = next_share(c, share, oldest);
    return oldest[share];
}

struct offer {
    uint32_t node, k, busy; /* replicas on the idle node; GPU thousandths in use now */
    int64_t ready_ms;       /* when it will have room for them */
};

static int few_nodes_first(const void *pa, const void *pb)
{
    const struct offer *a = pa, *b = pb;
    if (a->k != b->k)
        return a->k > b->k ? -1 : 1;
    if (a->busy != b->busy)
        return a->busy < b->busy ? -1 : 1;
    return a->node < b->node ? -1 : 1;
}

static int soonest_first(const void *pa, const void *pb)
{
    const struct offer *a = pa, *b = pb;
    if (a->ready_ms != b->ready_ms)
        return a->ready_ms < b->ready_ms ? -1 : 1;
    return few_nodes_first(pa, pb);
}

struct ending {
    uint32_t job;
    int64_t end_ms;
};

static int by_end(const void *pa, const void *pb)
{
    const struct ending *a = pa, *b = pb;
    if (a->end_ms != b->end_ms)
        return a->end_ms < b->end_ms ? -1 : 1;
    return a->job < b->job ? -1 : a->job > b->job;
}

/* Adds what the job holds on this node to the room. */
static void give_back(const struct core *c, uint32_t job, uint32_t node, struct room *m)
{
    const struct job *j = &c->queue.job[job];
    const struct request *r = &c->shapes.at[j->shape].request;
    const struct kind *k = &c->cluster.kind[c->cluster.node[node].kind];
    for (uint32_t s = 0; s < j->held->n; s++)
        if (j->held->slot[s].node == node)
            room_give(k, m, r, j->held->slot[s].gpu_mask, j->held->slot[s].milli);
}

/* When so many replicas fit on the node, as what runs there is expected to end. */
static int64_t node_ready_ms(const struct core *c, uint32_t node, const struct request *r,
                             uint32_t k)
{
    const struct node *nd = &c->cluster.node[node];
    const struct kind *kind = &c->cluster.kind[nd->kind];
    struct room m = nd->room;
    int64_t ready_ms = c->now_ms;
    AUTO(free_p) struct ending *list = xcalloc(nd->jobs + 1, sizeof *list);
    for (uint32_t i = 0; i < nd->jobs; i++)
        list[i] =
            (struct ending){ nd->job[i], core_end_ms(c, &c->queue.job[nd->job[i]], EXPECTED) };
    qsort(list, nd->jobs, sizeof *list, by_end);
    for (uint32_t i = 0; i < nd->jobs && room_replicas(kind, &m, r, k) < k; i++) {
        give_back(c, list[i].job, node, &m);
        ready_ms = list[i].end_ms;
    }
    return ready_ms;
}

/* What each node could give once it is idle; with `net_switch` only those behind it. */
static uint32_t gather(const struct core *c, const struct request *r, uint32_t net_switch,
                       struct offer *out)
{
    const struct cluster *cl = &c->cluster;
    uint32_t n = 0, max = r->layout == LAYOUT_SPREAD ? 1 : r->replicas;
    bool one_node = r->scope == SCOPE_NODE || (r->scope == SCOPE_SWITCH && net_switch == NONE);
    for (uint32_t i = 0; i < cl->nodes; i++) {
        const struct node *nd = &cl->node[i];
        const struct kind *k = &cl->kind[nd->kind];
        if (!node_takes(cl, nd, r) || nd->kept.job != NONE ||
            (net_switch != NONE && nd->net_switch != net_switch))
            continue;
        struct room idle = kind_room(k);
        uint32_t fits = room_replicas(k, &idle, r, max), busy = 0;
        if (fits == 0 || (one_node && fits < r->replicas))
            continue;
        int64_t ready_ms = node_ready_ms(c, i, r, MIN(fits, r->replicas));
        if (!window_takes_in(k, r, ready_ms - c->now_ms))
            continue;
        for (int g = 0; g < k->gpus; g++)
            busy += GPU_MILLI - nd->room.gpu[g];
        out[n++] = (struct offer){ i, fits, busy, ready_ms };
    }
    return n;
}

/* How many of the sorted offers are needed; 0 when all are not enough. */
static uint32_t enough(const struct offer *o, uint32_t n, uint32_t replicas)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        if ((sum += o[i].k) >= replicas)
            return i + 1;
    return 0;
}

static uint32_t choose(const struct core *c, const struct request *r, struct offer *o)
{
    uint32_t switches = r->scope == SCOPE_SWITCH ? (uint32_t)c->cluster.switches.n : 0;
    for (uint32_t s = 0; s <= switches; s++) { /* the switches, then machines without one */
        uint32_t n = gather(c, r, s < switches ? s : NONE, o);
        qsort(o, n, sizeof *o, r->layout == LAYOUT_FEWEST ? few_nodes_first : soonest_first);
        uint32_t need = enough(o, n, r->replicas);
        if (need)
            return need;
    }
    return 0;
}

/* Would it fit if all that can be frozen were gone?  Then taking back gives it room when it is its
 * turn, and nothing has to stand empty until then. */
static bool fits_by_freezing(const struct core *c, const struct request *r)
{
    const struct cluster *cl = &c->cluster;
    uint64_t fits = 0;
    for (uint32_t i = 0; i < cl->nodes && fits < r->replicas && c->policy.take_back; i++) {
        const struct node *nd = &cl->node[i];
        struct room m = nd->room;
        if (!node_takes(cl, nd, r))
            continue;
        for (uint32_t k = 0; k < nd->jobs; k++)
            if (c->queue.job[nd->job[k]].thaw_cost_ms)
                give_back(c, nd->job[k], i, &m);
        uint32_t here = room_replicas(&cl->kind[nd->kind], &m, r, r->replicas);
        fits += r->scope == SCOPE_NODE && here < r->replicas ? 0 : here;
    }
    return fits >= r->replicas;
}

static bool make_one(struct core *c, uint32_t job)
{
    struct request narrowed;
    const struct request *r = core_job_allowed(c, &c->queue.job[job], &narrowed);
    if (!r || fits_by_freezing(c, r))
        return false;
    AUTO(free_p) struct offer *o = xcalloc(c->cluster.nodes + 1, sizeof *o);
    uint32_t n = choose(c, r, o);
    if (n == 0)
        return false;
    vec_grow(c->claim, c->claims, c->claim_cap);
    struct claim *cl = &c->claim[c->claims++];
    *cl = (struct claim){ .job = job, .node = xcalloc(n, sizeof *cl->node), .n = n };
    cl->cost_milli = core_next_cost_milli(c, r);
    shares_keep(&c->shares, c->queue.job[job].leaf, cl->cost_milli);
    uint32_t left = r->replicas;
    cl->start_ms = c->now_ms;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t here = MIN(left, o[i].k);
        cl->start_ms = MAX(cl->start_ms, o[i].ready_ms);
        cl->node[i] = o[i].node;
        cluster_keep(&c->cluster, o[i].node, job, r, here);
        left -= here;
    }
    c->queue.job[job].has_claim = true;
    return true;
}

/* May its job start on its nodes?  Not if the window of one of them will end too early for it. */
static bool is_good(const struct core *c, const struct claim *cl)
{
    struct request narrowed;
    const struct request *r = core_job_allowed(c, &c->queue.job[cl->job], &narrowed);
    for (uint32_t i = 0; r && i < cl->n; i++)
        if (!kind_takes(&c->cluster.kind[c->cluster.node[cl->node[i]].kind], r))
            return false;
    return r;
}

void claims_review(struct core *c)
{
    for (uint32_t i = 0; i < c->claims;) {
        uint32_t job = c->claim[i].job;
        if (!c->queue.job[job].promised && is_good(c, &c->claim[i]))
            i++;
        else
            claims_drop(c, job);
    }
}

void claims_make(struct core *c, int64_t now_ms)
{
    if (now_ms < c->claim_check_ms || c->claims >= (uint64_t)c->policy.claims_max)
        return;
    c->claim_check_ms = now_ms + CHECK_EVERY_MS;
    shares_set_levels(&c->shares, now_ms);
    AUTO(free_p) uint8_t *tried = xcalloc(c->queue.groups + 1, 1);
    for (int fails = 0; fails < FAILS_MAX && c->claims < (uint64_t)c->policy.claims_max;) {
        uint32_t group = next_overdue(c, tried, now_ms);
        if (group == NONE)
            return;
        tried[group] = 1;
        fails += !make_one(c, c->queue.group[group].first);
    }
}

/* Is the job gone, or can it be frozen, when the claim's own job starts? */
static bool may_borrow(const struct core *c, const struct claim *cl, const struct job *j)
{
    bool can_freeze = c->policy.take_back && j->thaw_cost_ms && !j->restarts;
    return can_freeze || core_end_ms(c, j, SURELY) <= cl->start_ms;
}

bool claim_suits(const struct request *r)
{
    return r->replicas == 1 || (r->scope != SCOPE_SWITCH && r->layout != LAYOUT_FEWEST);
}

bool claims_lend(struct core *c, uint32_t job, const struct request *r)
{
    const struct job *j = &c->queue.job[job];
    if (j->has_claim || !claim_suits(r)) /* its claim would fall in the middle of a pass */
        return false;
    for (uint32_t i = 0; i < c->claims; i++) {
        const struct claim *cl = &c->claim[i];
        if (cl->job != job && may_borrow(c, cl, j) &&
            gang_find_on(&c->cluster, r, cl->node, cl->n, &c->scratch, c->slots))
            return true;
    }
    return false;
}
