#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ALIGN 16u
#define FIRST_BYTES ((size_t)8 << 10)
#define GROW_MAX_BYTES ((size_t)4 << 20)
#define DEFAULT_LIMIT ((size_t)256 << 20)

struct arena_block {
    struct arena_block *prev;
    size_t size, used;
    _Alignas(ALIGN) char data[];
};

static struct arena_block *block_new(struct arena_block *prev, size_t need)
{
    size_t size = prev ? MIN(prev->size * 2, GROW_MAX_BYTES) : FIRST_BYTES;
    size = MAX(size, need);
    struct arena_block *b = xmalloc(sizeof *b + size);
    b->prev = prev;
    b->size = size;
    b->used = 0;
    return b;
}

void *arena_alloc(struct arena *a, size_t count, size_t size)
{
    size_t bytes;
    size_t limit = a->limit ? a->limit : DEFAULT_LIMIT;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > limit - MIN(a->used, limit))
        abort();
    /* Never zero bytes, so that two allocations never share an address. */
    bytes = (MAX(bytes, (size_t)1) + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (!a->head || bytes > a->head->size - a->head->used)
        a->head = block_new(a->head, bytes);
    void *p = a->head->data + a->head->used;
    a->head->used += bytes;
    a->used += bytes;
    return memset(p, 0, bytes);
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        abort();
    char *p = arena_alloc(a, (size_t)n + 1, 1);
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return p;
}

char *arena_strndup(struct arena *a, const char *p, size_t n)
{
    char *copy = arena_alloc(a, n + 1, 1);
    if (n)
        memcpy(copy, p, n);
    return copy;
}

/* Keeps the largest block: a round like the last one then mostly needs no malloc. */
void arena_reset(struct arena *a)
{
    struct arena_block *keep = a->head;
    for (struct arena_block *b = a->head; b; b = b->prev)
        if (b->size > keep->size)
            keep = b;
    for (struct arena_block *b = a->head, *prev; b; b = prev) {
        prev = b->prev;
        if (b != keep)
            free(b);
    }
    if (keep) {
        keep->prev = NULL;
        keep->used = 0;
    }
    a->head = keep;
    a->used = 0;
}

void arena_free(struct arena *a)
{
    for (struct arena_block *b = a->head, *prev; b; b = prev) {
        prev = b->prev;
        free(b);
    }
    a->head = NULL;
    a->used = 0;
}
