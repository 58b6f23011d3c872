#include "sys/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/file.h"

struct aside {
    struct aside_ask ask;
    pid_t pid; /* 0: reaped */
    int fd;
    struct loop_watch *watch, *late;
    struct buf answer;
};

/* Signals would be written into our own pipe by the handlers that it has from us. */
static void be_nobody(unsigned limit_s)
{
    static const int ours[] = {
        SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD, SIGUSR1, SIGUSR2, SIGALRM
    };
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        signal(ours[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(limit_s);
}

static _Noreturn void answer(const struct aside_ask *ask, int fd)
{
    struct buf out = BUF(ask->answer_max);
    be_nobody(ask->limit_s);
    ask->work(ask->ctx, &out);
    size_t at = 0;
    while (!out.full && at < out.n) {
        ssize_t n = write(fd, out.p + at, out.n - at);
        if (n < 0 && errno != EINTR)
            _exit(1);
        at += n > 0 ? (size_t)n : 0;
    }
    _exit(out.full ? 1 : 0);
}

/* It has closed its end or was killed, so it is about to be gone. */
static bool reap(struct aside *a)
{
    int how = 0;
    pid_t got = a->pid;
    while (a->pid && (got = waitpid(a->pid, &how, 0)) < 0 && errno == EINTR)
        ;
    bool good = a->pid && got == a->pid && WIFEXITED(how) && WEXITSTATUS(how) == 0;
    a->pid = 0;
    return good;
}

struct aside *aside_free(struct aside *a)
{
    if (!a)
        return NULL;
    loop_unwatch(a->watch);
    loop_unwatch(a->late);
    if (a->pid)
        kill(a->pid, SIGKILL);
    reap(a);
    file_close_p(&a->fd);
    buf_free(&a->answer);
    free(a);
    return NULL;
}

static void finish(struct aside *a)
{
    struct aside_ask ask = a->ask;
    bool good = reap(a) && !a->answer.full;
    struct str text = buf_str(&a->answer);
    a->watch = loop_unwatch(a->watch);
    a->late = loop_unwatch(a->late);
    ask.done(ask.ctx, good ? &text : NULL); /* which frees it, or has freed it already */
}

static void on_bytes(void *ctx, unsigned events)
{
    struct aside *a = ctx;
    char piece[16384];
    ssize_t n;
    (void)events;
    while ((n = read(a->fd, piece, sizeof piece)) > 0)
        buf_add(&a->answer, (struct str){ piece, (size_t)n });
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        finish(a);
}

static void on_late(void *ctx)
{
    struct aside *a = ctx;
    kill(a->pid, SIGKILL);
    finish(a);
}

struct aside *aside_begin(const struct aside_ask *ask, struct err *e)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        err_set(e, ERR_UNAVAILABLE, "cannot make a pipe: %s", strerror(errno));
        return NULL;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        answer(ask, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        err_set(e, ERR_UNAVAILABLE, "cannot make a copy of the process: %s", strerror(errno));
        close(ends[0]);
        return NULL;
    }
    struct aside *a = xcalloc(1, sizeof *a);
    *a = (struct aside){ .ask = *ask, .pid = pid, .fd = ends[0], .answer = BUF(ask->answer_max) };
    fcntl(a->fd, F_SETFL, O_NONBLOCK);
    a->watch = loop_fd(ask->loop, a->fd, on_bytes, a, e);
    a->late = loop_timer(ask->loop, on_late, a);
    if (!a->watch || loop_fd_set(a->watch, LOOP_READ, e) < 0)
        return aside_free(a);
    loop_timer_set(a->late, ask->limit_s * UINT64_C(1000), 0);
    return a;
}
