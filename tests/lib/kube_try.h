/* kube_try - an API server of a few lines on the test's own loop, for the tests of src/kube.
 *
 * It speaks HTTP/1.1 on a port of the loopback and knows nothing: the test's handler gets each whole request and
 * says the bytes of the answer, now or later, or hangs up.  Waits end with a failed check after
 * TEST_PATIENCE_MS.
 */
#ifndef NS_TESTS_LIB_KUBE_TRY_H
#define NS_TESTS_LIB_KUBE_TRY_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "kube/config.h"
#include "tests/lib/try_wait.h"

#define TRY_CONNS 256
#define TRY_BYTES ((size_t)64 << 20)

struct try_api;

struct try_conn {
    struct try_api *api;
    int fd; /* -1: gone */
    struct loop_watch *watch;
    struct buf in, out;
    size_t out_at;
    bool ending; /* hang up when everything was said */
    bool raw;    /* no more HTTP: the handler gets whatever comes */
    void *ctx;
};

typedef void try_fn(struct try_conn *conn, struct str request);

struct try_api {
    struct loop *loop;
    int fd;
    uint16_t port;
    struct loop_watch *watch;
    try_fn *fn;
    void *ctx;
    struct try_conn conns[TRY_CONNS];
    size_t n_conns, requests, now, most; /* open at the same time: now, and at most */
    struct arena arena;
};

/* ---- a connection ---- */

static void try_drop(struct try_conn *c)
{
    if (c->fd < 0)
        return;
    loop_unwatch(c->watch);
    close(c->fd);
    c->fd = -1;
    c->api->now--;
}

static void try_flush(struct try_conn *c)
{
    struct err e;
    while (c->fd >= 0 && c->out_at < c->out.n) {
        ssize_t n = send(c->fd, c->out.p + c->out_at, c->out.n - c->out_at, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            try_drop(c);
            return;
        }
        c->out_at += (size_t)n;
    }
    bool left = c->out_at < c->out.n;
    if (!left && c->ending)
        try_drop(c);
    else if (c->fd >= 0)
        CHECK(loop_fd_set(c->watch, LOOP_READ | (left ? LOOP_WRITE : 0u), &e) == 0);
}

static void try_say_bytes(struct try_conn *c, struct str bytes)
{
    buf_add(&c->out, bytes);
    CHECK(!c->out.full);
    try_flush(c);
}

static TRY_UNUSED PRINTF_LIKE(2, 3) void try_say(struct try_conn *c, const char *fmt, ...)
{
    va_list ap;
    char text[8192];
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    CHECK(n >= 0 && (size_t)n < sizeof text);
    try_say_bytes(c, (struct str){ text, (size_t)n });
}

static TRY_UNUSED void try_reply(struct try_conn *c, const char *status, const char *headers,
                                 const char *body)
{
    try_say(c, "HTTP/1.1 %s\r\n%sContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
            status, headers, strlen(body), body);
}

/* A body without an end: try_chunk, then try_last_chunk or try_hang_up. */
static TRY_UNUSED void try_stream(struct try_conn *c)
{
    try_say(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

static TRY_UNUSED void try_chunk(struct try_conn *c, const char *text)
{
    try_say(c, "%zx\r\n%s\r\n", strlen(text), text);
}

static TRY_UNUSED void try_last_chunk(struct try_conn *c)
{
    try_say(c, "0\r\n\r\n");
}

static TRY_UNUSED void try_hang_up(struct try_conn *c)
{
    c->ending = true;
    try_flush(c);
}

/* How long the first request is with its body; 0: not all of it is there. */
static size_t try_whole(const struct try_conn *c)
{
    const char *end = c->in.p ? strstr(c->in.p, "\r\n\r\n") : NULL, *length;
    size_t body = 0;
    if (!end)
        return 0;
    length = strcasestr(c->in.p, "\r\nContent-Length: ");
    if (length && length < end)
        body = strtoul(length + 18, NULL, 10);
    size_t n = (size_t)(end - c->in.p) + 4 + body;
    return n <= c->in.n ? n : 0;
}

static void try_hear(void *ctx, unsigned events)
{
    struct try_conn *c = ctx;
    char chunk[65536];
    ssize_t n = 0;
    if (events & LOOP_WRITE)
        try_flush(c);
    while (c->fd >= 0 && (n = recv(c->fd, chunk, sizeof chunk, 0)) > 0)
        buf_add(&c->in, (struct str){ chunk, (size_t)n });
    bool gone = c->fd < 0 || n == 0 || errno != EAGAIN;
    size_t whole;
    while (c->fd >= 0 && (whole = c->raw ? c->in.n : try_whole(c))) {
        AUTO(arena_free) struct arena a = { 0 };
        struct str rq = { arena_strndup(&a, c->in.p, whole), whole };
        buf_drop_front(&c->in, whole);
        c->api->requests++;
        c->api->fn(c, rq);
    }
    if (gone)
        try_drop(c);
}

static void try_accept(void *ctx, unsigned events)
{
    (void)events;
    struct try_api *api = ctx;
    struct err e;
    int fd = accept4(api->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    CHECK(api->n_conns < TRY_CONNS);
    struct try_conn *c = &api->conns[api->n_conns++];
    *c = (struct try_conn){ .api = api, .fd = fd, .in = BUF(TRY_BYTES), .out = BUF(TRY_BYTES) };
    api->now++;
    api->most = MAX(api->most, api->now);
    c->watch = loop_fd(api->loop, fd, try_hear, c, &e);
    CHECK(c->watch && loop_fd_set(c->watch, LOOP_READ, &e) == 0);
}

/* ---- the server ---- */

static TRY_UNUSED struct try_api *try_begin(struct loop *l, try_fn *fn, void *ctx)
{
    struct try_api *api = xcalloc(1, sizeof *api);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;
    struct err e;
    *api = (struct try_api){ .loop = l, .fn = fn, .ctx = ctx };
    api->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(bind(api->fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(api->fd, 64) == 0);
    CHECK(getsockname(api->fd, (struct sockaddr *)&at, &n) == 0);
    api->port = ntohs(at.sin_port);
    api->watch = loop_fd(l, api->fd, try_accept, api, &e);
    CHECK(api->watch && loop_fd_set(api->watch, LOOP_READ, &e) == 0);
    return api;
}

static TRY_UNUSED void try_end(struct try_api *api)
{
    for (size_t i = 0; i < api->n_conns; i++) {
        try_drop(&api->conns[i]);
        buf_free(&api->conns[i].in);
        buf_free(&api->conns[i].out);
    }
    loop_unwatch(api->watch);
    close(api->fd);
    arena_free(&api->arena);
    free(api);
}

/* A config for this server, which lives as long as it. */
static TRY_UNUSED struct kube_config try_config(struct try_api *api)
{
    return (struct kube_config){
        .server = arena_printf(&api->arena, "http://127.0.0.1:%u", api->port),
        .source = "a test",
        .space = "default",
    };
}

#endif
