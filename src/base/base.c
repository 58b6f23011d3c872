#include "base/base.h"

#include <string.h>

/* Inputs are bounded and state is kept elsewhere: die loudly, restart, resume. */
static void *must(void *p)
{
    if (!p)
        abort();
    return p;
}

void *xmalloc(size_t n)
{
    return must(malloc(n ? n : 1));
}

void *xcalloc(size_t count, size_t size)
{
    if (count == 0 || size == 0)
        count = size = 1;
    return must(calloc(count, size));
}

void *xrealloc(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        abort();
    return must(realloc(p, bytes ? bytes : 1));
}

char *xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(xmalloc(n), s, n);
}
