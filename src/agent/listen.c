#include "agent/listen.h"

#include <errno.h>
#include <grp.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct talk {
    struct listen *of;
    int fd;
    struct loop_watch *watch, *timer;
    struct buf in, out;
    size_t sent;
    bool used;
};

struct listen {
    struct listen_config config;
    int fd;
    struct loop_watch *watch;
    struct talk talk[LISTEN_MAX];
    char path[108]; /* of the socket, to remove it */
};

static void end(struct talk *t)
{
    loop_unwatch(t->watch);
    loop_unwatch(t->timer);
    close(t->fd);
    buf_free(&t->in);
    buf_free(&t->out);
    *t = (struct talk){ .of = t->of, .fd = -1 };
}

static void on_late(void *ctx)
{
    end(ctx);
}

/* false: it is over. */
static bool send_some(struct talk *t)
{
    while (t->sent < t->out.n) {
        ssize_t n = send(t->fd, t->out.p + t->sent, t->out.n - t->sent, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        t->sent += (size_t)n;
    }
    return false;
}

static uint32_t peer_uid(int fd)
{
    struct ucred who;
    socklen_t n = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 ? who.uid : UINT32_MAX;
}

/* false: it is over. */
static bool receive_some(struct talk *t)
{
    const struct listen_config *c = &t->of->config;
    char bytes[1024];
    struct err ignored;
    ssize_t n = recv(t->fd, bytes, sizeof bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    buf_add(&t->in, (struct str){ bytes, (size_t)n });
    if (t->in.full)
        return false;
    if (!memmem(t->in.p, t->in.n, c->end, strlen(c->end)))
        return true;
    c->answer(c->ctx, t->of->path[0] ? peer_uid(t->fd) : UINT32_MAX, buf_str(&t->in), &t->out);
    if (t->out.full || !send_some(t))
        return false;
    return loop_fd_set(t->watch, LOOP_WRITE, &ignored) == 0;
}

static void on_talk(void *ctx, unsigned events)
{
    struct talk *t = ctx;
    bool more = events & LOOP_WRITE ? send_some(t) : receive_some(t);
    if (!more)
        end(t);
}

static void on_caller(void *ctx, unsigned events)
{
    struct listen *l = ctx;
    struct err ignored;
    struct talk *t = NULL;
    (void)events;
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    for (size_t i = 0; i < LISTEN_MAX && !t; i++)
        if (!l->talk[i].used)
            t = &l->talk[i];
    if (fd < 0)
        return;
    if (!t) {
        close(fd);
        return;
    }
    *t = (struct talk){ .of = l,
                        .fd = fd,
                        .used = true,
                        .in = BUF(LISTEN_REQUEST_MAX),
                        .out = BUF(LISTEN_ANSWER_MAX) };
    t->timer = loop_timer(l->config.loop, on_late, t);
    loop_timer_set(t->timer, LISTEN_WAIT_MS, 0);
    t->watch = loop_fd(l->config.loop, fd, on_talk, t, &ignored);
    if (!t->watch || loop_fd_set(t->watch, LOOP_READ, &ignored) < 0)
        end(t);
}

/* ---- sockets ---- */

static int failed(const char *address, struct err *e)
{
    return err_set(e, ERR_UNAVAILABLE, "%s: %s", address, strerror(errno));
}

/* 0600, and 0660 for the group of the machine's owners. */
static int open_unix(struct listen *l, struct err *e)
{
    const struct listen_config *c = &l->config;
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct group *g = c->group ? getgrnam(c->group) : NULL;
    if (strlen(c->address) >= sizeof at.sun_path)
        return err_set(e, ERR_INVALID, "%s: no socket has so long a path", c->address);
    if (c->group && !g)
        return err_set(e, ERR_INVALID, "there is no group '%s'", c->group);
    memcpy(at.sun_path, c->address, strlen(c->address));
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd >= 0 && connect(l->fd, (struct sockaddr *)&at, sizeof at) == 0)
        return err_set(e, ERR_CONFLICT, "%s: somebody listens there already", c->address);
    unlink(c->address);
    mode_t before = umask(0177);
    int rc = l->fd < 0 ? -1 : bind(l->fd, (struct sockaddr *)&at, sizeof at);
    umask(before);
    if (rc < 0 ||
        (g && (chown(c->address, (uid_t)-1, g->gr_gid) < 0 || chmod(c->address, 0660) < 0)))
        return failed(c->address, e);
    snprintf(l->path, sizeof l->path, "%s", c->address);
    return 0;
}

static int open_tcp(struct listen *l, struct err *e)
{
    const char *address = l->config.address, *colon = strrchr(address, ':');
    struct addrinfo want = { .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM },
                    *found = NULL;
    char host[64] = "";
    int on = 1;
    if (colon)
        snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    size_t n = strlen(host);
    if (n > 1 && host[0] == '[' && host[n - 1] == ']') {
        host[n - 1] = '\0';
        memmove(host, host + 1, n - 1);
    }
    if (!colon || getaddrinfo(host[0] ? host : "127.0.0.1", colon + 1, &want, &found) != 0) {
        err_set(e, ERR_INVALID, "'%s' is not ADDRESS:PORT", address);
        return err_hint(e, "e.g. 127.0.0.1:9433");
    }
    l->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc = l->fd < 0 ? -1 : setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (rc == 0)
        rc = bind(l->fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return rc < 0 ? failed(address, e) : 0;
}

struct listen *listen_new(const struct listen_config *c, struct err *e)
{
    struct listen *l = xcalloc(1, sizeof *l);
    l->config = *c;
    l->fd = -1;
    if ((c->address[0] == '/' ? open_unix(l, e) : open_tcp(l, e)) < 0)
        return listen_free(l);
    if (listen(l->fd, LISTEN_MAX) < 0) {
        failed(c->address, e);
        return listen_free(l);
    }
    l->watch = loop_fd(c->loop, l->fd, on_caller, l, e);
    if (!l->watch || loop_fd_set(l->watch, LOOP_READ, e) < 0)
        return listen_free(l);
    return l;
}

int listen_port(const struct listen *l)
{
    union {
        struct sockaddr any;
        struct sockaddr_storage room;
    } at;
    socklen_t n = sizeof at;
    char port[8];
    if (l->path[0] || getsockname(l->fd, &at.any, &n) < 0 ||
        getnameinfo(&at.any, n, NULL, 0, port, sizeof port, NI_NUMERICSERV) != 0)
        return 0;
    return (int)strtol(port, NULL, 10);
}

struct listen *listen_free(struct listen *l)
{
    if (!l)
        return NULL;
    for (size_t i = 0; i < LISTEN_MAX; i++)
        if (l->talk[i].used)
            end(&l->talk[i]);
    loop_unwatch(l->watch);
    if (l->fd >= 0)
        close(l->fd);
    if (l->path[0])
        unlink(l->path);
    free(l);
    return NULL;
}
