/* buf - bytes that grow up to a limit given at birth, then refuse.
 *
 * Adding past the limit keeps what was there, sets `full` and refuses everything after it, so what
 * it holds never has a hole; a caller may add a whole document and check once with buf_check.
 */
#ifndef NS_BASE_BUF_H
#define NS_BASE_BUF_H

#include "base/err.h"
#include "base/str.h"

struct buf {
    char *p; /* NUL-terminated when not NULL */
    size_t n, cap, limit;
    bool full;
};

#define BUF(limit_bytes) ((struct buf){ .limit = (limit_bytes) })

void buf_add(struct buf *b, struct str s);
void buf_addz(struct buf *b, const char *z);
void buf_addc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_truncate(struct buf *b, size_t n);   /* also makes a full one usable again */
void buf_drop_front(struct buf *b, size_t n); /* the first n bytes */
struct str buf_str(const struct buf *b);
int buf_check(const struct buf *b, struct err *e) MUST_USE; /* ERR_TOO_LARGE when it overflowed */
void buf_free(struct buf *b);

#endif
