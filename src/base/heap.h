/* heap - a binary heap of small numbers ordered by the caller's `before`.
 *
 * The caller gives each number a place to remember its position (pos[number]), so that an element
 * whose key changed can be moved and one that is gone can be removed.  With a total order the pops
 * do not depend on the history of pushes, which the core relies on.
 */
#ifndef NS_BASE_HEAP_H
#define NS_BASE_HEAP_H

#include "base/base.h"

#define HEAP_OUT UINT32_MAX /* pos[] of a number that is not in the heap */

struct heap {
    uint32_t *item;
    uint32_t n, cap;
    uint32_t *pos;
    bool (*before)(const void *ctx, uint32_t a, uint32_t b);
    const void *ctx;
};

/* pos[] for the numbers below n, none of which is in; the caller frees it. */
uint32_t *heap_positions(uint32_t n);

void heap_push(struct heap *h, uint32_t item);
uint32_t heap_top(const struct heap *h); /* the heap must not be empty */
uint32_t heap_pop(struct heap *h);
void heap_moved(struct heap *h, uint32_t item);  /* its key changed, in either direction */
void heap_remove(struct heap *h, uint32_t item); /* both: nothing when it is not in */
void heap_rename(struct heap *h, uint32_t from, uint32_t to); /* `to` takes the place of `from` */
void heap_clear(struct heap *h); /* forgets the items, keeps the memory */
void heap_free(struct heap *h);

#endif
