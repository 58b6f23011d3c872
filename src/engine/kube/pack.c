#include "engine/kube/pack.h"

#include <string.h>

#define ALIGN sizeof(uint64_t)

static void *add(struct pack *k, const void *from, size_t n)
{
    void *to = k->p ? memcpy(k->p + k->n, from, n) : (void *)(uintptr_t)from;
    k->n += n;
    return to;
}

void *pack_bytes(struct pack *k, const void *from, size_t n)
{
    if (n == 0)
        return NULL;
    k->n = (k->n + ALIGN - 1) & ~(ALIGN - 1);
    return add(k, from, n);
}

void pack_text(struct pack *k, const char **text)
{
    *text = *text && (*text)[0] ? add(k, *text, strlen(*text) + 1) : "";
}

void pack_alloc(struct pack *k)
{
    k->p = xmalloc(k->n);
    k->n = 0;
}
