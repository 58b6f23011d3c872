#include "sys/worker.h"

#include <pthread.h>
#include <signal.h>
#include <uv.h>

#include "sys/clock.h"

#define MS_NS UINT64_C(1000000)

struct list {
    struct worker_item *head, **tail;
};

struct worker {
    worker_run_fn *run;
    worker_back_fn *back;
    void *run_ctx, *back_ctx;
    uv_thread_t thread;
    struct loop_watch *wakeup;
    struct list home; /* came back and is being delivered; only the loop sees it */

    uv_mutex_t lock;
    uv_cond_t to_thread, to_loop;
    /* under the lock */
    struct list given, returned;
    bool ending;
};

static void must(int rc)
{
    if (rc != 0)
        abort();
}

static void list_init(struct list *q)
{
    q->head = NULL;
    q->tail = &q->head;
}

static void list_add(struct list *q, struct worker_item *item)
{
    item->next = NULL;
    *q->tail = item;
    q->tail = &item->next;
}

static struct worker_item *list_take_all(struct list *q)
{
    struct worker_item *all = q->head;
    list_init(q);
    return all;
}

static struct worker_item *list_pop(struct list *q)
{
    struct worker_item *item = q->head;
    if (item && !(q->head = item->next))
        q->tail = &q->head;
    return item;
}

static void list_move(struct list *to, struct list *from)
{
    if (!from->head)
        return;
    *to->tail = from->head;
    to->tail = from->tail;
    list_init(from);
}

/* One at a time off a list that a nested delivery goes on with, so the order holds. */
static void deliver(struct worker *w)
{
    uv_mutex_lock(&w->lock);
    list_move(&w->home, &w->returned);
    uv_mutex_unlock(&w->lock);
    for (struct worker_item *item; (item = list_pop(&w->home));)
        w->back(w->back_ctx, item);
}

static void on_wakeup(void *ctx)
{
    deliver(ctx);
}

static void thread_main(void *ctx)
{
    struct worker *w = ctx;
    w->run(w->run_ctx, w);
}

/* Signals are the loop's: the thread inherits a mask that blocks them all. */
static void thread_start(struct worker *w)
{
    sigset_t all, before;
    sigfillset(&all);
    must(pthread_sigmask(SIG_SETMASK, &all, &before));
    must(uv_thread_create(&w->thread, thread_main, w));
    must(pthread_sigmask(SIG_SETMASK, &before, NULL));
}

struct worker *worker_new(struct loop *l, worker_run_fn *run, void *run_ctx, worker_back_fn *back,
                          void *back_ctx)
{
    struct worker *w = xcalloc(1, sizeof *w);
    w->run = run;
    w->run_ctx = run_ctx;
    w->back = back;
    w->back_ctx = back_ctx;
    list_init(&w->home);
    list_init(&w->given);
    list_init(&w->returned);
    must(uv_mutex_init(&w->lock));
    must(uv_cond_init(&w->to_thread));
    must(uv_cond_init(&w->to_loop));
    w->wakeup = loop_wakeup(l, on_wakeup, w);
    thread_start(w);
    return w;
}

struct worker *worker_free(struct worker *w)
{
    if (!w)
        return NULL;
    uv_mutex_lock(&w->lock);
    w->ending = true;
    uv_cond_signal(&w->to_thread);
    uv_mutex_unlock(&w->lock);
    must(uv_thread_join(&w->thread));
    deliver(w);
    loop_unwatch(w->wakeup);
    uv_cond_destroy(&w->to_thread);
    uv_cond_destroy(&w->to_loop);
    uv_mutex_destroy(&w->lock);
    free(w);
    return NULL;
}

void worker_give(struct worker *w, struct worker_item *item)
{
    uv_mutex_lock(&w->lock);
    list_add(&w->given, item);
    uv_mutex_unlock(&w->lock);
    uv_cond_signal(&w->to_thread); /* after it, or the thread would wake up to wait for the lock */
}

static uint64_t now_ns(void)
{
    return (uint64_t)clock_mono_ns();
}

/* Sleeps once on `c`, with the lock held; false when the time is over already. */
static bool sleep_until(struct worker *w, uv_cond_t *c, uint64_t until_ns)
{
    uint64_t now = now_ns();
    if (now >= until_ns)
        return false;
    uv_cond_timedwait(c, &w->lock, until_ns - now);
    return true;
}

bool worker_await(struct worker *w, uint64_t wait_ms)
{
    uint64_t until_ns = now_ns() + wait_ms * MS_NS;
    uv_mutex_lock(&w->lock);
    while (!w->returned.head && sleep_until(w, &w->to_loop, until_ns))
        ;
    bool some = w->returned.head != NULL;
    uv_mutex_unlock(&w->lock);
    deliver(w);
    return some;
}

struct worker_item *worker_take(struct worker *w, bool wait)
{
    uv_mutex_lock(&w->lock);
    while (wait && !w->given.head && !w->ending)
        uv_cond_wait(&w->to_thread, &w->lock);
    struct worker_item *all = list_take_all(&w->given);
    uv_mutex_unlock(&w->lock);
    return all;
}

void worker_return(struct worker *w, struct worker_item *item)
{
    uv_mutex_lock(&w->lock);
    bool first = !w->returned.head;
    list_add(&w->returned, item);
    uv_mutex_unlock(&w->lock);
    uv_cond_signal(&w->to_loop);
    if (first) /* else a wake-up is on its way already */
        loop_wakeup_send(w->wakeup);
}

bool worker_pause(struct worker *w, uint64_t ms)
{
    uint64_t until_ns = now_ns() + ms * MS_NS;
    uv_mutex_lock(&w->lock);
    while (!w->ending && sleep_until(w, &w->to_thread, until_ns))
        ;
    bool on = !w->ending;
    uv_mutex_unlock(&w->lock);
    return on;
}
