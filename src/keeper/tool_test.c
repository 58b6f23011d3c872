#include "keeper/tool.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/file.h"
#include "tests/lib/test.h"

struct seen {
    struct loop *loop;
    int calls;
    struct process_exit how;
    bool late;
    size_t out_n, err_n;
    char out[64], err[64];
};

static void on_done(void *ctx, const struct tool_result *r)
{
    struct seen *s = ctx;
    s->calls++;
    s->how = r->how;
    s->late = r->late;
    s->out_n = r->out.n;
    s->err_n = r->err.n;
    memcpy(s->out, r->out.p, MIN(r->out.n, sizeof s->out - 1));
    memcpy(s->err, r->err.p, MIN(r->err.n, sizeof s->err - 1));
    loop_stop(s->loop);
}

static struct seen run(const char *script, uint64_t timeout_ms, int in_fd)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l };
    const char *argv[] = { "sh", "-c", script, NULL };
    struct tool_spec spec = { .argv = argv, .in_fd = in_fd, .timeout_ms = timeout_ms };
    struct err e;
    CHECK(tool_run(l, &spec, on_done, &s, &e));
    loop_run(l);
    CHECK_INT(s.calls, 1);
    return s;
}

static void both_outputs_come_back(void)
{
    struct seen s = run("echo one; echo two >&2; exit 3", 20000, PROCESS_NO_FD);
    CHECK_STR(s.out, "one\n");
    CHECK_STR(s.err, "two\n");
    CHECK(s.how.code == 3 && !s.late);
    s = run("true", 20000, PROCESS_NO_FD);
    CHECK(s.out_n == 0 && s.err_n == 0 && s.how.code == 0);
}

static void it_reads_what_it_is_given(void)
{
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0 && write(ends[1], "in", 2) == 2);
    close(ends[1]);
    AUTO(file_close_p) int in = ends[0];
    struct seen s = run("cat", 20000, in);
    CHECK_STR(s.out, "in");
}

static void it_cannot_fill_the_machine(void)
{
    struct seen s = run("head -c 2000000 /dev/zero; echo then >&2", 20000, PROCESS_NO_FD);
    CHECK_INT(s.out_n, TOOL_OUT_MAX);
    CHECK(s.err_n > 0);
}

static void one_that_takes_too_long_is_killed(void)
{
    struct seen s = run("sleep 60 & sleep 60", 50, PROCESS_NO_FD);
    CHECK(s.late && s.how.signal == SIGKILL);
}

static void a_stopped_one_is_silent(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l };
    const char *argv[] = { "sleep", "60", NULL };
    struct tool_spec spec = { .argv = argv, .in_fd = PROCESS_NO_FD, .timeout_ms = 60000 };
    struct err e;
    struct tool *t = tool_run(l, &spec, on_done, &s, &e);
    CHECK(t && tool_pid(t) > 0);
    CHECK(!tool_stop(t) && !tool_stop(NULL));
    loop_run(l);
    CHECK_INT(s.calls, 0);
    argv[0] = "no-such-program";
    CHECK(!tool_run(l, &spec, on_done, &s, &e) && strstr(e.msg, "no-such-program"));
}

/* Waits until it says so. */
static void await_beginning(const struct tool *t)
{
    char path[64], first[8];
    snprintf(path, sizeof path, "/proc/%d/fd/1", tool_pid(t));
    for (int i = 0; i < TEST_PATIENCE_MS / 10; i++) {
        /* At first it has our own stdout, which may be a pipe. */
        AUTO(file_close_p) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && read(fd, first, 5) == 5 && memcmp(first, "begun", 5) == 0)
            break;
        usleep(10000);
    }
}

/* Runs a tool that would stay, and dies: at once, or when the tool has begun. */
static void run_and_die(bool begun, const struct confine *c)
{
    struct loop *l = loop_new();
    const char *argv[] = { "/bin/sh", "-c", "echo begun; while :; do :; done", NULL };
    const char *env[] = { NULL };
    struct tool_spec spec = { .argv = argv,
                              .env = env,
                              .in_fd = PROCESS_NO_FD,
                              .timeout_ms = 600000,
                              .confine = c,
                              .ends_with_us = true };
    struct seen s = { .loop = l };
    struct err e;
    struct tool *t = tool_run(l, &spec, on_done, &s, &e);
    if (!t)
        _exit(1);
    if (begun)
        await_beginning(t);
    raise(SIGKILL);
}

/* Orphans become this process's children, so it sees when the last of them is gone. */
static void die_and_await_orphans(bool begun, const struct confine *c)
{
    int status;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    alarm(TEST_PATIENCE_MS / 1000);
    pid_t driver = fork();
    if (driver == 0)
        run_and_die(begun, c);
    bool killed = waitpid(driver, &status, 0) == driver && WIFSIGNALED(status);
    while (wait(NULL) > 0)
        continue;
    _exit(killed ? 0 : 1);
}

static void check_ends_with_us(const struct confine *c)
{
    for (int i = 0; i <= 20; i++) { /* while it starts is a matter of luck, so more than once */
        int status;
        pid_t child = fork();
        if (child == 0)
            die_and_await_orphans(i == 20, c);
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_AT(i, WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void a_tool_ends_with_us_also_while_it_starts(void)
{
    check_ends_with_us(NULL);
}

struct cell {
    struct arena a;
    struct confine c;
    char dir[32], read[40], write[40];
};

static void cell_open(struct cell *x)
{
    struct err e;
    if (geteuid() != 0)
        SKIP("needs root");
    *x = (struct cell){ .dir = "/tmp/tool-test.XXXXXX" };
    CHECK(mkdtemp(x->dir));
    snprintf(x->read, sizeof x->read, "%s/read", x->dir);
    snprintf(x->write, sizeof x->write, "%s/write", x->dir);
    CHECK(mkdir(x->read, 0700) == 0 && mkdir(x->write, 0700) == 0);
    x->c = (struct confine){ .read = { x->read, "/in" },
                             .write = { x->write, "/out" },
                             .cover = x->dir,
                             .max_file_bytes = 100000 };
    CHECK(tool_libraries("/bin/sh", &x->a, &x->c.files, &e) == 0);
}

static void cell_close(struct cell *x)
{
    CHECK(rmdir(x->read) == 0 && rmdir(x->write) == 0 && rmdir(x->dir) == 0);
    arena_free(&x->a);
}

static void one_that_is_shut_in_does_too(void)
{
    struct cell x;
    cell_open(&x);
    check_ends_with_us(&x.c);
    cell_close(&x);
}

static struct seen run_shut_in(struct cell *x, const char *script)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l };
    const char *argv[] = { "/bin/sh", "-c", script, NULL }, *env[] = { "A=b", NULL };
    struct tool_spec spec = { .argv = argv,
                              .env = env,
                              .in_fd = PROCESS_NO_FD,
                              .timeout_ms = TEST_PATIENCE_MS,
                              .confine = &x->c };
    struct err e;
    CHECK(tool_run(l, &spec, on_done, &s, &e));
    loop_run(l);
    CHECK_INT(s.calls, 1);
    return s;
}

static void one_that_is_shut_in_has_its_folders_and_little_else(void)
{
    struct cell x;
    char path[64];
    cell_open(&x);
    struct seen s = run_shut_in(&x, "echo /*; echo x >/out/new && exit 3");
    CHECK_STR(s.err, "");
    CHECK(s.how.code == 3 && strstr(s.out, "/bin /") && strstr(s.out, " /in ") &&
          !strstr(s.out, "home"));
    snprintf(path, sizeof path, "%s/new", x.write);
    CHECK(unlink(path) == 0);
    s = run_shut_in(&x,
                    "for i in /in/new /new /bin/sh /proc/self/comm; do (: >$i) && echo $i; done");
    CHECK(s.out_n == 0 && s.err_n > 0);
    s = run_shut_in(&x,
                    "for i in /in/new /new /bin/sh; do { : >>$i; } 2>/dev/null && echo $i; done;:");
    CHECK(s.out_n == 0 && s.how.code == 0);
    s = run_shut_in(&x, "kill -9 1; echo $$");
    CHECK_STR(s.out, "1\n");
    x.c.write.from = "/nowhere";
    s = run_shut_in(&x, "true");
    CHECK_INT(s.how.code, CONFINE_FAILED);
    CHECK(strncmp(s.err, "cannot shut the program in (its", 31) == 0);
    x.c.write.from = x.write;
    cell_close(&x);
}

static void programs_are_found_or_their_package_is_named(void)
{
    char path[TOOL_PATH_MAX] = "as before";
    struct err e;
    static const char *const dirs[] = { "/no/such/folder", "/bin", NULL };
    CHECK(tool_find("no-such-program", NULL, "some-package", path, &e) < 0);
    CHECK(strstr(e.msg, "no-such-program") && strstr(e.hint, "some-package"));
    CHECK_STR(path, "as before");
    CHECK(tool_find("sh", NULL, "dash", path, &e) == 0 && path[0] == '/');
    CHECK(tool_find("sh", dirs, "dash", path, &e) == 0);
    CHECK_STR(path, "/bin/sh");
}

static const struct test tests[] = {
    { "both outputs and the status come back", both_outputs_come_back },
    { "a tool reads what it is given", it_reads_what_it_is_given },
    { "what a tool writes is bounded", it_cannot_fill_the_machine },
    { "one that takes too long is killed", one_that_takes_too_long_is_killed },
    { "a stopped one is silent", a_stopped_one_is_silent },
    { "a tool ends with us, also while it starts", a_tool_ends_with_us_also_while_it_starts },
    { "one that is shut in does too", one_that_is_shut_in_does_too },
    { "one that is shut in has its folders, and little else",
      one_that_is_shut_in_has_its_folders_and_little_else },
    { "programs are found, or their package is named",
      programs_are_found_or_their_package_is_named },
};
TEST_CASES(tests)
