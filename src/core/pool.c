/* Pools and reservations of machines: which nodes are in them, and how long they are there. */
#include "core/cell.h"

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
    struct kind want = kind_build(&c->kind[c->node[node].kind]);
    if (want.pool == pool)
        return;
    if (want.pool != NONE)
        pool_leave(c, want.pool, node);
    if (pool != NONE)
        pool_enter(c, pool, node);
    want.pool = pool;
    change_kind(c, node, &want);
}

void cluster_set_class(struct cluster *c, uint32_t node, struct str name)
{
    struct kind want = kind_build(&c->kind[c->node[node].kind]);
    if (str_is(name, want.class))
        return;
    memset(want.class, 0, sizeof want.class);
    if (name.n)
        memcpy(want.class, name.p, name.n);
    change_kind(c, node, &want);
}

void cluster_reserve(struct cluster *c, uint32_t node, uint16_t reserved, int64_t free_ms)
{
    struct kind want = kind_build(&c->kind[c->node[node].kind]);
    want.reserved = reserved;
    want.free_ms = free_ms;
    change_kind(c, node, &want);
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

/* ---- zones: the pools that a tenant may use, and the classes that a job may ---- */

static bool in_pools(const struct cluster *c, uint32_t zone, const struct kind *k)
{
    return zones_has(&c->zones, zone,
                     k->pool == NONE ? STR("-") : str_of(names_get(&c->pool_names, k->pool)));
}

static void set_bit(uint64_t *bits, uint32_t number, bool on)
{
    uint64_t bit = UINT64_C(1) << (number % 64);
    bits[number / 64] = on ? bits[number / 64] | bit : bits[number / 64] & ~bit;
}

void zones_of_kind(const struct cluster *c, struct kind *k)
{
    for (uint32_t z = 1; z <= c->zones.n; z++)
        if (c->zones.at[z - 1].text)
            set_bit(k->zones, z, in_pools(c, z, k));
    for (uint32_t z = 1; z <= c->traits.n && k->class[0]; z++)
        if (c->traits.at[z - 1].text)
            set_bit(k->traits, z, zones_has(&c->traits, z, str_of(k->class)));
}

uint16_t cluster_zone(struct cluster *c, struct str pools, uint16_t within)
{
    uint32_t used = c->zones.used, zone = zones_intern(&c->zones, pools, within);
    for (uint32_t k = 0; k < c->kinds && c->zones.used > used; k++)
        set_bit(c->kind[k].zones, zone, in_pools(c, zone, &c->kind[k]));
    return (uint16_t)zone;
}

uint16_t cluster_traits(struct cluster *c, struct str list)
{
    uint32_t used = c->traits.used, zone = list.n ? zones_intern(&c->traits, list, 0) : 0;
    for (uint32_t k = 0; k < c->kinds && c->traits.used > used; k++)
        set_bit(c->kind[k].traits, zone, zones_has(&c->traits, zone, str_of(c->kind[k].class)));
    return (uint16_t)zone;
}
