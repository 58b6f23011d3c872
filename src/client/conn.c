#include "client/conn.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/parse.h"
#include "sys/file.h"

#define WAIT_SLICE_MS 250
#define PATIENCE_MS 1000

struct conn {
    int fd;
    struct tls *tls; /* NULL: plain */
};

/* ---- addresses ---- */

static int bad_address(const char *text, struct err *e)
{
    err_set(e, ERR_INVALID, "'%s' is no address of a server", text);
    return err_hint(e, "write unix:/run/nightshift/api.sock, http://host:port or https://host");
}

static int unix_address(const char *text, const char *path, struct address *out, struct err *e)
{
    if (strlen(path) >= sizeof out->path)
        return err_set(e, ERR_INVALID, "the socket's path is longer than %zu bytes: '%s'",
                       sizeof out->path - 1, path);
    if (path[0] != '/')
        return bad_address(text, e);
    *out = (struct address){ .kind = ADDRESS_UNIX };
    memcpy(out->path, path, strlen(path) + 1);
    snprintf(out->text, sizeof out->text, "%s", path);
    return 0;
}

/* host, host:port, [::1]:port */
static bool split_host(struct str s, struct str *host, struct str *port)
{
    if (s.n && s.p[0] == '[') {
        const char *end = memchr(s.p, ']', s.n);
        if (!end)
            return false;
        *host = (struct str){ s.p + 1, (size_t)(end - s.p) - 1 };
        struct str rest = { end + 1, s.n - host->n - 2 }, none;
        return rest.n == 0 ? (*port = rest, true) : str_cut(rest, ':', &none, port) && none.n == 0;
    }
    return str_cut(s, ':', host, port) ? port->n > 0 : true;
}

static bool tcp_address(struct str s, bool tls, struct address *out)
{
    struct address a = { .kind = tls ? ADDRESS_TLS : ADDRESS_TCP };
    struct str host, port;
    uint64_t number = tls ? 443 : 80;
    struct err why;
    while (s.n && s.p[s.n - 1] == '/')
        s.n--;
    if (memchr(s.p, '/', s.n) || memchr(s.p, '@', s.n) || !split_host(s, &host, &port))
        return false;
    if (host.n == 0 || host.n >= sizeof a.host)
        return false;
    if (port.n && (parse_u64(port, 65535, &number, &why) < 0 || number == 0))
        return false;
    memcpy(a.host, host.p, host.n);
    snprintf(a.port, sizeof a.port, "%u", (unsigned)number);
    snprintf(a.text, sizeof a.text, "%s://%.*s", tls ? "https" : "http", STR_ARG(s));
    *out = a;
    return true;
}

int address_parse(const char *text, struct address *out, struct err *e)
{
    if (strncmp(text, "unix:", 5) == 0)
        return unix_address(text, strncmp(text, "unix://", 7) == 0 ? text + 7 : text + 5, out, e);
    if (text[0] == '/')
        return unix_address(text, text, out, e);
    bool tls = strncmp(text, "https://", 8) == 0;
    if (!tls && strncmp(text, "http://", 7) != 0)
        return bad_address(text, e);
    struct str rest = str_of(text + (tls ? 8 : 7));
    return tcp_address(rest, tls, out) ? 0 : bad_address(text, e);
}

/* ---- waiting ---- */

/* Those who read signals from a descriptor block them; a server that hangs must not make Ctrl-C
 * hang, too. */
static bool told_to_end(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

static int wait_for(const struct conn *c, short events, int timeout_ms, struct err *e)
{
    struct pollfd p = { .fd = c->fd, .events = events };
    for (int waited = 0; waited < timeout_ms; waited += WAIT_SLICE_MS) {
        int n = poll(&p, 1, MIN(WAIT_SLICE_MS, timeout_ms));
        if (n > 0)
            return 0;
        if (waited >= PATIENCE_MS && told_to_end())
            return err_set(e, ERR_UNAVAILABLE, "interrupted while waiting for the server");
    }
    err_set(e, ERR_UNAVAILABLE, "the server does not answer (waited %d s)", timeout_ms / 1000);
    return err_hint(e, "try again; see the log of nightshiftd");
}

/* ---- connecting ---- */

static int cannot_reach(const struct address *a, int cause, struct err *e)
{
    err_set(e, ERR_UNAVAILABLE, "cannot reach the server at %s: %s", a->text, strerror(cause));
    if (a->kind != ADDRESS_UNIX)
        return err_hint(e, "check NIGHTSHIFT_SERVER, and that the server runs and may be reached");
    if (cause == EACCES)
        return err_hint(e, "see who may use it: ls -l %.150s", a->path);
    return err_hint(e, "start it with: nightshiftd   (or name another one in NIGHTSHIFT_SERVER)");
}

/* Waits for a connect that is under way; 0, or the errno of its failure. */
static int finish_connect(int fd, int timeout_ms)
{
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    int n, cause = 0;
    socklen_t size = sizeof cause;
    do {
        n = poll(&p, 1, timeout_ms);
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        return ETIMEDOUT;
    if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &cause, &size) < 0)
        return errno;
    return cause;
}

/* 0, or an errno; the descriptor in *out_fd. */
static int connect_to(int family, const void *to, socklen_t size, int timeout_ms, int *out_fd)
{
    AUTO(file_close_p) int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    int cause = connect(fd, to, size) == 0 ? 0 : errno;
    if (cause == EINPROGRESS || cause == EINTR)
        cause = finish_connect(fd, timeout_ms);
    if (cause)
        return cause;
    *out_fd = fd;
    fd = -1;
    return 0;
}

static int connect_unix(const struct address *a, int timeout_ms, struct err *e)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int fd = -1;
    memcpy(to.sun_path, a->path, sizeof a->path);
    int cause = connect_to(AF_UNIX, &to, sizeof to, timeout_ms, &fd);
    return cause ? cannot_reach(a, cause, e) : fd;
}

static int connect_tcp(const struct address *a, int timeout_ms, struct err *e)
{
    struct addrinfo hint = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG }, *list = NULL;
    int rc = getaddrinfo(a->host, a->port, &hint, &list);
    if (rc != 0) {
        err_set(e, ERR_UNAVAILABLE, "cannot find the server %s: %s", a->host, gai_strerror(rc));
        return err_hint(e, "check the name in NIGHTSHIFT_SERVER");
    }
    int fd = -1, cause = EHOSTUNREACH, on = 1;
    for (struct addrinfo *i = list; i && fd < 0; i = i->ai_next)
        cause = connect_to(i->ai_family, i->ai_addr, i->ai_addrlen, timeout_ms, &fd);
    freeaddrinfo(list);
    if (fd < 0)
        return cannot_reach(a, cause, e);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    return fd;
}

static int connect_tls(struct conn *c, const struct address *a, int timeout_ms, struct err *e)
{
    enum conn_io io;
    c->tls = tls_new(a, c->fd, e);
    if (!c->tls)
        return -1;
    while ((io = tls_connect(c->tls, a, e)) == CONN_AGAIN)
        if (wait_for(c, tls_wants_write(c->tls) ? POLLOUT : POLLIN, timeout_ms, e) < 0)
            return -1;
    return io == CONN_OK ? 0 : -1;
}

struct conn *conn_open(const struct address *a, int timeout_ms, struct err *e)
{
    struct conn *c = xcalloc(1, sizeof *c);
    bool local = a->kind == ADDRESS_UNIX;
    c->fd = local ? connect_unix(a, timeout_ms, e) : connect_tcp(a, timeout_ms, e);
    if (c->fd < 0 || (a->kind == ADDRESS_TLS && connect_tls(c, a, timeout_ms, e) < 0))
        return conn_free(c);
    return c;
}

struct conn *conn_free(struct conn *c)
{
    if (!c)
        return NULL;
    tls_free(c->tls);
    if (c->fd >= 0)
        close(c->fd);
    free(c);
    return NULL;
}

void conn_free_p(struct conn **c)
{
    *c = conn_free(*c);
}

int conn_fd(const struct conn *c)
{
    return c->fd;
}

/* ---- bytes ---- */

static enum conn_io failed(const char *verb, struct err *e)
{
    switch (errno) {
    case EAGAIN:
    case EINTR: return CONN_AGAIN;
    case EPIPE:
    case ECONNRESET:
        err_set(e, ERR_UNAVAILABLE, "the server closed the connection");
        return CONN_EOF;
    default:
        err_set(e, ERR_UNAVAILABLE, "cannot %s the server: %s", verb, strerror(errno));
        return CONN_BROKEN;
    }
}

enum conn_io conn_read(struct conn *c, char *p, size_t n, size_t *out_n, struct err *e)
{
    if (c->tls)
        return tls_read(c->tls, p, n, out_n, e);
    ssize_t got = recv(c->fd, p, n, 0);
    if (got < 0)
        return failed("read from", e);
    *out_n = (size_t)got;
    return got ? CONN_OK : CONN_EOF;
}

enum conn_io conn_write(struct conn *c, struct str bytes, size_t *out_n, struct err *e)
{
    if (c->tls)
        return tls_write(c->tls, bytes, out_n, e);
    ssize_t put = send(c->fd, bytes.p, bytes.n, MSG_NOSIGNAL);
    if (put < 0)
        return failed("write to", e);
    *out_n = (size_t)put;
    return CONN_OK;
}

int conn_wait_readable(struct conn *c, int timeout_ms, struct err *e)
{
    return wait_for(c, POLLIN, timeout_ms, e);
}

enum conn_io conn_write_all(struct conn *c, struct str bytes, int timeout_ms, struct err *e)
{
    while (bytes.n) {
        size_t n = 0;
        enum conn_io io = conn_write(c, bytes, &n, e);
        if (io == CONN_AGAIN && wait_for(c, POLLOUT, timeout_ms, e) < 0)
            return CONN_BROKEN;
        if (io != CONN_OK && io != CONN_AGAIN)
            return io;
        bytes = (struct str){ bytes.p + n, bytes.n - n };
    }
    return CONN_OK;
}
