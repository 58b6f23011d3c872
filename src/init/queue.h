/* queue - bytes on their way into a descriptor that does not block. */
#ifndef NS_INIT_QUEUE_H
#define NS_INIT_QUEUE_H

#include <sys/types.h>

#include "base/buf.h"

struct queue {
    struct buf b; /* what is added; the first `sent` bytes are gone already */
    size_t sent;
};

static inline size_t queue_bytes(const struct queue *q)
{
    return q->b.n - q->sent;
}

/* Writes as much as goes.  Returns how many bytes went, or -1 when nobody will ever read them. */
ssize_t queue_flush(struct queue *q, int fd);
void queue_drop(struct queue *q); /* all that is in it */

#endif
