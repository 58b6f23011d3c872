/* Cells: nodes of one kind with the same room left, filed in rows; and what a node offers. */
#include "core/cell.h"

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

static uint64_t hash_words(uint64_t h, const struct room *m, size_t from, size_t to)
{
    uint64_t w;
    for (size_t at = from; at < to; at += sizeof w) {
        memcpy(&w, (const char *)m + at, sizeof w);
        h = (h ^ w) * 0xBF58476D1CE4E5B9ull;
        h ^= h >> 29;
    }
    return h;
}
_Static_assert(offsetof(struct room, device) % sizeof(uint64_t) == 0 &&
                   sizeof(struct room) % sizeof(uint64_t) == 0,
               "a room is hashed in words");

/* Most kinds have no devices: then those are not looked at. */
static uint64_t room_hash(const struct cluster *c, uint32_t kind, const struct room *m)
{
    uint64_t h = 0x9E3779B97F4A7C15ull * (kind + 1);
    h = hash_words(h, m, 0, offsetof(struct room, device));
    return c->kind[kind].device[0] ? hash_words(h, m, offsetof(struct room, device), sizeof *m) : h;
}

static uint32_t row_index(const struct cell *ce)
{
    return ce->whole ? ROW_WHOLE + ce->whole : row_of_part(ce->best_part);
}

/* By free CPUs, then memory, GPUs and devices: the order says nothing about what happened before.  What
 * lies in the row decides nearly always; cells are all over the memory. */
static int cell_order(const struct cluster *c, const struct row_cell *a, const struct cell *b)
{
    if (a->cpu_milli != b->room.cpu_milli)
        return a->cpu_milli < b->room.cpu_milli ? -1 : 1;
    if (a->mem_mib != b->room.mem_mib)
        return a->mem_mib < b->room.mem_mib ? -1 : 1;
    int gpus = memcmp(c->cell[a->cell].room.gpu, b->room.gpu, sizeof b->room.gpu);
    if (gpus || !c->kind[b->kind].device[0])
        return gpus;
    return memcmp(c->cell[a->cell].room.device, b->room.device, sizeof b->room.device);
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
    uint64_t hash = room_hash(c, kind, &m), hit = NONE;
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
    uint64_t hash = room_hash(c, ce->kind, &ce->room), hit = NONE;
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
    for (uint32_t i = 0; i < DEVICES_EACH && k->device[i]; i++) {
        uint32_t kept = (uint32_t)n->promised.device[i] + n->kept.device[i];
        m.device[i] = (uint16_t)(m.device[i] - MIN((uint32_t)m.device[i], kept));
    }
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

void node_leave_cell(struct cluster *c, uint32_t node)
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

void node_enter_cell(struct cluster *c, uint32_t node)
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

void node_mark_freed(struct cluster *c, uint32_t node)
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
