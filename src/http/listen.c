#include "http/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sys/file.h"

#define BACKLOG 1024

static int socket_new(int family)
{
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Makes room at `path`: nothing there, or a socket that nobody listens on. */
static int unix_make_room(const char *path, const struct sockaddr_un *at, struct err *e)
{
    struct stat st;
    if (lstat(path, &st) < 0 && errno == ENOENT)
        return 0;
    if (!S_ISSOCK(st.st_mode)) {
        err_set(e, ERR_CONFLICT, "cannot listen on '%s': something that is no socket is there",
                path);
        return err_hint(e, "choose another path, or remove the file if nobody needs it");
    }
    AUTO(file_close_p) int probe = socket_new(AF_UNIX);
    if (connect(probe, (const struct sockaddr *)at, sizeof *at) == 0 || errno == EAGAIN) {
        err_set(e, ERR_CONFLICT, "already running: somebody answers on '%s'", path);
        return err_hint(e, "stop that one first, or give this one another socket");
    }
    if (errno != ECONNREFUSED && errno != ENOENT)
        return err_set(e, ERR_UNAVAILABLE, "cannot tell who listens on '%s': %s", path,
                       strerror(errno));
    if (unlink(path) < 0 && errno != ENOENT)
        return err_set(e, ERR_UNAVAILABLE, "cannot remove the old socket '%s': %s", path,
                       strerror(errno));
    return 0;
}

int listen_unix(const char *path, uint32_t mode, struct stat *out_file, struct err *e)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof at.sun_path) {
        err_set(e, ERR_INVALID, "the socket path '%s' has %zu characters; the limit is %zu", path,
                n, sizeof at.sun_path - 1);
        return err_hint(e, "choose a folder with a shorter name");
    }
    memcpy(at.sun_path, path, n);
    if (unix_make_room(path, &at, e) < 0)
        return -1;
    AUTO(file_close_p) int fd = socket_new(AF_UNIX);
    struct stat file;
    /* Closed to others until its mode is right. */
    if (fd < 0 || fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(fd, BACKLOG) < 0 || chmod(path, mode) < 0 || lstat(path, &file) < 0) {
        err_set(e, ERR_UNAVAILABLE, "cannot listen on '%s': %s", path, strerror(errno));
        return err_hint(e, "see that its folder exists and may be written to");
    }
    *out_file = file;
    int made = fd;
    fd = -1;
    return made;
}

void listen_unlink(const char *path, const struct stat *file)
{
    struct stat now;
    if (lstat(path, &now) == 0 && now.st_dev == file->st_dev && now.st_ino == file->st_ino)
        unlink(path);
}

static int tcp_error(const char *host, uint16_t port, int why, struct err *e)
{
    err_set(e, why == EADDRINUSE ? ERR_CONFLICT : ERR_UNAVAILABLE,
            "cannot listen on %s port %u: %s", host, port, strerror(why));
    switch (why) {
    case EADDRINUSE:
        return err_hint(e, "see who has port %u with: ss -ltnp 'sport = :%u'; or choose another",
                        port, port);
    case EACCES: return err_hint(e, "ports below 1024 need root; choose a higher one");
    case EADDRNOTAVAIL: return err_hint(e, "see this machine's addresses with: ip addr");
    default: return -1;
    }
}

static uint16_t tcp_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = { 0 };
    socklen_t n = sizeof at;
    if (getsockname(fd, &at.any, &n) < 0)
        return 0;
    return ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
}

static void free_addresses(struct addrinfo **list)
{
    if (*list)
        freeaddrinfo(*list);
}

int listen_tcp(const char *host, uint16_t port, uint16_t *out_port, struct err *e)
{
    struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    AUTO(free_addresses) struct addrinfo *found = NULL;
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    int rc = getaddrinfo(host, service, &want, &found);
    if (rc != 0) {
        err_set(e, ERR_INVALID, "cannot listen on '%s': %s", host, gai_strerror(rc));
        return err_hint(e, "give an address of this machine, e.g. 127.0.0.1 or ::1");
    }
    AUTO(file_close_p) int fd = socket_new(found->ai_family);
    int on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        return tcp_error(host, port, errno, e);
    *out_port = tcp_port(fd);
    int made = fd;
    fd = -1;
    return made;
}
