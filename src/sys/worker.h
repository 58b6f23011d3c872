/* worker - one thread beside the loop, for what blocks: items go over to it in order and come back.
 *
 * An item belongs to one side at a time: to the loop until worker_give, then to the thread until
 * worker_return, then to the loop again; so what it holds needs no lock.  The thread takes no
 * signals.  What comes back is delivered on the loop, in order.
 */
#ifndef NS_SYS_WORKER_H
#define NS_SYS_WORKER_H

#include "sys/loop.h"

struct worker;

/* The first member of whatever is handed over. */
struct worker_item {
    struct worker_item *next;
};

/* The thread's whole life; it returns once worker_take gave NULL to a call that waits. */
typedef void worker_run_fn(void *run_ctx, struct worker *w);
typedef void worker_back_fn(void *back_ctx, struct worker_item *item); /* on the loop */

struct worker *worker_new(struct loop *l, worker_run_fn *run, void *run_ctx, worker_back_fn *back,
                          void *back_ctx);
/* Has the thread end, waits for that and delivers what came back.  Not from a worker_back_fn. */
struct worker *worker_free(struct worker *w); /* NULL ok; returns NULL */

/* ---- on the loop ---- */

void worker_give(struct worker *w, struct worker_item *item);
/* Blocks until something has come back and delivers it; false when nothing did in wait_ms. */
bool worker_await(struct worker *w, uint64_t wait_ms);

/* ---- on the thread ---- */

/* Everything that was given, linked in order.  NULL: nothing is there, and with `wait` it means
 * that nothing ever will be. */
struct worker_item *worker_take(struct worker *w, bool wait);
void worker_return(struct worker *w, struct worker_item *item);
bool worker_pause(struct worker *w, uint64_t ms); /* false: told to end, perhaps early */

#endif
