#include "keeper/proctree.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test.h"

/* A child with a child with a child; the numbers of all three. */
static void family(pid_t out[3])
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    out[0] = fork();
    if (out[0] == 0) {
        prctl(PR_SET_NAME, "odd) S 1 (name");
        pid_t two = fork();
        if (two == 0) {
            pid_t three = fork();
            if (three > 0 && write(ends[1], &three, sizeof three) != sizeof three)
                _exit(1);
            for (;;)
                pause();
        }
        if (write(ends[1], &two, sizeof two) != sizeof two)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    pid_t got[2];
    for (size_t i = 0; i < 2; i++)
        CHECK(read(ends[0], &got[i], sizeof got[i]) == sizeof got[i]);
    close(ends[0]);
    /* Either may have written first; the one that is a child of the first is the second. */
    pid_t line[8];
    CHECK(proctree_list("/proc", out[0], line, 8) == 3);
    CHECK((line[1] == got[0] && line[2] == got[1]) || (line[1] == got[1] && line[2] == got[0]));
    out[1] = line[1];
    out[2] = line[2];
}

static void descendants_are_listed_and_killed(void)
{
    pid_t pids[3], line[8];
    int status;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    family(pids);
    CHECK(proctree_list("/proc", pids[1], line, 8) == 2 && line[0] == pids[1]);
    CHECK(proctree_list("/proc", pids[0], line, 2) == 2); /* no more than there is room for */
    proctree_kill("/proc", pids[0], true);
    CHECK(waitpid(pids[0], &status, WNOHANG) == 0); /* spared */
    proctree_kill("/proc", pids[0], false);
    for (size_t i = 0; i < 3; i++) {
        CHECK(waitpid(-1, &status, 0) > 0);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    CHECK(proctree_list("/proc", pids[0], line, 8) == 0);
}

static void nobody_is_found_where_nobody_is(void)
{
    pid_t line[8];
    CHECK(proctree_list("/no/such/folder", 1, line, 8) == 0);
    CHECK(!proctree_is_first("/proc", getpid()) && !proctree_is_first("/no/such", 1));
    proctree_kill("/no/such/folder", 1, false);
}

static const struct test tests[] = {
    { "all that descend from a process are listed and killed", descendants_are_listed_and_killed },
    { "nobody is found where nobody is", nobody_is_found_where_nobody_is },
};
TEST_CASES(tests)
