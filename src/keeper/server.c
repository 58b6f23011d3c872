#include "keeper/server.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "sys/file.h"
#include "sys/weak.h"
#include "wire/keeper.h"

struct server {
    struct server_config c;
    char path[108];
    int listen_fd, fd; /* fd -1: nobody is connected */
    struct loop_watch *listen_watch, *watch;
    struct buf in, out;
    size_t sent; /* of out */
};

static void hang_up(struct server *s, const char *why)
{
    if (s->fd < 0)
        return;
    log_event(s->c.log, LOG_INFO_, "daemon.gone", "why=%s", why);
    s->watch = loop_unwatch(s->watch);
    file_close_p(&s->fd);
    buf_free(&s->in);
    buf_free(&s->out);
    s->in = BUF(KEEPER_LINE_MAX);
    s->out = BUF(SERVER_OUT_MAX);
    s->sent = 0;
}

static void want_events(struct server *s)
{
    struct err e;
    unsigned events = LOOP_READ | (s->sent < s->out.n ? LOOP_WRITE : 0u);
    if (loop_fd_set(s->watch, events, &e) < 0)
        hang_up(s, e.msg);
}

static void flush(struct server *s)
{
    while (s->fd >= 0 && s->sent < s->out.n) {
        ssize_t n = send(s->fd, s->out.p + s->sent, s->out.n - s->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            hang_up(s, strerror(errno));
            return;
        }
        s->sent += (size_t)n;
    }
    if (s->sent == s->out.n) {
        buf_truncate(&s->out, 0);
        s->sent = 0;
    }
    if (s->fd >= 0)
        want_events(s);
}

void server_send(struct server *s, struct str lines)
{
    if (s->fd < 0)
        return;
    buf_add(&s->out, lines);
    if (s->out.full)
        hang_up(s, "it does not read");
    else
        flush(s);
}

/* The connection may be replaced or closed by what a line does. */
static bool take_lines(struct server *s, int fd)
{
    size_t used = 0;
    while (s->fd == fd && used < s->in.n) {
        const char *begin = s->in.p + used, *end = memchr(begin, '\n', s->in.n - used);
        if (!end)
            break;
        used += (size_t)(end - begin) + 1;
        s->c.line(s->c.ctx, (struct str){ begin, (size_t)(end - begin) });
    }
    if (s->fd != fd)
        return false;
    if (used) {
        memmove(s->in.p, s->in.p + used, s->in.n - used);
        buf_truncate(&s->in, s->in.n - used);
    }
    return true;
}

static void on_readable(struct server *s)
{
    char piece[65536];
    int fd = s->fd;
    ssize_t n = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        hang_up(s, n == 0 ? "it closed the connection" : strerror(errno));
        return;
    }
    for (size_t at = 0; at < (size_t)n;) {
        size_t take = MIN((size_t)n - at, KEEPER_LINE_MAX - s->in.n);
        buf_add(&s->in, (struct str){ piece + at, take });
        at += take;
        if (!take_lines(s, fd))
            return;
        if (s->in.n == KEEPER_LINE_MAX) {
            hang_up(s, "a line is too long");
            return;
        }
    }
}

static void on_event(void *ctx, unsigned events)
{
    struct server *s = ctx;
    if (events & LOOP_WRITE)
        flush(s);
    if (s->fd >= 0 && events & LOOP_READ)
        on_readable(s);
}

static void on_connection(void *ctx, unsigned events)
{
    struct server *s = ctx;
    struct err e;
    (void)events;
    int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    hang_up(s, "another one came");
    s->fd = fd;
    s->watch = loop_fd(s->c.loop, fd, on_event, s, &e);
    if (!s->watch) {
        file_close_p(&s->fd);
        return;
    }
    want_events(s);
    log_plain(s->c.log, LOG_INFO_, "daemon.connected");
    s->c.opened(s->c.ctx);
}

static int listen_at(struct server *s, struct err *e)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    if (strlen(s->c.path) >= sizeof at.sun_path)
        return err_set(e, ERR_TOO_LARGE,
                       "the path '%s' is too long for a socket; at most %zu bytes", s->c.path,
                       sizeof at.sun_path - 1);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", s->c.path);
    snprintf(s->path, sizeof s->path, "%s", s->c.path);
    unlink(at.sun_path);
    s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0177); /* nobody else gets in before the group is set */
    int rc = s->listen_fd < 0 ? -1 : bind(s->listen_fd, (struct sockaddr *)&at, sizeof at);
    umask(before);
    if (rc < 0 || chown(at.sun_path, (uid_t)-1, s->c.gid) < 0 ||
        chmod(at.sun_path, weak_or("socket_modes", 0660, 0666)) < 0 || listen(s->listen_fd, 8) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot listen on '%s': %s", at.sun_path,
                       strerror(errno));
    s->listen_watch = loop_fd(s->c.loop, s->listen_fd, on_connection, s, e);
    return s->listen_watch ? loop_fd_set(s->listen_watch, LOOP_READ, e) : -1;
}

struct server *server_new(const struct server_config *c, struct err *e)
{
    struct server *s = xcalloc(1, sizeof *s);
    s->c = *c;
    s->fd = s->listen_fd = -1;
    s->in = BUF(KEEPER_LINE_MAX);
    s->out = BUF(SERVER_OUT_MAX);
    return listen_at(s, e) == 0 ? s : server_free(s);
}

struct server *server_free(struct server *s)
{
    if (!s)
        return NULL;
    hang_up(s, "the keeper ends");
    loop_unwatch(s->listen_watch);
    file_close_p(&s->listen_fd);
    if (s->path[0])
        unlink(s->path);
    buf_free(&s->in);
    buf_free(&s->out);
    free(s);
    return NULL;
}
