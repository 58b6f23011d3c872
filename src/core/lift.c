#include "core/lift.h"

struct aside {
    uint32_t node;
    struct node_aside was;
};

struct lifting {
    struct core *c;
    const struct job *j;
    struct request *r;
    struct pool_was {
        int64_t left_ms;
        bool always;
    } * was;             /* of each pool, while windows are lifted */
    int64_t *free_ms;    /* of each kind, the same */
    struct aside *aside; /* nodes that are not as they were; one each at most */
    uint32_t n;
    bool any_down, any_kept; /* among the machines that could run it */
    uint64_t all, open;      /* GPU models: that it may take, and that no limit keeps it from */
    uint16_t zone, traits;
};

static bool is_narrow(const struct lifting *l)
{
    return l->open != l->all;
}

/* What it asks for: pools, classes and limits by model are a part of that.  false: there is nothing left. */
static bool ask(const struct lifting *l, unsigned lifts)
{
    l->r->zone = lifts & LIFT_POOLS ? 0 : l->zone;
    l->r->traits = lifts & LIFT_TRAITS ? 0 : l->traits;
    if (is_narrow(l))
        l->r->models = lifts & LIFT_MODELS ? l->all : l->open;
    return !is_narrow(l) || l->r->models;
}

/* Are the GPUs that are free there enough for a replica, if CPUs and memory were? */
static bool has_gpus(const struct kind *k, const struct room *free, const struct request *r)
{
    struct room m = kind_room(k);
    memcpy(m.gpu, free->gpu, sizeof m.gpu);
    return room_replicas(k, &m, r, 1) > 0;
}

/* Gives what the node would be; false: it stays as it is. */
static bool lifted(const struct lifting *l, const struct node *n, unsigned lifts,
                   struct node_aside *out)
{
    const struct kind *k = &l->c->cluster.kind[n->kind];
    struct node_aside is = node_aside(n), to = is;
    if (!kind_allows(k, l->r))
        return false;
    if (lifts & (LIFT_KEPT | LIFT_BUSY)) {
        to.kept = (struct kept){ .job = NONE };
        to.promised = (struct room){ 0 };
        to.promises = 0;
    }
    if (lifts & LIFT_DOWN)
        to.state = NODE_UP;
    if (lifts & LIFT_BUSY)
        to.room = kind_room(k);
    else if (has_gpus(k, &to.room, l->r)) {
        to.room.cpu_milli = lifts & LIFT_CPU ? k->cpu_milli : to.room.cpu_milli;
        to.room.mem_mib = lifts & LIFT_MEM ? k->mem_mib : to.room.mem_mib;
        if (lifts & LIFT_DEVICE)
            memcpy(to.room.device, k->device_n, sizeof to.room.device);
    }
    *out = to;
    return to.state != is.state || to.kept.job != is.kept.job || to.promises != is.promises ||
           memcmp(&to.room, &is.room, sizeof is.room) != 0;
}

/* As a pass searches: a job that room is kept for looks there first. */
static bool finds_room(const struct lifting *l)
{
    struct core *c = l->c;
    for (uint32_t i = 0; l->j->has_claim && i < c->claims; i++) {
        const struct claim *cl = &c->claim[i];
        if (&c->queue.job[cl->job] == l->j)
            return core_find_claimed(c, cl, l->r);
    }
    return place_find(&c->cluster, &c->demand, l->r, &c->scratch, c->slots);
}

/* Every pool is open for ever and nothing is reserved, or it is as it was. */
static void lift_windows(const struct lifting *l, bool lift)
{
    struct cluster *cl = &l->c->cluster;
    for (uint32_t k = 0; k < cl->kinds; k++) {
        if (lift)
            l->free_ms[k] = cl->kind[k].free_ms;
        cl->kind[k].free_ms = lift ? INT64_MAX : l->free_ms[k];
    }
    for (uint32_t p = 0; p < cl->pool_names.n; p++) {
        struct pool *pool = &cl->pool[p];
        if (lift)
            l->was[p] = (struct pool_was){ pool->left_ms, pool->always };
        pool->always = lift || l->was[p].always;
        cluster_set_left(cl, p, lift ? INT64_MAX : l->was[p].left_ms);
    }
}

static bool fits(struct lifting *l, unsigned lifts)
{
    struct cluster *cl = &l->c->cluster;
    if (!ask(l, lifts))
        return false;
    if (lifts & LIFT_WINDOW)
        lift_windows(l, true);
    for (uint32_t i = 0; i < cl->nodes && lifts; i++) {
        struct aside *a = &l->aside[l->n];
        a->node = i;
        if (!lifted(l, &cl->node[i], lifts, &a->was))
            continue;
        cluster_swap(cl, i, &a->was);
        l->n++;
    }
    uint16_t reservation = l->r->reservation;
    if (lifts & LIFT_WINDOW)
        l->r->reservation = 0;
    bool yes = finds_room(l);
    l->r->reservation = reservation;
    while (l->n) {
        struct aside *a = &l->aside[--l->n];
        cluster_swap(cl, a->node, &a->was);
    }
    if (lifts & LIFT_WINDOW)
        lift_windows(l, false);
    return yes;
}

static void look_around(struct lifting *l)
{
    const struct cluster *cl = &l->c->cluster;
    for (uint32_t i = 0; i < cl->nodes; i++) {
        const struct node *n = &cl->node[i];
        if (!kind_allows(&cl->kind[n->kind], l->r))
            continue;
        l->any_down = l->any_down || n->state != NODE_UP;
        l->any_kept = l->any_kept || n->kept.job != NONE || n->promises;
    }
}

/* Begins with everything and leaves out one after the other what need not be: the larger first, so
 * that what stays is what is nearest to hand. */
static unsigned leave_out(struct lifting *l)
{
    static const unsigned order[] = { LIFT_TRAITS, LIFT_POOLS,  LIFT_MODELS, LIFT_DOWN, LIFT_BUSY,
                                      LIFT_WINDOW, LIFT_DEVICE, LIFT_MEM,    LIFT_CPU,  LIFT_KEPT };
    unsigned set = 0;
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        set |= order[i];
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        unsigned lift = order[i];
        bool is_none =
            (lift == LIFT_DOWN && !l->any_down) || (lift == LIFT_KEPT && !l->any_kept) ||
            (lift == LIFT_POOLS && l->zone == 0) || (lift == LIFT_TRAITS && l->traits == 0) ||
            (lift == LIFT_MODELS && !is_narrow(l)) ||
            (lift == LIFT_DEVICE && !request_has_devices(l->r)) ||
            (lift == LIFT_WINDOW && l->c->cluster.windows == 0 && l->c->cluster.reservations == 0);
        bool is_less = lift & (LIFT_DEVICE | LIFT_MEM | LIFT_CPU | LIFT_KEPT) && set & LIFT_BUSY;
        if (is_none || is_less || fits(l, set & ~lift))
            set &= ~lift;
    }
    return set;
}

unsigned lift_least(struct core *c, const struct job *j)
{
    struct request r = window_request(c, j);
    struct lifting l = { .c = c, .j = j, .r = &r, .zone = r.zone, .traits = r.traits };
    struct err never;
    uint32_t by;
    l.all = request_models(c, &r);
    l.open = core_gpu_milli(c, &r) && c->shares.ruled
               ? core_open_models(c, j->leaf, &r, (struct gone){ 0 }, &by)
               : l.all;
    if (ask(&l, 0) && finds_room(&l))
        return 0;
    ask(&l, LIFT_POOLS | LIFT_MODELS | LIFT_TRAITS);
    if (place_check_possible(&c->cluster, l.r, &never) < 0)
        return LIFT_NEVER;
    AUTO(free_p) struct aside *aside = xcalloc(c->cluster.nodes + 1, sizeof *aside);
    AUTO(free_p) struct pool_was *was = xcalloc(c->cluster.pool_names.n + 1, sizeof *was);
    AUTO(free_p) int64_t *free_ms = xcalloc(c->cluster.kinds + 1, sizeof *free_ms);
    l.aside = aside;
    l.was = was;
    l.free_ms = free_ms;
    look_around(&l);
    return leave_out(&l);
}
