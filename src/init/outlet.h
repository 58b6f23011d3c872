/* outlet - one of our own descriptors that somebody else reads, written without ever waiting.
 *
 * What does not go is queued.  The queue is bounded by its user, who stops bringing more while the
 * outlet is full, so nothing is lost as long as there is a reader; when there is none any more, what
 * is written is dropped.
 */
#ifndef NS_INIT_OUTLET_H
#define NS_INIT_OUTLET_H

#include <poll.h>

#include "init/queue.h"

#define OUTLET_PIECE_MAX 65536u /* bytes of one write */

struct outlet {
    int fd;      /* -1: none */
    bool gone;   /* nobody reads it */
    int restore; /* the flags it had: whom we share it with may want to wait; -1: as they are */
    struct queue q;
};

void outlet_open(struct outlet *o, int fd); /* -1: none */
void outlet_drop(struct outlet *o);         /* nobody reads it any more */
void outlet_close(struct outlet *o);        /* the descriptor is the caller's and stays open */

bool outlet_full(const struct outlet *o); /* bring no more */
bool outlet_idle(const struct outlet *o); /* all of it is gone */
void outlet_write(struct outlet *o, struct str bytes);

/* One round of poll(2). */
struct pollfd outlet_poll(const struct outlet *o);
void outlet_flush(struct outlet *o);

/* Waits until it is not full, or is idle.  When it still is not at that time (of the clock that never
 * jumps) it is dropped. */
void outlet_wait_room(struct outlet *o, int64_t until_ms);
void outlet_wait_idle(struct outlet *o, int64_t until_ms);

#endif
