/* aside - a question that a copy of this process answers, with what it knows at this moment.
 *
 * The copy has our memory and none of our duties: it may change what it likes, writes its answer, and is gone.  It must
 * not touch the loop, the store or any descriptor, which are still ours.  Meanwhile the loop goes on.  A copy that
 * takes too long is killed.
 */
#ifndef NS_SYS_ASIDE_H
#define NS_SYS_ASIDE_H

#include "base/buf.h"
#include "sys/loop.h"

struct aside;

typedef void aside_work_fn(void *ctx, struct buf *out);          /* in the copy */
typedef void aside_done_fn(void *ctx, const struct str *answer); /* NULL: there is none */

struct aside_ask {
    struct loop *loop;
    aside_work_fn *work;
    aside_done_fn *done; /* once, on the loop, never before aside_begin returns */
    void *ctx;
    unsigned limit_s;
    size_t answer_max; /* bytes; more is no answer */
};

struct aside *aside_begin(const struct aside_ask *ask, struct err *e); /* NULL: refused */
struct aside *aside_free(struct aside *a); /* ends it, unheard; NULL ok; returns NULL */

#endif
