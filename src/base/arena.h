/* arena - memory that lives and dies together: one per request, one per scheduling pass.
 *
 * Bounded by `limit` bytes (0 means the default); passing it aborts, because every input that could
 * fill an arena is bounded before.  Zero-initialise one and use it; arena_reset keeps its largest
 * block for the next round, arena_free gives everything back.
 */
#ifndef NS_BASE_ARENA_H
#define NS_BASE_ARENA_H

#include "base/base.h"

struct arena_block;
struct arena {
    struct arena_block *head;
    size_t used, limit;
};

void *arena_alloc(struct arena *a, size_t count, size_t size); /* zeroed, 16-byte aligned */
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *arena_strndup(struct arena *a, const char *p, size_t n); /* NUL-terminated copy */
void arena_reset(struct arena *a);
void arena_free(struct arena *a);

#define arena_new(a, type) ((type *)arena_alloc((a), 1, sizeof(type)))
#define arena_array(a, type, n) ((type *)arena_alloc((a), (n), sizeof(type)))

#endif
