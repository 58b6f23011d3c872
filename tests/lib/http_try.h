/* http_try - a server and its clients on one loop, for the tests of src/http.
 *
 * Clients are plain sockets: a test sends bytes and waits for bytes while the loop runs, so it sees
 * exactly what is on the wire.  Every wait ends with a failed check after TEST_PATIENCE_MS.
 */
#ifndef NS_TESTS_LIB_HTTP_TRY_H
#define NS_TESTS_LIB_HTTP_TRY_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "http/http.h"
#include "tests/lib/try_wait.h"

#define TRY_HOST "Host: t\r\n"

/* ---- a client ---- */

struct try_client {
    struct loop *loop;
    int fd;
    struct loop_watch *watch;
    struct buf in, out;
    size_t out_at;
    bool eof, deaf;      /* deaf: reads nothing */
    const char *waiting; /* for these bytes to come in */
};

static void try_client_listen(struct try_client *c)
{
    struct err e;
    unsigned want = (c->eof || c->deaf ? 0u : LOOP_READ) | (c->out_at < c->out.n ? LOOP_WRITE : 0u);
    CHECK(loop_fd_set(c->watch, want, &e) == 0);
}

static void try_client_read(struct try_client *c)
{
    char bytes[65536];
    ssize_t n = read(c->fd, bytes, sizeof bytes);
    if (n > 0)
        buf_add(&c->in, (struct str){ bytes, (size_t)n });
    else if (n == 0 || errno != EAGAIN)
        c->eof = true;
}

static void try_client_write(struct try_client *c)
{
    ssize_t n = send(c->fd, c->out.p + c->out_at, c->out.n - c->out_at, MSG_NOSIGNAL);
    if (n > 0)
        c->out_at += (size_t)n;
    else if (errno != EAGAIN)
        c->out_at = c->out.n; /* nobody reads it: what was said is still to be read */
}

static void try_client_ready(void *ctx, unsigned events)
{
    struct try_client *c = ctx;
    if (events & LOOP_READ)
        try_client_read(c);
    if (events & LOOP_WRITE && c->out_at < c->out.n)
        try_client_write(c);
    try_client_listen(c);
}

static TRY_UNUSED void try_client_begin(struct try_client *c, struct loop *l, int fd)
{
    struct err e;
    *c = (struct try_client){ .loop = l, .fd = fd, .in = BUF(64u << 20), .out = BUF(64u << 20) };
    c->watch = loop_fd(l, fd, try_client_ready, c, &e);
    CHECK(c->watch);
    try_client_listen(c);
}

static TRY_UNUSED void try_client_tcp(struct try_client *c, struct loop *l, uint16_t port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    try_client_begin(c, l, fd);
}

static TRY_UNUSED void try_client_unix(struct try_client *c, struct loop *l, const char *path)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    try_client_begin(c, l, fd);
}

static TRY_UNUSED void try_send(struct try_client *c, const char *text)
{
    buf_addz(&c->out, text);
    try_client_listen(c);
}

static bool try_heard(void *ctx)
{
    struct try_client *c = ctx;
    return c->eof || (c->waiting && c->in.p && strstr(c->in.p, c->waiting));
}

/* Everything received so far, once `text` is in it; NULL: once the server has closed. */
static TRY_UNUSED const char *try_hear(struct try_client *c, const char *text)
{
    c->waiting = text;
    try_until(c->loop, try_heard, c);
    if (text && !(c->in.p && strstr(c->in.p, text)))
        test_fail(__FILE__, __LINE__, "closed before '%s' came, after '%s'", text,
                  c->in.p ? c->in.p : "");
    return c->in.p ? c->in.p : "";
}

static TRY_UNUSED void try_forget(struct try_client *c) /* what was received */
{
    buf_truncate(&c->in, 0);
}

static TRY_UNUSED void try_client_end(struct try_client *c)
{
    c->watch = loop_unwatch(c->watch);
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    buf_free(&c->in);
    buf_free(&c->out);
}

/* ---- a server ---- */

struct trial {
    struct loop *loop;
    struct http_server *server;
    struct http_request *held[8]; /* that a handler left for later */
    size_t n_held;
    int handled, closed;
    char text[1024]; /* for a handler to leave something */
    char folder[64], path[96];
};

static TRY_UNUSED void trial_begin(struct trial *t, struct http_config *c)
{
    struct err e;
    *t = (struct trial){ .loop = loop_new() };
    if (!c->unix_path)
        c->host = c->host ? c->host : "127.0.0.1";
    c->ctx = t;
    c->body_max = c->body_max ? c->body_max : 1000;
    t->server = http_new(t->loop, c, &e);
    if (!t->server)
        test_fail(__FILE__, __LINE__, "no server: %s", e.msg);
}

static TRY_UNUSED void trial_end(struct trial *t)
{
    t->server = http_free(t->server);
    t->loop = loop_free(t->loop);
}

/* One whole exchange on a connection of its own: the request should end it. */
static TRY_UNUSED char *try_ask(struct trial *t, struct arena *a, const char *request)
{
    struct try_client c;
    try_client_tcp(&c, t->loop, http_port(t->server));
    try_send(&c, request);
    const char *all = try_hear(&c, NULL);
    char *copy = arena_strndup(a, all, strlen(all));
    try_client_end(&c);
    return copy;
}

static TRY_UNUSED bool try_held(void *ctx)
{
    return ((struct trial *)ctx)->n_held > 0;
}

static TRY_UNUSED bool try_closed(void *ctx)
{
    return ((struct trial *)ctx)->closed > 0;
}

static TRY_UNUSED bool try_idle(void *ctx)
{
    return http_open_requests(((struct trial *)ctx)->server) == 0;
}

static TRY_UNUSED void hold(void *ctx, struct http_request *rq)
{
    struct trial *t = ctx;
    t->handled++;
    t->held[t->n_held++] = rq;
}

static TRY_UNUSED void on_stream_close(void *ctx)
{
    ((struct trial *)ctx)->closed++;
}

#endif
