#include "init/procs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test.h"

/* Each process of a tree says one letter when it is up and another when it gets USR1. */
struct tree {
    int up;    /* reads the letters */
    int speak; /* writes them */
};

static struct tree tree_new(void)
{
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    return (struct tree){ ends[0], ends[1] };
}

static _Noreturn void live(const struct tree *t, char letter)
{
    sigset_t usr1;
    int signo = 0;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    if (write(t->speak, &letter, 1) == 1)
        sigwait(&usr1, &signo);
    char heard = (char)(letter - 'a' + 'A');
    if (signo == SIGUSR1 && write(t->speak, &heard, 1) == 1)
        for (;;)
            pause();
    _exit(1);
}

static pid_t grow(const struct tree *t, char letter, bool session, char child)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    if (session)
        setsid();
    else
        setpgid(0, 0);
    if (child) {
        pid_t orphan = fork();
        if (orphan == 0 && setpgid(0, 0) == 0)
            live(t, child);
    }
    live(t, letter);
}

/* Waits for as many letters, and says which they were, in order of the alphabet. */
static const char *letters(const struct tree *t, size_t n, char out[static 16])
{
    memset(out, 0, 16);
    for (size_t i = 0; i < n; i++) {
        char c;
        CHECK(read(t->up, &c, 1) == 1);
        size_t at = i;
        for (; at > 0 && out[at - 1] > c; at--)
            out[at] = out[at - 1];
        out[at] = c;
    }
    return out;
}

static void all_die(void)
{
    while (waitpid(-1, NULL, WNOHANG) >= 0)
        procs_kill_all(0, false);
    CHECK(errno == ECHILD);
}

static void a_signal_reaches_every_group_once(void)
{
    struct tree t = tree_new();
    char seen[16];
    procs_adopt();
    pid_t first = grow(&t, 'a', true, 'b'), other = grow(&t, 'c', true, 'd');
    grow(&t, 'e', false, 0);
    CHECK_STR(letters(&t, 5, seen), "abcde");
    procs_signal(SIGUSR1, first, &other, 1);
    CHECK_STR(letters(&t, 3, seen), "ABE");
    procs_signal(SIGUSR1, other, &first, 1);
    CHECK_STR(letters(&t, 2, seen), "CD"); /* e has it blocked by now */
    all_die();
    close(t.up);
    close(t.speak);
}

static void a_session_dies_alone(void)
{
    struct tree t = tree_new();
    char seen[16];
    procs_adopt();
    pid_t one = grow(&t, 'a', true, 'b'), two = grow(&t, 'c', true, 0);
    CHECK_STR(letters(&t, 3, seen), "abc");
    procs_kill_session(one);
    int st;
    CHECK(waitpid(one, &st, 0) == one && WIFSIGNALED(st));
    CHECK(waitpid(-1, &st, 0) != two && WIFSIGNALED(st)); /* its child, in another group */
    procs_signal(SIGUSR1, two, NULL, 0);
    CHECK_STR(letters(&t, 1, seen), "C");
    all_die();
    close(t.up);
    close(t.speak);
}

static const struct test tests[] = {
    { "a signal reaches every group but those of other sessions",
      a_signal_reaches_every_group_once },
    { "a session dies alone, with all its groups", a_session_dies_alone },
};
TEST_CASES(tests)
