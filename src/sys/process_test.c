#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/clock.h"
#include "sys/file.h"
#include "tests/lib/test.h"

static int sh(const char *script, size_t limit, uint64_t timeout_ms, struct buf *out,
              struct process_exit *how, struct err *e)
{
    const char *argv[] = { "sh", "-c", script, NULL };
    return process_capture(argv, limit, timeout_ms, out, how, e);
}

static void output_and_status_come_back(void)
{
    AUTO(buf_free) struct buf out = BUF(0);
    struct process_exit how;
    struct err e;
    CHECK(sh("echo one; echo two >&2; exit 3", 1000, 5000, &out, &how, &e) == 0);
    CHECK_STR(out.p, "one\n");
    CHECK(how.code == 3 && how.signal == 0);
    CHECK(sh("kill -TERM $$", 1000, 5000, &out, &how, &e) == 0);
    CHECK(how.signal == SIGTERM && out.n == 0);
    CHECK(sh("cat", 10, 5000, &out, &how, &e) == 0 && how.code == 0); /* stdin is empty */
}

static void large_output_comes_whole_or_not_at_all(void)
{
    AUTO(buf_free) struct buf out = BUF(10);
    struct process_exit how = { .code = 77 };
    struct err e;
    CHECK(sh("head -c 1000000 /dev/zero", 1000000, 60000, &out, &how, &e) == 0 && out.n == 1000000);
    how.code = 77;
    CHECK(sh("yes", 1000, 60000, &out, &how, &e) < 0 && e.code == ERR_TOO_LARGE);
    CHECK(out.n == 1000000 && how.code == 77);
}

static void a_slow_child_is_stopped(void)
{
    AUTO(buf_free) struct buf out = BUF(0);
    struct process_exit how;
    struct err e;
    CHECK(sh("sleep 900 & sleep 900", 1000, 100, &out, &how, &e) < 0 && e.code == ERR_UNAVAILABLE);
}

static void a_grandchild_does_not_hold_us(void)
{
    AUTO(buf_free) struct buf out = BUF(0);
    struct process_exit how;
    struct err e;
    CHECK(sh("echo hi; sleep 900 2>/dev/null & exit 0", 1000, TEST_PATIENCE_MS, &out, &how, &e) ==
          0);
    CHECK_STR(out.p, "hi\n");
}

static void a_missing_program_is_named(void)
{
    AUTO(buf_free) struct buf out = BUF(0);
    const char *argv[] = { "no-such-program-anywhere", NULL };
    struct process_exit how;
    struct err e;
    CHECK(process_capture(argv, 10, 1000, &out, &how, &e) < 0 && e.code == ERR_NOT_FOUND);
    CHECK(strstr(e.msg, "no-such-program-anywhere") && e.hint[0]);
}

struct seen {
    struct loop *loop;
    struct process *p;
    struct process_exit how;
    int calls;
};

static void on_exit_stop(void *ctx, const struct process_exit *how)
{
    struct seen *s = ctx;
    s->how = *how;
    s->calls++;
    s->p = process_free(s->p);
    loop_stop(s->loop);
}

static void a_child_gets_what_it_is_given(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l };
    struct err e;
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    AUTO(file_close_p) int read_end = ends[0], write_end = ends[1];
    AUTO(file_close_p) int ours = fcntl(read_end, F_DUPFD_CLOEXEC, 100);
    CHECK(ours == 100);
    const char *argv[] = { "/bin/sh", "-c", "echo \"$A $PWD\"; ! [ -e /proc/$$/fd/100 ]", NULL };
    const char *env[] = { "A=b", "PATH=/usr/bin:/bin", NULL };
    struct process_spec spec = {
        .argv = argv, .env = env, .cwd = "/", .fd = { PROCESS_NO_FD, write_end, PROCESS_NO_FD }
    };
    s.p = process_spawn(l, &spec, on_exit_stop, &s, &e);
    CHECK(s.p && process_pid(s.p) > 0);
    loop_run(l);
    CHECK(s.calls == 1 && s.how.code == 0);
    char text[64] = { 0 };
    CHECK(read(read_end, text, sizeof text - 1) > 0);
    CHECK_STR(text, "b /\n");
}

static void killing_reaches_the_group(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l };
    struct err e;
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    AUTO(file_close_p) int read_end = ends[0], write_end = ends[1];
    const char *argv[] = { "sh", "-c", "sleep 60 & echo up; wait", NULL };
    struct process_spec spec = { .argv = argv, .fd = { -1, write_end, -1 }, .new_group = true };
    s.p = process_spawn(l, &spec, on_exit_stop, &s, &e);
    CHECK(s.p);
    file_close_p(&write_end);
    char text[16];
    CHECK(read(read_end, text, sizeof text) == 3);
    process_kill(s.p, SIGKILL);
    loop_run(l);
    CHECK(s.how.signal == SIGKILL);
    CHECK(read(read_end, text, sizeof text) == 0); /* the grandchild is gone, or this would wait */
}

static void a_forgotten_child_is_reaped_in_silence(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l };
    struct err e;
    const char *argv[] = { "true", NULL };
    struct process_spec spec = { .argv = argv, .fd = { -1, -1, -1 } };
    CHECK(process_free(process_spawn(l, &spec, on_exit_stop, &s, &e)) == NULL);
    loop_run(l);
    CHECK(s.calls == 0 && process_free(NULL) == NULL);
    spec.cwd = "/no/such/folder";
    CHECK(process_spawn(l, &spec, on_exit_stop, &s, &e) == NULL);
    CHECK(strstr(e.msg, "/no/such/folder"));
}

static struct process *fork_watched(struct loop *l, int signo, struct seen *s)
{
    pid_t child = fork();
    if (child == 0) {
        kill(getpid(), signo);
        _exit(7);
    }
    int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    CHECK(child > 0 && pidfd >= 0);
    return process_watch(l, child, pidfd, on_exit_stop, s);
}

static void a_child_that_was_forked_elsewhere_is_watched(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l };
    struct process *p = fork_watched(l, 0, &s);
    int pid = process_pid(p);
    loop_run(l);
    CHECK(s.calls == 1 && s.how.code == 7 && s.how.signal == 0);
    process_kill(p, SIGKILL); /* its number is nobody's any more */
    CHECK(waitpid(pid, NULL, 0) < 0 && errno == ECHILD);
    process_free(p);
    p = fork_watched(l, SIGSTOP, &s);
    process_kill(p, SIGTERM);
    process_kill(p, SIGCONT);
    loop_run(l);
    CHECK(s.calls == 2 && s.how.signal == SIGTERM);
    process_free(p);
    p = fork_watched(l, SIGSTOP, &s);
    process_kill(p, SIGKILL);
    process_free(p); /* a loop need not stay for it */
    loop_run(l);
    CHECK_INT(s.calls, 2);
}

static const struct test tests[] = {
    { "a captured child's output and status come back", output_and_status_come_back },
    { "large output comes whole, or not at all", large_output_comes_whole_or_not_at_all },
    { "a child that is too slow is stopped with its group", a_slow_child_is_stopped },
    { "a grandchild that keeps the pipe does not hold us", a_grandchild_does_not_hold_us },
    { "a missing program is named", a_missing_program_is_named },
    { "a child gets its environment, folder and descriptors, and no more",
      a_child_gets_what_it_is_given },
    { "killing reaches the whole group", killing_reaches_the_group },
    { "a forgotten child is reaped in silence", a_forgotten_child_is_reaped_in_silence },
    { "a child that was forked elsewhere is watched",
      a_child_that_was_forked_elsewhere_is_watched },
};
TEST_CASES(tests)
