#include "base/heap.h"

#include <assert.h>

static inline void put(struct heap *h, uint32_t at, uint32_t item)
{
    h->item[at] = item;
    h->pos[item] = at;
}

/* Both sifts carry the item beside a hole and write it once, at its place. */
static uint32_t sift_up(struct heap *h, uint32_t at, uint32_t item)
{
    while (at > 0) {
        uint32_t up = (at - 1) / 2;
        if (!h->before(h->ctx, item, h->item[up]))
            break;
        put(h, at, h->item[up]);
        at = up;
    }
    put(h, at, item);
    return at;
}

static void sift_down(struct heap *h, uint32_t at, uint32_t item)
{
    for (uint32_t kid; (kid = 2 * at + 1) < h->n; at = kid) {
        if (kid + 1 < h->n && h->before(h->ctx, h->item[kid + 1], h->item[kid]))
            kid++;
        if (!h->before(h->ctx, h->item[kid], item))
            break;
        put(h, at, h->item[kid]);
    }
    put(h, at, item);
}

static void settle(struct heap *h, uint32_t at, uint32_t item)
{
    if (sift_up(h, at, item) == at)
        sift_down(h, at, item);
}

uint32_t *heap_positions(uint32_t n)
{
    uint32_t *pos = xcalloc((size_t)n + 1, sizeof *pos);
    for (uint32_t i = 0; i < n; i++)
        pos[i] = HEAP_OUT;
    return pos;
}

void heap_push(struct heap *h, uint32_t item)
{
    assert(h->pos[item] == HEAP_OUT);
    assert(h->n < UINT32_MAX / 2);
    vec_grow(h->item, h->n, h->cap);
    h->n++;
    sift_up(h, h->n - 1, item);
}

uint32_t heap_top(const struct heap *h)
{
    assert(h->n > 0);
    return h->item[0];
}

uint32_t heap_pop(struct heap *h)
{
    uint32_t top = heap_top(h);
    heap_remove(h, top);
    return top;
}

void heap_moved(struct heap *h, uint32_t item)
{
    if (h->pos[item] != HEAP_OUT)
        settle(h, h->pos[item], item);
}

void heap_remove(struct heap *h, uint32_t item)
{
    uint32_t at = h->pos[item];
    if (at == HEAP_OUT)
        return;
    uint32_t last = h->item[--h->n];
    h->pos[item] = HEAP_OUT;
    if (last != item)
        settle(h, at, last);
}

void heap_rename(struct heap *h, uint32_t from, uint32_t to)
{
    h->pos[to] = h->pos[from];
    h->pos[from] = HEAP_OUT;
    if (h->pos[to] != HEAP_OUT)
        h->item[h->pos[to]] = to;
}

void heap_clear(struct heap *h)
{
    for (uint32_t i = 0; i < h->n; i++)
        h->pos[h->item[i]] = HEAP_OUT;
    h->n = 0;
}

void heap_free(struct heap *h)
{
    free(h->item);
    h->item = NULL;
    h->n = h->cap = 0;
}
