#include "init/queue.h"

#include <errno.h>
#include <unistd.h>

void queue_drop(struct queue *q)
{
    buf_truncate(&q->b, 0);
    q->sent = 0;
}

/* So that what is sent already does not count against the limit. */
static void compact(struct queue *q)
{
    size_t left = queue_bytes(q);
    if (q->sent == 0)
        return;
    memmove(q->b.p, q->b.p + q->sent, left);
    buf_truncate(&q->b, left);
    q->sent = 0;
}

ssize_t queue_flush(struct queue *q, int fd)
{
    size_t before = queue_bytes(q);
    while (queue_bytes(q) > 0) {
        ssize_t n = write(fd, q->b.p + q->sent, queue_bytes(q));
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            return -1;
        q->sent += (size_t)n;
    }
    size_t left = queue_bytes(q);
    if (left == 0 || q->sent > left) /* moves less than was sent: the cost stays in proportion */
        compact(q);
    return (ssize_t)(before - left);
}
