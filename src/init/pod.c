#include "init/pod.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define BACKLOG 64

static const struct sockaddr_un ctl = { .sun_family = AF_UNIX, .sun_path = "ctl.sock" };
static const struct sockaddr_un unborn = { .sun_family = AF_UNIX, .sun_path = "ctl.sock.new" };
static const char *const segments[] = { "log.0", "log.1", "log.2", "log.3" };
_Static_assert(ARRAY_LEN(segments) == JOBLOG_SEGMENTS, "every segment has a name");

static void close_p(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int failed(struct err *e, const char *what, const char *path)
{
    return err_set(e, ERR_UNAVAILABLE, "cannot %s '%s': %s", what, path, strerror(errno));
}

/* --- a task's folder --- */

static void files_close(struct supervisor_files *f)
{
    close_p(&f->listener);
    close_p(&f->status);
    for (size_t i = 0; i < JOBLOG_SEGMENTS; i++)
        close_p(&f->segment[i]);
}

/* What an earlier attempt left is no part of this one. */
static int make_file(int dir, const char *name, int flags, struct err *e)
{
    if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
        return failed(e, "remove the old", name);
    int fd = openat(dir, name, flags | O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? failed(e, "make", name) : fd;
}

/* In a process of its own, which may change its folder and umask: the job starts in ours, and we
 * might not be allowed to come back to it.  Returns 0 or errno. */
static int bind_within(int dir, int sock)
{
    int st;
    pid_t pid = fork();
    if (pid < 0)
        return errno;
    if (pid == 0) {
        umask(0177);
        bool good =
            fchdir(dir) == 0 && bind(sock, (const struct sockaddr *)&unborn, sizeof unborn) == 0;
        _exit(good ? 0 : errno);
    }
    while (waitpid(pid, &st, 0) < 0)
        if (errno != EINTR)
            return errno;
    return WIFEXITED(st) ? WEXITSTATUS(st) : EIO;
}

/* It gets its name when it listens: whoever sees it is let in. */
static int make_socket(int dir, struct err *e)
{
    if ((unlinkat(dir, ctl.sun_path, 0) < 0 && errno != ENOENT) ||
        (unlinkat(dir, unborn.sun_path, 0) < 0 && errno != ENOENT))
        return failed(e, "remove the old", ctl.sun_path);
    AUTO(close_p) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    errno = fd >= 0 ? bind_within(dir, fd) : errno;
    if (errno != 0 || listen(fd, BACKLOG) < 0 ||
        renameat(dir, unborn.sun_path, dir, ctl.sun_path) < 0)
        return failed(e, "make", ctl.sun_path);
    int made = fd;
    fd = -1;
    return made;
}

int pod_open(const char *dir, struct supervisor_files *out, struct err *e)
{
    AUTO(files_close) struct supervisor_files f = SUPERVISOR_NO_FILES;
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return failed(e, "make the folder", dir);
    AUTO(close_p) int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (at < 0)
        return failed(e, "use the folder", dir);
    f.status = make_file(at, "status", O_APPEND, e);
    if (f.status < 0)
        return err_wrap(e, "in '%s'", dir);
    /* It is new, so nobody else has it.  (Our own folder sys/ hides the header of flock.) */
    syscall(SYS_flock, f.status, LOCK_EX | LOCK_NB);
    for (size_t i = 0; i < JOBLOG_SEGMENTS; i++) {
        f.segment[i] = make_file(at, segments[i], 0, e);
        if (f.segment[i] < 0)
            return err_wrap(e, "in '%s'", dir);
    }
    f.listener = make_socket(at, e);
    if (f.listener < 0)
        return err_wrap(e, "in '%s'", dir);
    *out = f;
    f = (struct supervisor_files)SUPERVISOR_NO_FILES;
    return 0;
}

int pod_connect(const char *dir, struct err *e)
{
    AUTO(close_p) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make a socket: %s", strerror(errno));
    if (chdir(dir) == 0 && connect(fd, (const struct sockaddr *)&ctl, sizeof ctl) == 0) {
        int connected = fd;
        fd = -1;
        return connected;
    }
    if (errno == ENOENT || errno == ECONNREFUSED)
        return err_set(e, ERR_NOT_FOUND, "the task has no supervisor any more (in '%s')", dir);
    return failed(e, "reach the task's supervisor in", dir);
}

/* --- install --- */

static int copy_all(int from, int to)
{
    char piece[65536];
    ssize_t n;
    while ((n = read(from, piece, sizeof piece)) > 0)
        for (ssize_t done = 0, w; done < n; done += w)
            if ((w = write(to, piece + done, (size_t)(n - done))) < 0)
                return -1;
    return n < 0 ? -1 : 0;
}

static void remove_p(char **path)
{
    if (!*path)
        return;
    unlink(*path);
    free(*path);
}

int pod_install(const char *file, struct err *e)
{
    size_t size = strlen(file) + sizeof ".XXXXXX";
    AUTO(free_p) char *name = xmalloc(size);
    snprintf(name, size, "%s.XXXXXX", file);
    AUTO(close_p) int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return failed(e, "read our own program", "/proc/self/exe");
    AUTO(close_p) int to = mkostemp(name, O_CLOEXEC);
    if (to < 0)
        return failed(e, "make a file beside", file);
    AUTO(remove_p) char *unfinished = TAKE(name);
    if (copy_all(from, to) < 0 || fchmod(to, 0555) < 0)
        return failed(e, "write", unfinished);
    close_p(&to); /* a program that is open for writing cannot be run */
    if (rename(unfinished, file) < 0)
        return failed(e, "replace", file);
    name = TAKE(unfinished);
    return 0;
}
