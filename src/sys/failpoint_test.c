#include "sys/failpoint.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test.h"

/* How many visits of "here" a child survives; -1 when something else ended it. */
static int visits_survived(const char *armed, int visits)
{
    for (int n = 1; n <= visits; n++) {
        pid_t child = fork();
        if (child == 0) {
            if (armed)
                setenv("NIGHTSHIFT_FAILPOINT", armed, 1);
            else
                unsetenv("NIGHTSHIFT_FAILPOINT");
            for (int i = 0; i < n; i++)
                fail_point("here");
            _exit(0);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        if (WIFSIGNALED(status))
            return WTERMSIG(status) == SIGKILL ? n - 1 : -1;
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return visits;
}

static void an_armed_place_kills_at_its_visit(void)
{
    CHECK_INT(visits_survived("here", 4), 0);
    CHECK_INT(visits_survived("here:1", 4), 0);
    CHECK_INT(visits_survived("here:3", 4), 2);
}

static void others_are_passed_unharmed(void)
{
    CHECK_INT(visits_survived(NULL, 3), 3);
    CHECK_INT(visits_survived("", 3), 3);
    CHECK_INT(visits_survived("there", 3), 3);
    CHECK_INT(visits_survived("here:many", 3), 3);
}

static const struct test tests[] = {
    { "an armed place kills at the visit that was asked for", an_armed_place_kills_at_its_visit },
    { "unarmed places and other names are passed unharmed", others_are_passed_unharmed },
};
TEST_MAIN(tests)
