#include "sys/loop.h"

#include <uv.h>

struct loop {
    uv_loop_t uv;
};

/* The libuv handle comes first: a handle is freed by its own address, whoever made it. */
struct loop_watch {
    union {
        uv_handle_t any;
        uv_timer_t timer;
        uv_signal_t signal;
        uv_async_t async;
        uv_poll_t poll;
    } h;
    loop_fn *fn;
    loop_fd_fn *fd_fn;
    void *ctx;
};

/* Making a loop or a handle fails only for want of memory or descriptors. */
static void must(int rc)
{
    if (rc < 0)
        abort();
}

struct loop *loop_new(void)
{
    struct loop *l = xcalloc(1, sizeof *l);
    must(uv_loop_init(&l->uv));
    return l;
}

static void on_closed(uv_handle_t *h)
{
    free(h);
}

static void close_if_open(uv_handle_t *h, void *ctx)
{
    (void)ctx;
    if (!uv_is_closing(h))
        uv_close(h, on_closed);
}

struct loop *loop_free(struct loop *l)
{
    if (!l)
        return NULL;
    uv_walk(&l->uv, close_if_open, NULL);
    while (uv_run(&l->uv, UV_RUN_DEFAULT)) /* again: a stop from before may end it early */
        ;
    must(uv_loop_close(&l->uv));
    free(l);
    return NULL;
}

void loop_free_p(struct loop **l)
{
    *l = loop_free(*l);
}

void loop_run(struct loop *l)
{
    uv_run(&l->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *l)
{
    uv_stop(&l->uv);
}

struct uv_loop_s *loop_uv(struct loop *l)
{
    return &l->uv;
}

static struct loop_watch *watch_new(loop_fn *fn, void *ctx)
{
    struct loop_watch *w = xcalloc(1, sizeof *w);
    w->fn = fn;
    w->ctx = ctx;
    return w;
}

struct loop_watch *loop_unwatch(struct loop_watch *w)
{
    if (w)
        close_if_open(&w->h.any, NULL);
    return NULL;
}

static void on_timer(uv_timer_t *t)
{
    struct loop_watch *w = (struct loop_watch *)t;
    w->fn(w->ctx);
}

struct loop_watch *loop_timer(struct loop *l, loop_fn *fn, void *ctx)
{
    struct loop_watch *w = watch_new(fn, ctx);
    must(uv_timer_init(&l->uv, &w->h.timer));
    return w;
}

void loop_timer_set(struct loop_watch *timer, uint64_t after_ms, uint64_t repeat_ms)
{
    /* libuv counts from when the loop last woke; a long callback would shorten the wait. */
    uv_update_time(timer->h.any.loop);
    must(uv_timer_start(&timer->h.timer, on_timer, after_ms, repeat_ms));
}

void loop_timer_clear(struct loop_watch *timer)
{
    uv_timer_stop(&timer->h.timer);
}

static void on_signal(uv_signal_t *s, int signo)
{
    (void)signo;
    struct loop_watch *w = (struct loop_watch *)s;
    w->fn(w->ctx);
}

struct loop_watch *loop_signal(struct loop *l, int signo, loop_fn *fn, void *ctx, struct err *e)
{
    struct loop_watch *w = watch_new(fn, ctx);
    must(uv_signal_init(&l->uv, &w->h.signal));
    int rc = uv_signal_start(&w->h.signal, on_signal, signo);
    if (rc == 0)
        return w;
    err_set(e, ERR_INTERNAL, "cannot watch signal %d: %s", signo, uv_strerror(rc));
    return loop_unwatch(w);
}

static void on_async(uv_async_t *a)
{
    struct loop_watch *w = (struct loop_watch *)a;
    w->fn(w->ctx);
}

struct loop_watch *loop_wakeup(struct loop *l, loop_fn *fn, void *ctx)
{
    struct loop_watch *w = watch_new(fn, ctx);
    must(uv_async_init(&l->uv, &w->h.async, on_async));
    return w;
}

void loop_wakeup_send(struct loop_watch *wakeup)
{
    must(uv_async_send(&wakeup->h.async));
}

static void on_poll(uv_poll_t *p, int status, int events)
{
    struct loop_watch *w = (struct loop_watch *)p;
    /* On an error both: the owner's read or write then meets the cause itself. */
    unsigned got = status < 0 ? LOOP_READ | LOOP_WRITE : 0;
    got |= events & (UV_READABLE | UV_DISCONNECT) ? LOOP_READ : 0;
    got |= events & UV_WRITABLE ? LOOP_WRITE : 0;
    w->fd_fn(w->ctx, got);
}

struct loop_watch *loop_fd(struct loop *l, int fd, loop_fd_fn *fn, void *ctx, struct err *e)
{
    struct loop_watch *w = watch_new(NULL, ctx);
    w->fd_fn = fn;
    int rc = uv_poll_init(&l->uv, &w->h.poll, fd);
    if (rc == 0)
        return w;
    free(w); /* a handle that was not begun must not be closed */
    err_set(e, ERR_INTERNAL, "cannot watch descriptor %d: %s", fd, uv_strerror(rc));
    return NULL;
}

int loop_fd_set(struct loop_watch *watch, unsigned events, struct err *e)
{
    int want = (events & LOOP_READ ? UV_READABLE | UV_DISCONNECT : 0) |
               (events & LOOP_WRITE ? UV_WRITABLE : 0);
    int rc = want ? uv_poll_start(&watch->h.poll, want, on_poll) : uv_poll_stop(&watch->h.poll);
    return rc == 0 ? 0 : err_set(e, ERR_INTERNAL, "cannot watch: %s", uv_strerror(rc));
}
