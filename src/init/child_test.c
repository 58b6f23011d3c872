#include "init/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test.h"

static void child_drop(struct child *c)
{
    child_clear(c);
}

/* Reads one end until it is over. */
static const char *read_all(struct child *c, enum child_end end, struct buf *out)
{
    char piece[4096];
    ssize_t n;
    while ((n = child_read(c, end, piece, sizeof piece)) != 0) {
        struct pollfd p = { c->fd[end], POLLIN, 0 };
        if (n > 0)
            buf_add(out, (struct str){ piece, (size_t)n });
        else
            CHECK(poll(&p, 1, TEST_PATIENCE_MS) == 1);
    }
    return out->n ? out->p : "";
}

static int start(struct child *c, const char *script, struct child_spec spec)
{
    const char *argv[] = { "sh", "-c", script, NULL };
    struct err e;
    int why;
    spec.argv = argv;
    if (!spec.env)
        spec.env = (const char *const *)environ;
    child_init(c);
    return child_start(c, &spec, &why, &e);
}

static int exit_code(pid_t pid)
{
    int st;
    CHECK(waitpid(pid, &st, 0) == pid);
    return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

static void pipes_carry_both_ways(void)
{
    AUTO(child_drop) struct child c;
    AUTO(buf_free) struct buf out = BUF(1000), err = BUF(1000);
    CHECK(start(&c, "cat; echo $0 >&2; exit 3", (struct child_spec){ .input = true }) == 0);
    pid_t pid = c.pid;
    CHECK(getsid(pid) == pid);
    child_input(&c, STR("typed\n"));
    child_input(&c, STR(""));
    CHECK_STR(read_all(&c, CHILD_OUT, &out), "typed\n");
    CHECK_STR(read_all(&c, CHILD_ERR, &err), "sh\n");
    CHECK_INT(exit_code(pid), 3);
}

static void a_program_without_input_finds_it_empty(void)
{
    AUTO(child_drop) struct child c;
    AUTO(buf_free) struct buf out = BUF(1000);
    static const char *const env[] = { "PATH=/usr/bin:/bin", "A=b", NULL };
    CHECK(start(&c, "cat; echo $A $HOME.; pwd", (struct child_spec){ .env = env, .cwd = "/" }) ==
          0);
    child_input(&c, STR("dropped"));
    CHECK(child_input_fd(&c) < 0);
    CHECK_STR(read_all(&c, CHILD_OUT, &out), "b .\n/\n");
    CHECK_INT(exit_code(c.pid), 0);
}

static void a_terminal_stays_readable_while_nobody_has_it_open(void)
{
    AUTO(child_drop) struct child c;
    AUTO(buf_free) struct buf out = BUF(1000);
    struct child_spec spec = { .tty = true, .rows = 10, .cols = 20 };
    CHECK(start(&c,
                "exec 3<&0 </dev/null; stty size <&3; stty -echo <&3; read x <&3; stty size <&3;"
                "tty <&3 >/dev/null && echo $x",
                spec) == 0);
    pid_t pid = c.pid;
    char piece[64];
    struct pollfd p = { c.fd[CHILD_OUT], POLLIN, 0 };
    for (size_t had = 0; had < 7;) { /* a terminal may give a line in parts */
        CHECK(poll(&p, 1, TEST_PATIENCE_MS) == 1);
        ssize_t n = child_read(&c, CHILD_OUT, piece + had, 7 - had);
        CHECK(n > 0);
        had += (size_t)n;
    }
    CHECK(memcmp(piece, "10 20\r\n", 7) == 0);
    child_resize(&c, 30, 40);
    child_input(&c, STR("word\n"));
    CHECK_INT(exit_code(pid), 0);
    errno = 0;
    while (child_read(&c, CHILD_OUT, piece, 1) > 0) /* byte by byte, to the end of what there is */
        buf_addc(&out, piece[0]);
    CHECK(c.fd[CHILD_OUT] >= 0); /* not over, as far as we can tell */
    child_release(&c);
    CHECK(child_read(&c, CHILD_OUT, piece, 1) == 0 && c.fd[CHILD_OUT] < 0);
    CHECK(strstr(out.p, "30 40\r\n") && strstr(out.p, "word\r\n"));
}

static void what_cannot_be_run_is_told(void)
{
    AUTO(child_drop) struct child c;
    const char *argv[] = { "/no/such/program", NULL }, *passwd[] = { "/etc/passwd", NULL };
    struct child_spec spec = { .argv = argv, .env = (const char *const *)environ };
    struct err e;
    int why = 0;
    child_init(&c);
    CHECK(child_start(&c, &spec, &why, &e) < 0 && why == ENOENT && c.pid == 0);
    CHECK(strstr(e.msg, "cannot run '/no/such/program'"));
    spec.argv = passwd;
    CHECK(child_start(&c, &spec, &why, &e) < 0 && why == EACCES);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

static void input_that_nobody_reads_is_bounded(void)
{
    AUTO(child_drop) struct child c;
    char piece[4096] = { 0 };
    size_t sent = 0;
    CHECK(start(&c, "exec sleep 100", (struct child_spec){ .input = true }) == 0);
    pid_t pid = c.pid;
    for (; !child_input_full(&c) && sent < 10 << 20; sent += sizeof piece)
        child_input(&c, (struct str){ piece, sizeof piece });
    CHECK(child_input_full(&c) && sent < 1 << 20 && child_input_fd(&c) == c.fd[CHILD_IN]);
    kill(pid, SIGKILL);
    CHECK_INT(exit_code(pid), 137);
    signal(SIGPIPE, SIG_IGN);
    child_input_flush(&c);
    CHECK(!child_input_full(&c) && child_input_fd(&c) < 0);
}

static const struct test tests[] = {
    { "pipes carry both ways, and the end of input", pipes_carry_both_ways },
    { "a program without input finds it empty", a_program_without_input_finds_it_empty },
    { "a terminal stays readable while nobody has it open",
      a_terminal_stays_readable_while_nobody_has_it_open },
    { "what cannot be run is told with the reason", what_cannot_be_run_is_told },
    { "input that nobody reads is bounded", input_that_nobody_reads_is_bounded },
};
TEST_CASES(tests)
