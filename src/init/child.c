#include "init/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INPUT_MAX (512u << 10)
#define INPUT_MARK (64u << 10)
#define DEFAULT_ROWS 24
#define DEFAULT_COLS 80
#define END_OF_INPUT "\4" /* what a terminal takes for it: control-D */

static void close_p(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void child_init(struct child *c)
{
    *c = (struct child){ .fd = { -1, -1, -1 }, .terminal = -1, .input.b = BUF(INPUT_MAX) };
}

void child_clear(struct child *c)
{
    for (size_t i = 0; i < CHILD_ENDS; i++)
        close_p(&c->fd[i]);
    close_p(&c->terminal);
    buf_free(&c->input.b);
    child_init(c);
}

static int failed(struct err *e, const char *what)
{
    return err_set(e, ERR_UNAVAILABLE, "cannot %s: %s", what, strerror(errno));
}

void child_resize(struct child *c, uint16_t rows, uint16_t cols)
{
    struct winsize size = { .ws_row = rows, .ws_col = cols }, now;
    int fd = c->fd[CHILD_OUT];
    pid_t front = 0;
    if (!c->tty || fd < 0)
        return;
    /* The kernel says nothing about the size that it has already; but somebody new looks at this
     * terminal, and a program that fills the screen must draw it again. */
    bool same = ioctl(fd, TIOCGWINSZ, &now) == 0 && now.ws_row == rows && now.ws_col == cols;
    if (same && ioctl(fd, TIOCGPGRP, &front) == 0 && front > 0)
        kill(-front, SIGWINCH);
    else
        ioctl(fd, TIOCSWINSZ, &size);
}

static int open_terminal(struct child *c, const struct child_spec *s, int theirs[CHILD_ENDS],
                         struct err *e)
{
    int unlocked = 0;
    c->fd[CHILD_OUT] = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (c->fd[CHILD_OUT] < 0 || ioctl(c->fd[CHILD_OUT], TIOCSPTLCK, &unlocked) < 0)
        return failed(e, "open a terminal (/dev/ptmx)");
    c->terminal = ioctl(c->fd[CHILD_OUT], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (c->terminal < 0)
        return failed(e, "open the other end of a terminal");
    child_resize(c, s->rows ? s->rows : DEFAULT_ROWS, s->cols ? s->cols : DEFAULT_COLS);
    for (size_t i = 0; i < CHILD_ENDS; i++)
        theirs[i] = fcntl(c->terminal, F_DUPFD_CLOEXEC, 3);
    return 0;
}

static int open_pipes(struct child *c, const struct child_spec *s, int theirs[CHILD_ENDS],
                      struct err *e)
{
    for (int i = 0; i < CHILD_ENDS; i++) {
        int ends[2];
        bool in = i == CHILD_IN;
        if (in && !s->input) {
            theirs[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
            if (theirs[i] < 0)
                return failed(e, "open /dev/null");
            continue;
        }
        if (pipe2(ends, O_CLOEXEC) < 0)
            return failed(e, "make a pipe");
        theirs[i] = ends[in ? 0 : 1];
        c->fd[i] = ends[in ? 1 : 0];
        fcntl(c->fd[i], F_SETFL, O_NONBLOCK);
    }
    return 0;
}

/* The kernel's own call: the C library keeps two signals to itself and would leave them ignored. */
static void reset_signal(int signo)
{
    const struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } normal = { 0 };
    syscall(SYS_rt_sigaction, signo, &normal, NULL, sizeof normal.mask);
}

/* In the new process, where only async-signal-safe calls are allowed. */
static _Noreturn void become(const struct child_spec *s, const int fd[CHILD_ENDS], int report,
                             pid_t parent)
{
    sigset_t none;
    setsid();
    if (s->tty)
        ioctl(fd[0], TIOCSCTTY, 0);
    for (int i = 0; i < CHILD_ENDS; i++)
        dup2(fd[i], i);
    for (int signo = 1; signo < NSIG; signo++)
        reset_signal(signo);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Where no pid namespace ends with us, the program must not go on unseen. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    if (!s->cwd || !s->cwd[0] || chdir(s->cwd) == 0) {
        environ = (char **)(uintptr_t)s->env;
        execvp(s->argv[0], (char *const *)(uintptr_t)s->argv);
    }
    int why = errno;
    if (write(report, &why, sizeof why) < 0)
        _exit(126);
    _exit(127);
}

/* Returns errno of the failed exec, or 0. */
static int spawn(struct child *c, const struct child_spec *s, const int theirs[CHILD_ENDS])
{
    int report[2], why = 0;
    if (pipe2(report, O_CLOEXEC) < 0)
        return errno;
    AUTO(close_p) int report_in = report[0];
    AUTO(close_p) int report_out = report[1];
    pid_t parent = getpid();
    c->pid = fork();
    if (c->pid < 0)
        return c->pid = 0, errno;
    if (c->pid == 0)
        become(s, theirs, report_out, parent);
    close_p(&report_out);
    if (read(report_in, &why, sizeof why) != (ssize_t)sizeof why)
        return 0; /* closed by the exec */
    return why;
}

int child_start(struct child *c, const struct child_spec *s, int *out_errno, struct err *e)
{
    int theirs[CHILD_ENDS] = { -1, -1, -1 };
    c->tty = s->tty;
    int rc = s->tty ? open_terminal(c, s, theirs, e) : open_pipes(c, s, theirs, e);
    int why = rc < 0 ? errno : spawn(c, s, theirs);
    for (size_t i = 0; i < CHILD_ENDS; i++)
        close_p(&theirs[i]);
    if (rc == 0 && why != 0) {
        bool in_folder = s->cwd && s->cwd[0];
        err_set(e, why == ENOENT ? ERR_NOT_FOUND : ERR_DENIED, "cannot run '%s'%s%s%s: %s",
                s->argv[0], in_folder ? " in '" : "", in_folder ? s->cwd : "", in_folder ? "'" : "",
                strerror(why));
    }
    if (rc == 0 && why == 0)
        return 0;
    child_clear(c); /* the process, if there was one, ends by itself and is reaped as any other */
    *out_errno = why;
    return -1;
}

/* --- its stdin --- */

static int input_end(const struct child *c)
{
    return c->fd[c->tty ? CHILD_OUT : CHILD_IN];
}

void child_input(struct child *c, struct str bytes)
{
    if (input_end(c) < 0 || c->input_ends)
        return;
    if (bytes.n > 0)
        buf_add(&c->input.b, bytes);
    else if (c->tty)
        buf_addz(&c->input.b, END_OF_INPUT);
    else
        c->input_ends = true;
    child_input_flush(c);
}

bool child_input_full(const struct child *c)
{
    return queue_bytes(&c->input) >= INPUT_MARK;
}

int child_input_fd(const struct child *c)
{
    return queue_bytes(&c->input) > 0 ? input_end(c) : -1;
}

void child_input_flush(struct child *c)
{
    if (child_input_fd(c) >= 0 && queue_flush(&c->input, input_end(c)) < 0)
        queue_drop(&c->input);
    if (c->input_ends && queue_bytes(&c->input) == 0)
        close_p(&c->fd[CHILD_IN]);
}

/* --- its output --- */

ssize_t child_read(struct child *c, enum child_end end, char *out, size_t n)
{
    if (c->fd[end] < 0)
        return 0;
    ssize_t got = read(c->fd[end], out, n);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return got;
    close_p(&c->fd[end]); /* a terminal says EIO when its other end is closed for good */
    return 0;
}

void child_close(struct child *c, enum child_end end)
{
    close_p(&c->fd[end]);
}

void child_release(struct child *c)
{
    close_p(&c->terminal);
}
