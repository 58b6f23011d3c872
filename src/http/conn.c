#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "http/state.h"
#include "sys/weak.h"

#define ACCEPTS_PER_TURN 64
#define ACCEPT_PAUSE_MS 1000
#define FULL_SAY_MS 10000 /* whoever comes and goes at the limit must not fill the log */
#define KEEP_ALIVE_S 15   /* silence after which the kernel asks, and between two questions */
#define KEEP_ALIVE_TRIES 3

/* ---- coming and going ---- */

static uint64_t peer_connections(const struct http_server *s, uint64_t key)
{
    uint64_t n = 0;
    map_get(&s->by_peer, key, &n);
    return n;
}

static void count_peer(struct http_server *s, uint64_t key, int change)
{
    uint64_t n = peer_connections(s, key) + (uint64_t)(int64_t)change;
    if (n)
        map_set(&s->by_peer, key, n);
    else
        map_remove(&s->by_peer, key);
}

/* `most` is at least one: a newcomer gets in while anything is free. */
static bool has_share(struct http_server *s, uint64_t key, size_t most, struct err *e)
{
    uint64_t n = peer_connections(s, key);
    if (n < most || weak_here("caller_share"))
        return true;
    err_set(e, ERR_UNAVAILABLE, "you have %llu connections open; the limit is %zu",
            (unsigned long long)n, most);
    err_hint(e, "close some, or try again later");
    return false;
}

bool conn_take_share(struct http_server *s, uint64_t peer_key, struct err *e)
{
    if (!has_share(s, peer_key, s->per_peer_max, e))
        return false;
    count_peer(s, peer_key, +1);
    return true;
}

void conn_give_share(struct http_server *s, uint64_t peer_key)
{
    count_peer(s, peer_key, -1);
}

/* A trusted proxy may have all of them; whom it calls for have their shares by request. */
static bool room_for(struct http_server *s, const struct conn *c, struct err *e)
{
    /* As many as are still free: the first may have half, two of them three quarters, and so on, so that a few
     * addresses never hold all. */
    size_t free_ones = s->config.connections_max - MIN(s->connections, s->config.connections_max);
    if (free_ones > 0)
        return c->trusted || has_share(s, c->peer_key, MIN(free_ones, s->per_peer_max), e);
    err_set(e, ERR_UNAVAILABLE, "all %u connections are taken", s->config.connections_max);
    err_hint(e, "close some, or try again later");
    return false;
}

static void count(struct conn *c, int change)
{
    c->server->connections += (size_t)(ptrdiff_t)change;
    if (!c->trusted)
        count_peer(c->server, c->peer_key, change);
}

/* One that the library dropped before it began is found by its descriptor, which is used again. */
static struct conn *arriving_take(struct http_server *s, int fd)
{
    for (struct conn **at = &s->arriving; *at; at = &(*at)->next) {
        struct conn *c = *at;
        if (c->fd != fd)
            continue;
        *at = c->next;
        c->next = NULL;
        return c;
    }
    return NULL;
}

static void refuse(struct http_server *s, struct conn *c, const struct err *why)
{
    int64_t now_ms = server_now_ms();
    if (s->full_said_ms == 0 || now_ms - s->full_said_ms >= FULL_SAY_MS) {
        s->full_said_ms = now_ms;
        log_event(s->config.log, LOG_WARN_, "http.full", "peer=%s uid=%u connections=%zu why=%s",
                  c->peer.address, c->peer.uid, s->connections, why->msg);
    }
    conn_refuse_and_cut(c, MHD_HTTP_SERVICE_UNAVAILABLE, why);
    close(c->fd);
    free(c);
}

static void admit(struct http_server *s, int fd, const union address *from, socklen_t from_bytes)
{
    struct conn *c = xcalloc(1, sizeof *c);
    struct err e;
    c->server = s;
    c->fd = fd;
    if (!peer_describe(c, from)) {
        close(fd);
        free(c);
        return;
    }
    if (!room_for(s, c, &e)) {
        refuse(s, c, &e);
        return;
    }
    conn_free(arriving_take(s, fd));
    count(c, +1);
    c->next = s->arriving;
    s->arriving = c;
    /* From here the descriptor is the library's, also when it refuses. */
    if (MHD_add_connection(s->mhd, fd, &from->any, from_bytes) != MHD_YES)
        conn_free(arriving_take(s, fd));
}

void conn_accept(struct http_server *s)
{
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        union address from = { 0 };
        socklen_t n = sizeof from;
        int fd = accept4(s->listen_fd, &from.any, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            admit(s, fd, &from, n);
            continue;
        }
        struct err e;
        if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
            return;
        /* Out of descriptors or memory: the caller stays in the queue; do not ask in circles. */
        log_event(s->config.log, LOG_WARN_, "http.accept", "why=%s", strerror(errno));
        if (loop_fd_set(s->listen_watch, 0, &e) == 0)
            loop_timer_set(s->listen_again, ACCEPT_PAUSE_MS, 0);
        return;
    }
}

struct conn *conn_begin(struct http_server *s, struct MHD_Connection *mhd)
{
    int fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    struct conn *c = arriving_take(s, fd);
    c->mhd = mhd;
    conn_receive_begin(c);
    return c;
}

struct conn *conn_free(struct conn *c)
{
    if (!c)
        return NULL;
    conn_receive_done(c);
    stream_unwatch(c);
    count(c, -1);
    free(c);
    return NULL;
}

void conn_cut(struct conn *c)
{
    shutdown(c->fd, SHUT_RDWR); /* the library finds it closed and does the rest */
}

/* Only where nothing else is being sent.  Inside TLS there is no way to say it. */
void conn_refuse_and_cut(struct conn *c, int status, const struct err *why)
{
    AUTO(buf_free) struct buf text = BUF(16384);
    if (!c->server->tls) {
        reply_text(status, why, &text);
        send(c->fd, text.p, text.n, MSG_DONTWAIT | MSG_NOSIGNAL); /* heard or not, it is cut */
    }
    conn_cut(c);
}

/* ---- the time a request may take to arrive ---- */

void conn_receive_done(struct conn *c)
{
    struct http_server *s = c->server;
    if (!c->receiving)
        return;
    *(c->prev ? &c->prev->next : &s->receiving) = c->next;
    *(c->next ? &c->next->prev : &s->receiving_last) = c->prev;
    c->prev = c->next = NULL;
    c->receiving = false;
}

static void check_after(struct http_server *s, int64_t wait_ms)
{
    loop_timer_set(s->receive_timer, (uint64_t)MAX(wait_ms, 1), 0);
    s->receive_timer_set = true;
}

void conn_receive_begin(struct conn *c)
{
    struct http_server *s = c->server;
    if (s->stopping)
        return;
    conn_receive_done(c);
    c->since_ms = server_now_ms();
    c->receiving = true;
    c->prev = s->receiving_last;
    *(c->prev ? &c->prev->next : &s->receiving) = c;
    s->receiving_last = c;
    if (!s->receive_timer_set)
        check_after(s, (int64_t)s->config.timeout_s * 1000);
}

static int64_t due_ms(const struct conn *c)
{
    size_t bytes = c->rq ? c->rq->body.n + c->rq->drained : 0;
    return c->since_ms + (int64_t)c->server->config.timeout_s * 1000 +
           (int64_t)(bytes / BODY_BYTES_PER_MS);
}

static void cut_late(struct conn *c)
{
    struct err e;
    conn_receive_done(c);
    if (!c->rq) { /* idle between two requests: nobody waits for a word */
        conn_cut(c);
        return;
    }
    err_set(&e, ERR_UNAVAILABLE, "the request did not arrive within %u seconds",
            c->server->config.timeout_s);
    conn_refuse_and_cut(c, MHD_HTTP_REQUEST_TIMEOUT, &e);
}

void conn_receive_check(struct http_server *s)
{
    int64_t now_ms = server_now_ms(), next_ms = INT64_MAX;
    s->receive_timer_set = false;
    for (struct conn *c = s->receiving, *next; c; c = next) {
        next = c->next;
        if (due_ms(c) > now_ms)
            next_ms = MIN(next_ms, due_ms(c));
        else
            cut_late(c);
        if (next && next->since_ms + (int64_t)s->config.timeout_s * 1000 > now_ms) {
            next_ms = MIN(next_ms, due_ms(next)); /* and those behind it came later still */
            break;
        }
    }
    if (next_ms != INT64_MAX)
        check_after(s, next_ms - now_ms);
}

/* ---- settings of the socket; a unix socket needs none ---- */

static void set(struct conn *c, int level, int name, int value)
{
    if (!c->peer.local && setsockopt(c->fd, level, name, &value, sizeof value) < 0)
        log_event(c->server->config.log, LOG_DEBUG_, "http.option", "option=%d why=%s", name,
                  strerror(errno));
}

void conn_keep_alive(struct conn *c)
{
    set(c, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(c, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_ALIVE_S);
    set(c, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_ALIVE_S);
    set(c, IPPROTO_TCP, TCP_KEEPCNT, KEEP_ALIVE_TRIES);
}
