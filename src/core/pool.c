/* Pools and reservations of machines: which nodes are in them, and how long they are there. */
#include "core/cell.h"
#include "core/rules.h"

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

uint32_t pool_of(struct cluster *c, struct str name, uint32_t node)
{
    if (name.n == 0)
        return NONE;
    uint32_t i = names_find(&c->pool_names, name);
    pool_enter(c, i, node);
    return i;
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

/* ---- zones: the pools that a tenant may use ---- */

static bool list_has(struct str list, struct str name)
{
    while (list.n) {
        struct str one;
        str_cut(list, '|', &one, &list);
        if (str_eq(str_trim(one), name))
            return true;
    }
    return false;
}

static bool zone_has(const struct cluster *c, uint32_t zone, uint32_t pool)
{
    struct str name = pool == NONE ? STR("-") : str_of(names_get(&c->pool_names, pool));
    return list_has(str_of(names_get(&c->zones, zone - 1)), name);
}

void zones_of_kind(const struct cluster *c, struct kind *k)
{
    for (uint32_t z = 1; z <= c->zones.n; z++)
        if (zone_has(c, z, k->pool))
            k->zones[z / 64] |= UINT64_C(1) << (z % 64);
}

static bool name_before(struct str a, struct str b)
{
    int order = memcmp(a.p, b.p, MIN(a.n, b.n));
    return order ? order < 0 : a.n < b.n;
}

/* In the order of their names, each once: equal sets are equal texts. */
static size_t sort_in(struct str *at, size_t n, struct str one)
{
    size_t to = n;
    for (size_t i = 0; i < n; i++)
        if (str_eq(at[i], one))
            return n;
    for (; to > 0 && name_before(one, at[to - 1]); to--)
        at[to] = at[to - 1];
    at[to] = one;
    return n + 1;
}

uint16_t cluster_zone(struct cluster *c, struct str pools, uint16_t within)
{
    struct str at[TENANT_POOLS_MAX],
        in = within ? str_of(names_get(&c->zones, within - 1u)) : pools;
    char text[TENANT_TEXT_MAX + TENANT_POOLS_MAX + 1];
    size_t n = 0, len = 0, known = c->zones.n;
    while (pools.n && n < TENANT_POOLS_MAX) {
        struct str one;
        str_cut(pools, '|', &one, &pools);
        if (list_has(in, str_trim(one)))
            n = sort_in(at, n, str_trim(one));
    }
    for (size_t i = 0; i < n; i++) {
        if (i)
            text[len++] = '|';
        memcpy(text + len, at[i].p, at[i].n);
        len += at[i].n;
    }
    uint32_t zone = names_intern(&c->zones, (struct str){ text, len }) + 1;
    for (uint32_t k = 0; k < c->kinds && c->zones.n > known; k++)
        if (zone_has(c, zone, c->kind[k].pool))
            c->kind[k].zones[zone / 64] |= UINT64_C(1) << (zone % 64);
    return (uint16_t)zone;
}
