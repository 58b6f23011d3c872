#include <errno.h>
#include <sys/epoll.h>

#include "http/state.h"

/* While a stream has nothing to send its connection is suspended, and the library does not look at
 * it: so those who go away are watched for here, all of them in one epoll set that says nothing
 * until it happens.  A peer that vanishes without a word is found by the kernel's keep-alive. */

#define QUEUE_KEEP_BYTES 4096 /* of an empty queue */
#define BLOCK_BYTES 1024      /* at once, to a client of HTTP/1.0; every stream has room for it */
#define GONE_PER_TURN 64
#define ROOM_BYTES (64u << 10) /* still queued when more is asked for */

static void cut(struct http_request *rq)
{
    rq->stream.cut = true;
    conn_cut(rq->conn);
    request_resume(rq);
}

static void on_gone(void *ctx, unsigned events)
{
    (void)events;
    struct http_server *s = ctx;
    struct epoll_event gone[GONE_PER_TURN];
    int n = epoll_wait(s->gone_fd, gone, GONE_PER_TURN, 0);
    for (int i = 0; i < n; i++) {
        struct conn *c = gone[i].data.ptr;
        if (c->rq && c->rq->stream.begun)
            cut(c->rq);
    }
}

int stream_watch_begin(struct http_server *s, struct err *e)
{
    s->gone_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->gone_fd < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot watch connections: %s", strerror(errno));
    s->gone_watch = loop_fd(s->loop, s->gone_fd, on_gone, s, e);
    return s->gone_watch ? loop_fd_set(s->gone_watch, LOOP_READ, e) : -1;
}

/* Changing a watch makes it look again, so one who left between two streams is noticed too. */
static void watch(struct conn *c)
{
    struct epoll_event ev = { .events = EPOLLRDHUP | EPOLLET, .data.ptr = c };
    int op = c->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    c->watched = epoll_ctl(c->server->gone_fd, op, c->fd, &ev) == 0;
    if (!c->watched)
        log_event(c->server->config.log, LOG_WARN_, "http.watch", "why=%s", strerror(errno));
}

/* A child between fork and exec holds the descriptor too; closing it does not end the watch. */
void stream_unwatch(struct conn *c)
{
    if (c->watched)
        epoll_ctl(c->server->gone_fd, EPOLL_CTL_DEL, c->fd, NULL);
    c->watched = false;
}

static void drop_sent(struct stream *st)
{
    if (st->sent < st->queue.n) {
        memmove(st->queue.p, st->queue.p + st->sent, st->queue.n - st->sent);
        buf_truncate(&st->queue, st->queue.n - st->sent);
    } else if (st->queue.cap > QUEUE_KEEP_BYTES) {
        size_t limit = st->queue.limit;
        buf_free(&st->queue);
        st->queue = BUF(limit);
    } else {
        buf_truncate(&st->queue, 0);
    }
    st->sent = 0;
}

static void tell_room(struct http_request *rq)
{
    struct stream *st = &rq->stream;
    if (!st->on_room || !st->filled || st->ended || http_stream_queued(rq) > ROOM_BYTES)
        return;
    st->filled = false;
    st->on_room(st->ctx);
}

/* The library asks for bytes. */
static ssize_t on_read(void *ctx, uint64_t at, char *to, size_t room)
{
    (void)at;
    struct http_request *rq = ctx;
    struct stream *st = &rq->stream;
    size_t n = MIN(room, http_stream_queued(rq));
    if (st->cut)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (n > 0) {
        memcpy(to, st->queue.p + st->sent, n);
        st->sent += n;
        if (st->sent == st->queue.n)
            drop_sent(st);
        tell_room(rq);
        return (ssize_t)n;
    }
    if (st->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    rq->suspended = true;
    MHD_suspend_connection(rq->conn->mhd);
    return 0;
}

void http_stream_begin(struct http_request *rq, int status, const char *type, loop_fn *on_close,
                       void *ctx)
{
    if (!reply_may_begin(rq))
        return;
    reply_type(rq, type);
    rq->stream = (struct stream){ .on_close = on_close, .ctx = ctx, .begun = true };
    rq->stream.queue = BUF(rq->conn->server->config.stream_queue_max);
    watch(rq->conn);
    conn_keep_alive(rq->conn);
    reply_with(rq, status,
               MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_read, rq, NULL));
}

bool http_stream_write(struct http_request *rq, struct str bytes)
{
    struct stream *st = &rq->stream;
    if (st->cut || st->ended || rq->conn->server->stopping)
        return false;
    if (st->sent > 0 && bytes.n > st->queue.limit - st->queue.n)
        drop_sent(st);
    buf_add(&st->queue, bytes);
    st->filled = st->filled || http_stream_queued(rq) > ROOM_BYTES;
    if (st->queue.full) {
        log_event(rq->conn->server->config.log, LOG_INFO_, "http.slow_reader",
                  "peer=%s path=%s queued=%zu", rq->peer.address, rq->target.path,
                  http_stream_queued(rq));
        cut(rq);
        return false;
    }
    if (bytes.n > 0)
        request_resume(rq);
    return true;
}

size_t http_stream_queued(const struct http_request *rq)
{
    return rq->stream.queue.n - rq->stream.sent;
}

void http_stream_on_room(struct http_request *rq, loop_fn *fn)
{
    rq->stream.on_room = fn;
}

void http_stream_end(struct http_request *rq)
{
    rq->stream.ended = true;
    request_resume(rq);
}

void stream_completed(struct http_request *rq)
{
    struct stream *st = &rq->stream;
    if (st->begun && !st->ended && st->on_close)
        st->on_close(st->ctx);
}
