/* queue - reports that the control plane has not acknowledged yet: numbered batches, bounded.
 *
 * Samples go into the newest batch; the oldest is sent first and stays until its number is acknowledged, so a
 * report is told at least once.  What passes the bound of bytes or of age is dropped from the oldest on,
 * and counted.
 */
#ifndef NS_AGENT_QUEUE_H
#define NS_AGENT_QUEUE_H

#include "wire/report.h"

struct queue;

struct queue_bounds {
    size_t bytes;           /* of all batches */
    int64_t age_ms;         /* of the oldest sample */
    uint32_t batch_samples; /* a batch is closed when it has so many */
};

struct queue *queue_new(const struct queue_bounds *b);
struct queue *queue_free(struct queue *q); /* NULL ok; returns NULL */
void queue_free_p(struct queue **q);

void queue_add(struct queue *q, const struct report_head *h, const struct report_sample *s);

/* The oldest batch, closed from now on; false when there is none.  Valid until the next call that is not
 * this one. */
bool queue_front(struct queue *q, uint64_t *out_number, struct str *out_bytes);
void queue_ack(struct queue *q, uint64_t number); /* up to and with it */
void queue_refused(struct queue *q);              /* the oldest will never be taken: drop it */

size_t queue_samples(const struct queue *q);
size_t queue_bytes(const struct queue *q);
uint64_t queue_lost(const struct queue *q); /* samples, since the beginning */

#endif
