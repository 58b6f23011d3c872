#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>

/* Room for `more` bytes and the NUL.  Once an addition was refused every later one is too: a
 * document must never have a hole in it. */
static bool reserve(struct buf *b, size_t more)
{
    if (b->full || more > b->limit - MIN(b->n, b->limit)) {
        b->full = true;
        return false;
    }
    size_t need = b->n + more + 1;
    if (need > b->cap) {
        size_t twice = MAX(b->cap * 2, (size_t)64);
        b->cap = need > twice ? need : MIN(twice, b->limit + 1);
        b->p = xrealloc(b->p, b->cap, 1);
    }
    return true;
}

void buf_add(struct buf *b, struct str s)
{
    if (!reserve(b, s.n))
        return;
    if (s.n)
        memcpy(b->p + b->n, s.p, s.n);
    b->n += s.n;
    b->p[b->n] = '\0';
}

void buf_addz(struct buf *b, const char *z)
{
    buf_add(b, str_of(z));
}

void buf_addc(struct buf *b, char c)
{
    buf_add(b, (struct str){ &c, 1 });
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    size_t room = b->p ? b->cap - b->n : 0;
    char none[1];
    va_start(ap, fmt);
    int n = vsnprintf(room ? b->p + b->n : none, room ? room : sizeof none, fmt, ap);
    va_end(ap);
    if (n < 0)
        abort();
    bool fits = reserve(b, (size_t)n);
    if (fits && (size_t)n >= room) {
        va_start(ap, fmt);
        vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    if (fits)
        b->n += (size_t)n;
    if (b->p)
        b->p[b->n] = '\0';
}

void buf_truncate(struct buf *b, size_t n)
{
    if (n > b->n)
        return;
    b->n = n;
    b->full = false; /* what is left has no hole, so adding may go on */
    if (b->p)
        b->p[n] = '\0';
}

void buf_drop_front(struct buf *b, size_t n)
{
    if (n == 0)
        return;
    memmove(b->p, b->p + n, b->n - n);
    buf_truncate(b, b->n - n);
}

struct str buf_str(const struct buf *b)
{
    return (struct str){ b->p ? b->p : "", b->n };
}

int buf_check(const struct buf *b, struct err *e)
{
    if (!b->full)
        return 0;
    return err_set(e, ERR_TOO_LARGE, "the text is larger than its limit of %zu bytes", b->limit);
}

void buf_free(struct buf *b)
{
    free(b->p);
    b->p = NULL;
    b->n = b->cap = 0;
    b->full = false;
}
