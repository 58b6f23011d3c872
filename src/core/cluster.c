#include "core/cluster.h"

#include <stdio.h>

void cluster_init(struct cluster *c)
{
    *c = (struct cluster){ .cell_free = NONE };
    for (int m = 0; m < MODELS_MAX; m++)
        c->model_cost_milli[m] = 1000;
}

void cluster_free(struct cluster *c)
{
    for (uint32_t k = 0; k < c->kinds; k++)
        for (uint32_t r = 0; r < ROWS; r++)
            free(c->kind[k].row[r].at);
    for (uint32_t i = 0; i < c->cells; i++)
        free(c->cell[i].node);
    for (uint32_t i = 0; i < c->nodes; i++)
        free(c->node[i].job);
    for (uint32_t i = 0; i < c->nodes; i++)
        free(c->node[i].name);
    free(c->kind);
    free(c->cell);
    free(c->node);
    for (uint32_t i = 0; i < c->switches.n; i++)
        free(c->net_switch[i].node);
    free(c->net_switch);
    for (uint32_t i = 0; i < c->pool_names.n; i++)
        free(c->pool[i].node);
    free(c->pool);
    free(c->freed);
    map_free(&c->cell_by_hash);
    names_free(&c->models);
    names_free(&c->switches);
    names_free(&c->node_names);
    names_free(&c->pool_names);
}

/* ---- cells ---- */

/* Sorted inside each link group, most free first: equal nodes get equal rooms. */
static struct room canonical(const struct kind *k, const struct room *m)
{
    struct room out = *m;
    for (int g = 1; g < k->gpus; g++) {
        uint16_t v = out.gpu[g];
        int to = g;
        for (int h = g - 1; h >= 0; h--) {
            if (k->link[h] != k->link[g])
                continue;
            if (out.gpu[h] >= v)
                break;
            out.gpu[to] = out.gpu[h];
            to = h;
        }
        out.gpu[to] = v;
    }
    return out;
}

static uint64_t room_hash(uint32_t kind, const struct room *m)
{
    uint64_t h = 0x9E3779B97F4A7C15ull * (kind + 1), w;
    for (size_t at = 0; at < sizeof *m; at += sizeof w) {
        memcpy(&w, (const char *)m + at, sizeof w);
        h = (h ^ w) * 0xBF58476D1CE4E5B9ull;
        h ^= h >> 29;
    }
    return h;
}
_Static_assert(sizeof(struct room) % sizeof(uint64_t) == 0, "a room is hashed in words");

static uint32_t row_index(const struct cell *ce)
{
    return ce->whole ? ROW_WHOLE + ce->whole : row_of_part(ce->best_part);
}

/* By free CPUs, then memory, then GPUs: the order says nothing about what happened before.  What
 * lies in the row decides nearly always; cells are all over the memory. */
static int cell_order(const struct cluster *c, const struct row_cell *a, const struct cell *b)
{
    if (a->cpu_milli != b->room.cpu_milli)
        return a->cpu_milli < b->room.cpu_milli ? -1 : 1;
    if (a->mem_mib != b->room.mem_mib)
        return a->mem_mib < b->room.mem_mib ? -1 : 1;
    return memcmp(c->cell[a->cell].room.gpu, b->room.gpu, sizeof b->room.gpu);
}

static uint32_t row_search(const struct cluster *c, const struct row *r, const struct cell *ce)
{
    uint32_t lo = 0, hi = r->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (cell_order(c, &r->at[mid], ce) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void row_add(struct cluster *c, uint32_t cell)
{
    const struct cell *ce = &c->cell[cell];
    struct row *r = &c->kind[ce->kind].row[row_index(ce)];
    uint32_t at = row_search(c, r, ce);
    vec_grow(r->at, r->n, r->cap);
    memmove(r->at + at + 1, r->at + at, (r->n - at) * sizeof *r->at);
    r->at[at] = (struct row_cell){
        .cell = cell,
        .cpu_milli = ce->room.cpu_milli,
        .mem_mib = ce->room.mem_mib,
        .gpu_free = ce->gpu_free,
        .best_part = ce->whole ? GPU_MILLI : ce->best_part,
        .part = ce->best_part,
    };
    r->n++;
    r->strand_epoch = 0;
    c->kind[ce->kind].rows_used |= 1u << row_index(ce);
}

static void row_remove(struct cluster *c, uint32_t cell)
{
    const struct cell *ce = &c->cell[cell];
    struct row *r = &c->kind[ce->kind].row[row_index(ce)];
    uint32_t at = row_search(c, r, ce);
    memmove(r->at + at, r->at + at + 1, (r->n - at - 1) * sizeof *r->at);
    if (--r->n == 0)
        c->kind[ce->kind].rows_used &= ~(1u << row_index(ce));
}

static uint32_t cell_new(struct cluster *c)
{
    uint32_t i = c->cell_free;
    if (i != NONE) {
        c->cell_free = c->cell[i].next;
        return i;
    }
    vec_grow(c->cell, c->cells, c->cell_cap);
    c->cell[c->cells] = (struct cell){ 0 };
    return c->cells++;
}

static uint32_t cell_of(struct cluster *c, uint32_t kind, const struct room *exact)
{
    const struct kind *k = &c->kind[kind];
    struct room m = canonical(k, exact);
    uint64_t hash = room_hash(kind, &m), hit = NONE;
    uint32_t first = map_get(&c->cell_by_hash, hash, &hit) ? (uint32_t)hit : NONE;
    for (uint32_t i = first; i != NONE; i = c->cell[i].next)
        if (c->cell[i].kind == kind && memcmp(&c->cell[i].room, &m, sizeof m) == 0)
            return i;
    uint32_t i = cell_new(c);
    struct cell *ce = &c->cell[i];
    *ce = (struct cell){ .room = m,
                         .kind = kind,
                         .next = first,
                         .born = ++c->cells_born,
                         .node = ce->node,
                         .cap = ce->cap };
    for (int g = 0; g < k->gpus; g++) {
        ce->gpu_free = (uint16_t)(ce->gpu_free + m.gpu[g]);
        if (m.gpu[g] == GPU_MILLI)
            ce->whole++;
        else if (m.gpu[g] > ce->best_part)
            ce->best_part = m.gpu[g];
    }
    map_set(&c->cell_by_hash, hash, i);
    row_add(c, i);
    c->cells_live++;
    return i;
}

static void cell_drop(struct cluster *c, uint32_t cell)
{
    struct cell *ce = &c->cell[cell];
    uint64_t hash = room_hash(ce->kind, &ce->room), hit = NONE;
    map_get(&c->cell_by_hash, hash, &hit);
    if (hit == cell && ce->next == NONE) {
        map_remove(&c->cell_by_hash, hash);
    } else if (hit == cell) {
        map_set(&c->cell_by_hash, hash, ce->next);
    } else {
        uint32_t i = (uint32_t)hit;
        while (c->cell[i].next != cell)
            i = c->cell[i].next;
        c->cell[i].next = ce->next;
    }
    row_remove(c, cell);
    ce->next = c->cell_free;
    c->cell_free = cell;
    c->cells_live--;
}

/* The lowest node number is last, where it is taken from. */
static uint32_t cell_search(const struct cell *ce, uint32_t node)
{
    uint32_t lo = 0, hi = ce->n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (ce->node[mid] > node)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Zeroes the `n` freest GPUs of link group `link` (NONE: of all); gives what was free of them. */
static uint32_t keep_freest(const struct kind *k, struct room *m, uint32_t n, uint32_t link)
{
    uint32_t sum = 0;
    for (; n; n--) {
        int freest = -1;
        for (int g = 0; g < k->gpus; g++)
            if ((link == NONE || k->link[g] == link) && (freest < 0 || m->gpu[g] > m->gpu[freest]))
                freest = g;
        if (freest < 0)
            break;
        sum += m->gpu[freest];
        m->gpu[freest] = 0;
    }
    return sum;
}

static uint32_t link_size(const struct kind *k, uint32_t link)
{
    uint32_t n = 0;
    for (int g = 0; g < k->gpus; g++)
        n += k->link[g] == link;
    return n;
}

/* The freest GPUs are the kept ones; for linked ones those of the freest group that is large
 * enough.  Jobs start on the others only, so what is free of the kept ones never shrinks, and it
 * grows as jobs end: the job they are kept for will start. */
static struct room make_offer(const struct kind *k, const struct node *n)
{
    struct room m = n->room, best;
    uint32_t most = 0;
    bool found = false;
    for (int g = 0; g < k->gpus && n->promises; g++)
        m.gpu[g] = (uint16_t)(m.gpu[g] - MIN(m.gpu[g], n->promised.gpu[g]));
    m.cpu_milli -= MIN(m.cpu_milli, n->promised.cpu_milli);
    m.mem_mib -= MIN(m.mem_mib, n->promised.mem_mib);
    if (n->kept.job == NONE)
        return m;
    m.cpu_milli -= MIN(m.cpu_milli, n->kept.cpu_milli);
    m.mem_mib -= MIN(m.mem_mib, n->kept.mem_mib);
    if (!n->kept.linked) {
        keep_freest(k, &m, n->kept.gpus, NONE);
        return m;
    }
    for (uint32_t link = 0; link < k->links; link++) {
        struct room try = m;
        if (link_size(k, link) < n->kept.gpus)
            continue;
        uint32_t sum = keep_freest(k, &try, n->kept.gpus, link);
        if (!found || sum > most)
            best = try;
        most = MAX(most, sum);
        found = true;
    }
    return found ? best : m;
}

static void node_leave_cell(struct cluster *c, uint32_t node)
{
    uint32_t cell = c->node[node].cell;
    if (cell == NONE)
        return;
    struct cell *ce = &c->cell[cell];
    uint32_t at = cell_search(ce, node);
    memmove(ce->node + at, ce->node + at + 1, (ce->n - at - 1) * sizeof *ce->node);
    c->node[node].cell = NONE;
    c->kind[ce->kind].whole -= ce->whole;
    c->kind[ce->kind].gpu_free -= ce->gpu_free;
    if (c->node[node].net_switch != NONE)
        c->net_switch[c->node[node].net_switch].whole -= ce->whole;
    if (--ce->n == 0)
        cell_drop(c, cell);
}

static void node_enter_cell(struct cluster *c, uint32_t node)
{
    struct node *n = &c->node[node];
    n->offer = make_offer(&c->kind[n->kind], n);
    if (!node_is_offered(c, n))
        return;
    n->cell = cell_of(c, n->kind, &n->offer);
    struct cell *ce = &c->cell[n->cell];
    uint32_t at = cell_search(ce, node);
    vec_grow(ce->node, ce->n, ce->cap);
    memmove(ce->node + at + 1, ce->node + at, (ce->n - at) * sizeof *ce->node);
    ce->node[at] = node;
    ce->n++;
    c->kind[n->kind].whole += ce->whole;
    c->kind[n->kind].gpu_free += ce->gpu_free;
    if (n->net_switch != NONE)
        c->net_switch[n->net_switch].whole += ce->whole;
}

static void node_mark_freed(struct cluster *c, uint32_t node)
{
    if (c->node[node].freed)
        return;
    c->node[node].freed = true;
    vec_grow(c->freed, c->freed_n, c->freed_cap);
    c->freed[c->freed_n++] = node;
}

void cluster_forget_freed(struct cluster *c)
{
    for (uint32_t i = 0; i < c->freed_n; i++)
        c->node[c->freed[i]].freed = false;
    c->freed_n = 0;
}

/* ---- nodes ---- */

static uint64_t room_gpu_milli(const struct room *m)
{
    uint64_t sum = 0;
    for (int g = 0; g < GPUS_PER_NODE_MAX; g++)
        sum += m->gpu[g];
    return sum;
}

/* The cluster's totals count the nodes that are offered. */
static void count_node(struct cluster *c, const struct node *n, bool add)
{
    const struct kind *k = &c->kind[n->kind];
    const uint64_t total[] = { (uint64_t)k->gpus * GPU_MILLI, k->cpu_milli, k->mem_mib };
    const uint64_t room[] = { room_gpu_milli(&n->room), n->room.cpu_milli, n->room.mem_mib };
    if (!node_is_offered(c, n))
        return;
    for (size_t r = 0; r < ARRAY_LEN(total); r++) {
        c->total.of[r] = add ? c->total.of[r] + total[r] : c->total.of[r] - total[r];
        c->free.of[r] = add ? c->free.of[r] + room[r] : c->free.of[r] - room[r];
    }
    if (k->gpus)
        c->model_gpus[k->model] += add ? k->gpus : -(uint32_t)k->gpus;
}

/* The kind with these figures, made when it is not there yet. */
static uint32_t kind_like(struct cluster *c, const struct kind *want)
{
    for (uint32_t i = 0; i < c->kinds; i++) {
        const struct kind *k = &c->kind[i];
        if (k->model == want->model && k->pool == want->pool && k->reserved == want->reserved &&
            k->gpu_mem_mib == want->gpu_mem_mib && k->cpu_milli == want->cpu_milli &&
            k->mem_mib == want->mem_mib && k->gpus == want->gpus &&
            memcmp(k->link, want->link, sizeof want->link) == 0)
            return i;
    }
    struct kind made = *want;
    made.left_ms = made.pool != NONE ? c->pool[made.pool].left_ms : INT64_MAX;
    vec_grow(c->kind, c->kinds, c->kind_cap);
    c->kind[c->kinds] = made;
    c->version++;
    return c->kinds++;
}

static uint32_t kind_of(struct cluster *c, const struct event_node *n, uint32_t model,
                        uint32_t pool)
{
    struct kind want = { .model = model,
                         .pool = pool,
                         .free_ms = INT64_MAX,
                         .gpu_mem_mib = n->gpu_mem_mib,
                         .cpu_milli = n->cpu_milli,
                         .mem_mib = n->mem_mib,
                         .gpus = (uint8_t)n->gpus,
                         .links = 1 };
    for (uint32_t g = 0; g < n->gpus; g++) {
        want.link[g] = n->link[g];
        if (n->link[g] >= want.links)
            want.links = (uint8_t)(n->link[g] + 1);
    }
    return kind_like(c, &want);
}

static int check_node(const struct cluster *c, const struct event_node *n, struct err *e)
{
    if (n->name.n == 0 || n->name.n > NAME_MAX_BYTES)
        return err_set(e, ERR_INVALID, "a node needs a name of 1 to %d bytes", NAME_MAX_BYTES);
    if (n->gpus > GPUS_PER_NODE_MAX)
        return err_set(e, ERR_INVALID, "node '%.*s': %u GPUs; at most %d are supported",
                       STR_ARG(n->name), n->gpus, GPUS_PER_NODE_MAX);
    if (n->gpus && n->model.n == 0)
        return err_set(e, ERR_INVALID, "node '%.*s' has GPUs but no GPU model", STR_ARG(n->name));
    for (uint32_t g = 0; g < n->gpus; g++)
        if (n->link[g] >= n->gpus)
            return err_set(e, ERR_INVALID,
                           "node '%.*s': link group %u of GPU %u; groups are numbered from 0",
                           STR_ARG(n->name), n->link[g], g);
    if (names_find(&c->node_names, n->name) != NAME_NONE) {
        err_set(e, ERR_CONFLICT, "node '%.*s' is enrolled already", STR_ARG(n->name));
        return err_hint(e, "give each machine its own name");
    }
    if (n->pool.n && names_find(&c->pool_names, n->pool) == NAME_NONE)
        return err_set(e, ERR_NOT_FOUND, "node '%.*s': there is no pool '%.*s'", STR_ARG(n->name),
                       STR_ARG(n->pool));
    if (n->gpus && c->models.n >= MODELS_MAX && names_find(&c->models, n->model) == NAME_NONE)
        return err_set(e, ERR_TOO_LARGE, "node '%.*s': more than %d GPU models in one cluster",
                       STR_ARG(n->name), MODELS_MAX);
    return 0;
}

static uint32_t switch_of(struct cluster *c, struct str name, uint32_t node)
{
    if (name.n == 0)
        return NONE;
    uint32_t i = names_find(&c->switches, name);
    if (i == NAME_NONE) {
        vec_grow(c->net_switch, c->switches.n, c->net_switch_cap);
        i = names_intern(&c->switches, name);
        c->net_switch[i] = (struct net_switch){ 0 };
    }
    struct net_switch *sw = &c->net_switch[i];
    vec_grow(sw->node, sw->n, sw->cap);
    sw->node[sw->n++] = node;
    return i;
}

uint32_t cluster_pool(struct cluster *c, struct str name)
{
    uint32_t i = names_find(&c->pool_names, name);
    if (i != NAME_NONE)
        return i;
    vec_grow(c->pool, c->pool_names.n, c->pool_cap);
    i = names_intern(&c->pool_names, name);
    c->pool[i] = (struct pool){ .calendar = calendar_always(),
                                .always = true,
                                .open = true,
                                .from_ms = INT64_MIN,
                                .change_ms = INT64_MAX,
                                .left_ms = INT64_MAX };
    return i;
}

/* In order of nodes, whatever led here. */
static void pool_enter(struct cluster *c, uint32_t pool, uint32_t node)
{
    struct pool *p = &c->pool[pool];
    uint32_t at = p->n;
    vec_grow(p->node, p->n, p->cap);
    for (; at > 0 && p->node[at - 1] > node; at--)
        p->node[at] = p->node[at - 1];
    p->node[at] = node;
    p->n++;
}

static void pool_leave(struct cluster *c, uint32_t pool, uint32_t node)
{
    struct pool *p = &c->pool[pool];
    uint32_t at = 0;
    while (p->node[at] != node)
        at++;
    for (p->n--; at < p->n; at++)
        p->node[at] = p->node[at + 1];
}

static uint32_t pool_of(struct cluster *c, struct str name, uint32_t node)
{
    if (name.n == 0)
        return NONE;
    uint32_t i = names_find(&c->pool_names, name);
    pool_enter(c, i, node);
    return i;
}

/* The node is of the kind that is the same but for pool and reservation. */
static void change_kind(struct cluster *c, uint32_t node, uint32_t pool, uint16_t reserved,
                        int64_t free_ms)
{
    struct node *n = &c->node[node];
    const struct kind *was = &c->kind[n->kind];
    struct kind want = { .model = was->model,
                         .pool = pool,
                         .reserved = reserved,
                         .free_ms = free_ms,
                         .gpu_mem_mib = was->gpu_mem_mib,
                         .cpu_milli = was->cpu_milli,
                         .mem_mib = was->mem_mib,
                         .gpus = was->gpus,
                         .links = was->links };
    memcpy(want.link, was->link, sizeof want.link);
    node_leave_cell(c, node);
    count_node(c, n, false);
    c->kind[n->kind].nodes--;
    n->kind = kind_like(c, &want);
    c->kind[n->kind].nodes++;
    c->kind[n->kind].free_ms = free_ms;
    c->version++; /* what a kind has machines of may have changed */
    count_node(c, n, true);
    node_enter_cell(c, node);
    node_mark_freed(c, node);
}

void cluster_move(struct cluster *c, uint32_t node, uint32_t pool)
{
    const struct kind *was = &c->kind[c->node[node].kind];
    if (was->pool == pool)
        return;
    if (was->pool != NONE)
        pool_leave(c, was->pool, node);
    if (pool != NONE)
        pool_enter(c, pool, node);
    change_kind(c, node, pool, was->reserved, was->free_ms);
}

void cluster_reserve(struct cluster *c, uint32_t node, uint16_t reserved, int64_t free_ms)
{
    change_kind(c, node, c->kind[c->node[node].kind].pool, reserved, free_ms);
}

int cluster_add_node(struct cluster *c, const struct event_node *n, struct err *e)
{
    if (check_node(c, n, e) < 0)
        return -1;
    uint32_t i = names_intern(&c->node_names, n->name);
    vec_grow(c->node, c->nodes, c->node_cap);
    c->nodes++;
    uint32_t model = n->gpus ? names_intern(&c->models, n->model) : 0;
    struct node *nd = &c->node[i];
    *nd = (struct node){
        .name = xcalloc(1, n->name.n + 1), .cell = NONE, .kept = { .job = NONE }, .state = NODE_UP
    };
    memcpy(nd->name, n->name.p, n->name.n);
    nd->net_switch = switch_of(c, n->net_switch, i);
    nd->kind = kind_of(c, n, model, pool_of(c, n->pool, i));
    c->kind[nd->kind].nodes++;
    nd->room = kind_room(&c->kind[nd->kind]);
    c->gpus += n->gpus;
    count_node(c, nd, true);
    node_enter_cell(c, i);
    node_mark_freed(c, i);
    return 0;
}

int cluster_set_model(struct cluster *c, const struct event_model *m, struct err *e)
{
    if (m->name.n == 0 || m->name.n > NAME_MAX_BYTES)
        return err_set(e, ERR_INVALID, "model: a name of 1 to %d bytes is needed", NAME_MAX_BYTES);
    if (m->cost_milli > MODEL_COST_MAX)
        return err_set(e, ERR_INVALID, "model '%.*s': cost_milli is %u; at most %u",
                       STR_ARG(m->name), m->cost_milli, MODEL_COST_MAX);
    uint32_t i = names_find(&c->models, m->name);
    if (i == NAME_NONE && c->models.n >= MODELS_MAX)
        return err_set(e, ERR_TOO_LARGE, "more than %d GPU models in one cluster", MODELS_MAX);
    i = names_intern(&c->models, m->name);
    c->model_cost_milli[i] = m->cost_milli;
    return 0;
}

void cluster_set_state(struct cluster *c, uint32_t node, enum node_state state)
{
    struct node *n = &c->node[node];
    node_leave_cell(c, node);
    count_node(c, n, false);
    n->state = (uint8_t)state;
    count_node(c, n, true);
    node_enter_cell(c, node);
    node_mark_freed(c, node);
}

struct node_aside node_aside(const struct node *n)
{
    return (struct node_aside){ .room = n->room,
                                .promised = n->promised,
                                .kept = n->kept,
                                .promises = n->promises,
                                .state = n->state };
}

void cluster_swap(struct cluster *c, uint32_t node, struct node_aside *with)
{
    struct node *n = &c->node[node];
    struct node_aside was = node_aside(n);
    node_leave_cell(c, node);
    count_node(c, n, false);
    n->room = with->room;
    n->promised = with->promised;
    n->kept = with->kept;
    n->promises = with->promises;
    n->state = with->state;
    count_node(c, n, true);
    node_enter_cell(c, node);
    *with = was;
}

void cluster_set_left(struct cluster *c, uint32_t pool, int64_t left_ms)
{
    struct pool *p = &c->pool[pool];
    bool turns = (p->left_ms >= 0) != (left_ms >= 0);
    for (uint32_t i = 0; i < p->n && turns; i++) {
        node_leave_cell(c, p->node[i]);
        count_node(c, &c->node[p->node[i]], false);
    }
    p->left_ms = left_ms;
    for (uint32_t k = 0; k < c->kinds; k++)
        if (c->kind[k].pool == pool)
            c->kind[k].left_ms = left_ms;
    for (uint32_t i = 0; i < p->n && turns; i++) {
        count_node(c, &c->node[p->node[i]], true);
        node_enter_cell(c, p->node[i]);
    }
}

void cluster_wake_pool(struct cluster *c, uint32_t pool)
{
    for (uint32_t i = 0; i < c->pool[pool].n; i++)
        node_mark_freed(c, c->pool[pool].node[i]);
}

void cluster_set_reserved(struct cluster *c, uint16_t reserved, int64_t free_ms)
{
    for (uint32_t k = 0; k < c->kinds; k++) {
        if (c->kind[k].reserved != reserved)
            continue;
        bool more = free_ms > c->kind[k].free_ms || (free_ms < 0 && c->kind[k].free_ms >= 0);
        c->kind[k].free_ms = free_ms;
        for (uint32_t i = 0; i < c->nodes && more; i++)
            if (c->node[i].kind == k)
                node_mark_freed(c, i);
    }
}

void cluster_keep(struct cluster *c, uint32_t node, uint32_t job, const struct request *r,
                  uint32_t replicas)
{
    struct node *n = &c->node[node];
    const struct kind *k = &c->kind[n->kind];
    uint32_t gpus = r->gpus * replicas;
    if (request_shares_gpu(r)) { /* a share does not cross GPUs */
        uint32_t per_gpu = GPU_MILLI / MAX(kind_share_milli(k, r), 1u);
        gpus = (replicas + per_gpu - 1) / per_gpu;
    }
    bool linked = r->linked && k->links > 1;
    if (linked && replicas > 1) /* several groups: which GPUs get free decides, so keep all */
        gpus = k->gpus;
    node_leave_cell(c, node);
    n->kept = (struct kept){
        .job = job,
        .gpus = MIN(gpus, (uint32_t)k->gpus),
        .cpu_milli = r->cpu_milli * replicas,
        .mem_mib = r->mem_mib * replicas,
        .linked = linked && replicas == 1,
    };
    node_enter_cell(c, node);
}

void cluster_unkeep(struct cluster *c, uint32_t node)
{
    node_leave_cell(c, node);
    c->node[node].kept = (struct kept){ .job = NONE };
    node_enter_cell(c, node);
    node_mark_freed(c, node);
}

void cluster_promise(struct cluster *c, const struct request *r, const struct slot *s, uint32_t n,
                     bool promise)
{
    for (uint32_t i = 0; i < n; i++) {
        struct node *nd = &c->node[s[i].node];
        node_leave_cell(c, s[i].node);
        if (promise)
            room_give(&nd->promised, r, s[i].gpu_mask, s[i].milli);
        else
            room_take(&nd->promised, r, s[i].gpu_mask, s[i].milli);
        nd->promises = promise ? nd->promises + 1 : nd->promises - 1;
        node_enter_cell(c, s[i].node);
        if (!promise)
            node_mark_freed(c, s[i].node);
    }
}

void cluster_note_job(struct cluster *c, uint32_t job, const struct slot *s, uint32_t n, bool holds)
{
    for (uint32_t i = 0; i < n; i++) {
        struct node *nd = &c->node[s[i].node];
        if (i && s[i].node == s[i - 1].node)
            continue;
        c->holding = holds ? c->holding + 1 : c->holding - 1;
        if (holds) {
            vec_grow(nd->job, nd->jobs, nd->job_cap);
            nd->job[nd->jobs++] = job;
            continue;
        }
        uint32_t at = 0;
        while (nd->job[at] != job)
            at++;
        nd->job[at] = nd->job[--nd->jobs];
    }
}

int cluster_parse_models(const struct cluster *c, struct str list, uint64_t *out_bits,
                         struct err *e)
{
    uint64_t bits = 0;
    while (list.n) {
        struct str one;
        str_cut(list, '|', &one, &list);
        uint32_t m = names_find(&c->models, str_trim(one));
        if (m == NAME_NONE) {
            err_set(e, ERR_INVALID, "no node has a GPU of model '%.*s'", STR_ARG(one));
            char known[160] = "";
            size_t at = 0;
            for (uint32_t i = 0; i < c->models.n && at < sizeof known - 1; i++)
                at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "",
                                       names_get(&c->models, i));
            err_about(e, "resources.gpu_type");
            return err_hint(e, "known models: %s", known);
        }
        bits |= UINT64_C(1) << m;
    }
    *out_bits = bits;
    return 0;
}

/* ---- taking and giving back ---- */

static void change(struct cluster *c, const struct request *r, const struct slot *s, uint32_t n,
                   bool take)
{
    for (uint32_t i = 0; i < n;) {
        uint32_t node = s[i].node;
        struct node *nd = &c->node[node];
        node_leave_cell(c, node);
        count_node(c, nd, false);
        for (; i < n && s[i].node == node; i++) {
            if (take)
                room_take(&nd->room, r, s[i].gpu_mask, s[i].milli);
            else
                room_give(&nd->room, r, s[i].gpu_mask, s[i].milli);
        }
        count_node(c, nd, true);
        node_enter_cell(c, node);
        if (!take)
            node_mark_freed(c, node);
    }
}

void cluster_take(struct cluster *c, const struct request *r, const struct slot *s, uint32_t n)
{
    change(c, r, s, n, true);
}

void cluster_give(struct cluster *c, const struct request *r, const struct slot *s, uint32_t n)
{
    change(c, r, s, n, false);
}
