/* base - the words every file may use: cleanup, ownership, checked allocation.
 *
 * Nothing in base/ makes a system call other than through malloc, and nothing here knows a
 * product word.  Out of memory aborts: inputs are bounded, so it means the machine is in trouble.
 */
#ifndef NS_BASE_BASE_H
#define NS_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define AUTO(fn) __attribute__((cleanup(fn), unused)) /* a guard need not be looked at */
#define TAKE(p)                                                                                    \
    ({                                                                                             \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })
#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

#define MIN(a, b)                                                                                  \
    ({                                                                                             \
        __typeof__(a) a_ = (a);                                                                    \
        __typeof__(b) b_ = (b);                                                                    \
        a_ < b_ ? a_ : b_;                                                                         \
    })
#define MAX(a, b)                                                                                  \
    ({                                                                                             \
        __typeof__(a) a_ = (a);                                                                    \
        __typeof__(b) b_ = (b);                                                                    \
        a_ > b_ ? a_ : b_;                                                                         \
    })

void *xmalloc(size_t n);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t count, size_t size); /* checked product */
char *xstrdup(const char *s);

static inline void free_p(void *p)
{
    free(*(void **)p);
}

/* Makes room for one more element: vec_grow(v->items, v->n, v->cap). */
#define vec_grow(p, n, cap)                                                                        \
    do {                                                                                           \
        if ((n) == (cap)) {                                                                        \
            (cap) = (cap) ? (cap)*2 : 8;                                                           \
            (p) = xrealloc((p), (cap), sizeof *(p));                                               \
        }                                                                                          \
    } while (0)

#include "base/banned.h"

#endif
