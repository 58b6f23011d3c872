#include "agent/queue.h"

#define BATCH_ROOM (64u << 10) /* a batch is closed before it has so many bytes more than this */

struct batch {
    struct batch *next;
    uint64_t number;
    int64_t first_ms, last_ms;
    uint32_t samples;
    bool closed;
    struct buf bytes;
};

struct queue {
    struct queue_bounds bounds;
    struct report_writer *writer;
    struct batch *oldest, *newest;
    uint64_t number, lost;
    size_t samples, bytes;
};

struct queue *queue_new(const struct queue_bounds *b)
{
    struct queue *q = xcalloc(1, sizeof *q);
    q->bounds = *b;
    q->writer = report_writer_new();
    return q;
}

static void drop_oldest(struct queue *q)
{
    struct batch *b = q->oldest;
    q->oldest = b->next;
    if (!q->oldest)
        q->newest = NULL;
    q->samples -= b->samples;
    q->bytes -= b->bytes.n;
    buf_free(&b->bytes);
    free(b);
}

struct queue *queue_free(struct queue *q)
{
    if (!q)
        return NULL;
    while (q->oldest)
        drop_oldest(q);
    report_writer_free(q->writer);
    free(q);
    return NULL;
}

void queue_free_p(struct queue **q)
{
    *q = queue_free(*q);
}

static void close_batch(struct batch *b)
{
    b->closed = true;
    if (b->bytes.p && b->bytes.cap > b->bytes.n + 1) { /* what was room to grow is given back */
        b->bytes.p = xrealloc(b->bytes.p, b->bytes.n + 1, 1);
        b->bytes.cap = b->bytes.n + 1;
    }
}

static struct batch *open_batch(struct queue *q, const struct report_head *h)
{
    struct batch *b = xcalloc(1, sizeof *b);
    b->bytes = BUF(REPORT_BYTES_MAX);
    b->number = ++q->number;
    struct report_head numbered = *h;
    numbered.number = b->number;
    report_begin(q->writer, &numbered, &b->bytes);
    if (q->newest)
        q->newest->next = b;
    else
        q->oldest = b;
    q->newest = b;
    q->bytes += b->bytes.n;
    return b;
}

static void lose_oldest(struct queue *q)
{
    q->lost += q->oldest->samples;
    drop_oldest(q);
}

void queue_add(struct queue *q, const struct report_head *h, const struct report_sample *s)
{
    struct batch *b = q->newest;
    if (b && !b->closed && (b->samples >= q->bounds.batch_samples || b->bytes.n > BATCH_ROOM))
        close_batch(b);
    /* A clock that was set back would break the order of a batch. */
    if (b && !b->closed && s->t_ms < b->last_ms)
        close_batch(b);
    if (!b || b->closed)
        b = open_batch(q, h);
    size_t before = b->bytes.n;
    report_add(q->writer, h, s, &b->bytes);
    if (b->bytes.full) { /* one sample that passes every bound is not told */
        buf_truncate(&b->bytes, before);
        close_batch(b);
        q->lost++;
        return;
    }
    q->bytes += b->bytes.n - before;
    if (b->samples == 0)
        b->first_ms = s->t_ms;
    b->last_ms = s->t_ms;
    b->samples++;
    q->samples++;
    while (q->oldest != q->newest &&
           (q->bytes > q->bounds.bytes || s->t_ms - q->oldest->first_ms > q->bounds.age_ms))
        lose_oldest(q);
}

bool queue_front(struct queue *q, uint64_t *out_number, struct str *out_bytes)
{
    while (q->oldest && q->oldest->samples == 0)
        drop_oldest(q);
    if (!q->oldest)
        return false;
    if (!q->oldest->closed)
        close_batch(q->oldest);
    *out_number = q->oldest->number;
    *out_bytes = buf_str(&q->oldest->bytes);
    return true;
}

void queue_ack(struct queue *q, uint64_t number)
{
    while (q->oldest && q->oldest->closed && q->oldest->number <= number)
        drop_oldest(q);
}

void queue_refused(struct queue *q)
{
    if (q->oldest)
        lose_oldest(q);
}

size_t queue_samples(const struct queue *q)
{
    return q->samples;
}

size_t queue_bytes(const struct queue *q)
{
    return q->bytes;
}

uint64_t queue_lost(const struct queue *q)
{
    return q->lost;
}
