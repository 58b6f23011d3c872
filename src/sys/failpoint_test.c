#include "sys/failpoint.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/test.h"

/* How many of five visits of "here" a child survives that has `armed` in its environment. */
static int visits_survived(const char *armed, bool *out_killed)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        setenv("NIGHTSHIFT_FAILPOINT", armed, 1);
        for (int i = 0; i < 5; i++) {
            fail_point("elsewhere");
            fail_point("here");
            if (write(ends[1], "x", 1) != 1)
                _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    char c;
    int n = 0, status;
    while (read(ends[0], &c, 1) == 1)
        n++;
    close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    *out_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    return n;
}

static void an_armed_point_kills_at_its_visit(void)
{
    bool killed;
    CHECK_INT(visits_survived("here", &killed), 0);
    CHECK(killed);
    CHECK_INT(visits_survived("here:1", &killed), 0);
    CHECK(killed);
    CHECK_INT(visits_survived("here:4", &killed), 3);
    CHECK(killed);
}

static void other_points_are_passed(void)
{
    static const char *const armed[] = { "", "her", "here2", "here:6", "here:0", "here:x", "x" };
    for (size_t i = 0; i < ARRAY_LEN(armed); i++) {
        bool killed;
        CHECK_INT(visits_survived(armed[i], &killed), 5);
        CHECK(!killed);
    }
}

static const struct test tests[] = {
    { "an armed point kills the process at the visit that was named",
      an_armed_point_kills_at_its_visit },
    { "points that are not armed are passed", other_points_are_passed },
};
TEST_CASES(tests)
