#include "cli/tty.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "sys/term.h"

static bool begin(struct tty_mode *m, int fd, struct termios *out)
{
    if (m->changed || tcgetattr(fd, &m->saved) < 0)
        return false;
    m->fd = fd;
    *out = m->saved;
    return true;
}

bool tty_raw(struct tty_mode *m, int fd)
{
    struct termios t;
    if (!begin(m, fd, &t))
        return false;
    cfmakeraw(&t);
    m->changed = tcsetattr(fd, TCSADRAIN, &t) == 0;
    return m->changed;
}

bool tty_keys(struct tty_mode *m, int fd)
{
    struct termios t;
    if (!begin(m, fd, &t))
        return false;
    t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    t.c_cc[VMIN] = 1;
    t.c_cc[VTIME] = 0;
    m->changed = tcsetattr(fd, TCSADRAIN, &t) == 0;
    return m->changed;
}

void tty_restore(struct tty_mode *m)
{
    if (m->changed)
        (void)tcsetattr(m->fd, TCSADRAIN, &m->saved);
    m->changed = false;
}

void tty_size(int fd, uint16_t *out_rows, uint16_t *out_cols)
{
    struct winsize size;
    bool known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col;
    *out_rows = known ? size.ws_row : 24;
    *out_cols = known ? size.ws_col : 80;
}

int signals_open(struct signals *s, struct err *e)
{
    static const int signos[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT, SIGTSTP };
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(signos); i++)
        sigaddset(&set, signos[i]);
    s->fd = -1;
    if (sigprocmask(SIG_BLOCK, &set, &s->before) < 0 ||
        (s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot watch for signals: %s", strerror(errno));
    return 0;
}

void signals_close(struct signals *s)
{
    if (s->fd < 0)
        return;
    while (signals_next(s)) /* what was handled here must not strike later */
        ;
    close(s->fd);
    s->fd = -1;
    sigprocmask(SIG_SETMASK, &s->before, NULL);
}

int signals_next(struct signals *s)
{
    struct signalfd_siginfo info;
    ssize_t n;
    do {
        n = read(s->fd, &info, sizeof info);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

int tty_write(int fd, struct str bytes)
{
    while (bytes.n) {
        ssize_t n = write(fd, bytes.p, bytes.n);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd p = { .fd = fd, .events = POLLOUT };
            (void)poll(&p, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            return -1;
        }
        if (n > 0)
            bytes = (struct str){ bytes.p + n, bytes.n - (size_t)n };
    }
    return 0;
}

/* A key, 0 for an interrupt or the end, -1 for something else. */
static int wait_key(struct signals *s)
{
    struct pollfd p[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                          { .fd = s->fd, .events = POLLIN } };
    if (poll(p, ARRAY_LEN(p), -1) < 0)
        return errno == EINTR ? -1 : 0;
    for (int signo; (signo = signals_next(s));)
        if (signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT)
            return 0;
    if (!p[0].revents)
        return -1;
    unsigned char key;
    ssize_t n = read(STDIN_FILENO, &key, 1);
    return n == 1 ? key : n < 0 && (errno == EINTR || errno == EAGAIN) ? -1 : 0;
}

int signals_end(struct signals *s)
{
    for (int signo; (signo = signals_next(s));) {
        if (signo == SIGTSTP)
            raise(SIGSTOP);
        else if (signo != SIGWINCH && signo != SIGCONT)
            return signo;
    }
    return 0;
}

char tty_ask_key(struct signals *s, const char *question, const char *keys)
{
    AUTO(tty_restore) struct tty_mode mode = { 0 };
    if (!tty_keys(&mode, STDIN_FILENO) || tty_write(STDERR_FILENO, str_of(question)) < 0)
        return 0;
    for (;;) {
        int key = wait_key(s);
        if (key < 0)
            continue;
        key = key >= 'A' && key <= 'Z' ? key - 'A' + 'a' : key;
        if (key == 0 || strchr(keys, key)) {
            char line[3] = { (char)(key ? key : '\n'), key ? '\n' : '\0', '\0' };
            (void)!tty_write(STDERR_FILENO, str_of(line));
            return (char)key;
        }
    }
}

bool tty_confirm(const char *question)
{
    AUTO(signals_close) struct signals s = { .fd = -1 };
    struct err e;
    if (!term_is_tty(STDIN_FILENO) || !term_is_tty(STDERR_FILENO) || signals_open(&s, &e) < 0)
        return false;
    char text[256];
    snprintf(text, sizeof text, "%s [y/N] ", question);
    return tty_ask_key(&s, text, "yn\r\n") == 'y';
}

int tty_read_secret(const char *question, char *out, size_t n, struct err *e)
{
    struct termios was, quiet;
    bool terminal = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &was) == 0;
    size_t got = 0;
    if (terminal) {
        quiet = was;
        quiet.c_lflag &= ~(tcflag_t)ECHO;
        fprintf(stderr, "%s: ", question);
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    }
    char c = 0;
    while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
        if (got + 1 < n)
            out[got++] = c;
    out[got] = '\0';
    if (terminal) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &was);
        fputc('\n', stderr);
    }
    if (got > 0)
        return 0;
    err_set(e, ERR_INVALID, "%s: nothing was typed", question);
    return err_hint(e, "it is asked for on the terminal, or read from standard input");
}
