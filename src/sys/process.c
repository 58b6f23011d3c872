#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "sys/file.h"

/* The libuv handle comes first, as loop.c frees what is left by the handle's address. */
struct process {
    union {
        uv_handle_t any;
        uv_process_t started;
        uv_poll_t watched;
    } uv;
    int pid, pidfd; /* the latter -1 when libuv started it */
    process_exit_fn *on_exit;
    void *ctx;
    bool own_group, exited, forgotten;
};

static void on_closed(uv_handle_t *h)
{
    free(h);
}

static void close_handle(struct process *p)
{
    if (!uv_is_closing(&p->uv.any))
        uv_close(&p->uv.any, on_closed);
    file_close_p(&p->pidfd); /* closing the handle has stopped the watch */
    p->pidfd = -1;
}

static void on_exit_of(struct process *p, int code, int signo)
{
    struct process_exit how = { .code = signo ? 0 : code, .signal = signo };
    p->exited = true;
    if (p->forgotten)
        close_handle(p);
    else
        p->on_exit(p->ctx, &how);
}

static void on_uv_exit(uv_process_t *uv, int64_t code, int signo)
{
    on_exit_of((struct process *)uv, (int)code, signo);
}

static void on_pidfd(uv_poll_t *uv, int status, int events)
{
    struct process *p = (struct process *)uv;
    int how = 0;
    (void)status, (void)events;
    if (waitpid(p->pid, &how, WNOHANG) == 0)
        return;
    uv_poll_stop(&p->uv.watched);
    on_exit_of(p, WEXITSTATUS(how), WIFSIGNALED(how) ? WTERMSIG(how) : 0);
}

static int spawn_failed(const struct process_spec *spec, int rc, struct err *e)
{
    const char *name = spec->argv[0];
    /* The same answer comes for a missing program and a missing folder. */
    bool no_cwd = spec->cwd && access(spec->cwd, X_OK) < 0;
    if (no_cwd)
        return err_set(e, ERR_NOT_FOUND, "cannot start '%s' in folder '%s': %s", name, spec->cwd,
                       uv_strerror(rc));
    if (rc == UV_ENOENT) {
        err_set(e, ERR_NOT_FOUND, "cannot start '%s': there is no such program", name);
        return err_hint(e, "install it, or put its folder into PATH");
    }
    enum err_code code = rc == UV_EACCES ? ERR_DENIED : ERR_UNAVAILABLE;
    return err_set(e, code, "cannot start '%s': %s", name, uv_strerror(rc));
}

struct process *process_spawn(struct loop *l, const struct process_spec *spec,
                              process_exit_fn *on_exit, void *ctx, struct err *e)
{
    struct process *p = xcalloc(1, sizeof *p);
    uv_stdio_container_t stdio[3];
    for (int i = 0; i < 3; i++) {
        bool none = spec->fd[i] == PROCESS_NO_FD;
        stdio[i] = (uv_stdio_container_t){ .flags = none ? UV_IGNORE : UV_INHERIT_FD };
        if (!none)
            stdio[i].data.fd = spec->fd[i];
    }
    uv_process_options_t o = {
        .exit_cb = on_uv_exit,
        .file = spec->argv[0],
        .args = (char **)(uintptr_t)spec->argv, /* libuv only reads them */
        .env = (char **)(uintptr_t)spec->env,
        .cwd = spec->cwd,
        .flags = spec->new_group ? UV_PROCESS_DETACHED : 0,
        .stdio_count = 3,
        .stdio = stdio,
    };
    p->on_exit = on_exit;
    p->ctx = ctx;
    p->own_group = spec->new_group;
    p->pidfd = -1;
    int rc = uv_spawn(loop_uv(l), &p->uv.started, &o);
    p->pid = uv_process_get_pid(&p->uv.started);
    if (rc == 0)
        return p;
    spawn_failed(spec, rc, e);
    close_handle(p); /* libuv has begun the handle even so */
    return NULL;
}

struct process *process_watch(struct loop *l, int pid, int pidfd, process_exit_fn *on_exit,
                              void *ctx)
{
    struct process *p = xcalloc(1, sizeof *p);
    *p = (struct process){ .pid = pid, .pidfd = pidfd, .on_exit = on_exit, .ctx = ctx };
    if (uv_poll_init(loop_uv(l), &p->uv.watched, pidfd) < 0 ||
        uv_poll_start(&p->uv.watched, UV_READABLE, on_pidfd) < 0)
        abort(); /* only for want of memory, as in loop.c */
    return p;
}

int process_pid(const struct process *p)
{
    return p->pid;
}

void process_kill(struct process *p, int signo)
{
    /* Once it is reaped its number may belong to somebody else. */
    if (!p->exited)
        kill(p->own_group ? -process_pid(p) : process_pid(p), signo);
}

struct process *process_free(struct process *p)
{
    if (!p)
        return NULL;
    p->forgotten = true;
    if (p->exited)
        close_handle(p);
    else
        uv_unref(&p->uv.any); /* a loop need not stay for it */
    return NULL;
}

struct capture {
    struct loop *loop;
    struct process *child;
    struct loop_watch *watch;
    int fd;
    struct buf out;
    struct process_exit how;
    bool late;
};

static void capture_read(struct capture *c)
{
    char piece[16384];
    ssize_t n = 1;
    while (!c->out.full && (n = read(c->fd, piece, sizeof piece)) > 0)
        buf_add(&c->out, (struct str){ piece, (size_t)n });
    if (c->out.full)
        process_kill(c->child, SIGKILL);
    if (c->out.full || n == 0) /* a closed pipe would be readable for ever */
        c->watch = loop_unwatch(c->watch);
}

static void capture_readable(void *ctx, unsigned events)
{
    struct capture *c = ctx;
    (void)events;
    capture_read(c);
}

static void capture_late(void *ctx)
{
    struct capture *c = ctx;
    c->late = true;
    process_kill(c->child, SIGKILL);
}

static void capture_exited(void *ctx, const struct process_exit *how)
{
    struct capture *c = ctx;
    c->how = *how;
    capture_read(c); /* what it wrote last; the pipe holds it */
    loop_stop(c->loop);
}

static void capture_clear(struct capture *c)
{
    process_free(c->child);
    c->loop = loop_free(c->loop);
    file_close_p(&c->fd);
    buf_free(&c->out);
}

static int capture_start(struct capture *c, const char *const *argv, uint64_t timeout_ms,
                         struct err *e)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot make a pipe: %s", strerror(errno));
    c->fd = ends[0];
    AUTO(file_close_p) int child_end = ends[1];
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    struct process_spec spec = { .argv = argv, .fd = { -1, child_end, -1 }, .new_group = true };
    c->child = process_spawn(c->loop, &spec, capture_exited, c, e);
    if (!c->child)
        return -1;
    c->watch = loop_fd(c->loop, c->fd, capture_readable, c, e);
    if (!c->watch || loop_fd_set(c->watch, LOOP_READ, e) < 0) {
        process_kill(c->child, SIGKILL);
        return -1;
    }
    loop_timer_set(loop_timer(c->loop, capture_late, c), timeout_ms, 0);
    return 0;
}

int process_capture(const char *const *argv, size_t limit, uint64_t timeout_ms, struct buf *out,
                    struct process_exit *out_exit, struct err *e)
{
    AUTO(capture_clear) struct capture c = { .loop = loop_new(), .fd = -1, .out = BUF(limit) };
    if (capture_start(&c, argv, timeout_ms, e) < 0)
        return -1;
    loop_run(c.loop);
    if (c.late)
        return err_set(e, ERR_UNAVAILABLE, "'%s' did not end within %llu ms and was stopped",
                       argv[0], (unsigned long long)timeout_ms);
    if (c.out.full)
        return err_set(e, ERR_TOO_LARGE, "'%s' wrote more than %zu bytes and was stopped", argv[0],
                       limit);
    buf_free(out);
    *out = c.out;
    c.out = (struct buf){ 0 };
    *out_exit = c.how;
    return 0;
}
