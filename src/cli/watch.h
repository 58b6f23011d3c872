/* watch - stays with a job: prints what it writes as it writes it, says why it waits, leaves with
 * its exit code.
 *
 * Ctrl-C asks on a terminal whether to detach, cancel or keep watching; without one it cancels.  A
 * hang-up detaches.  When the server goes away (an update, a crash) jobs go on, so the watch waits
 * for it and goes on where it was: nothing is printed twice.
 */
#ifndef NS_CLI_WATCH_H
#define NS_CLI_WATCH_H

#include "cli/cli.h"
#include "cli/job.h"

struct watch_want {
    uint64_t job;
    uint32_t replicas;  /* each is followed; lines are labelled when there are several */
    bool input;         /* standard input goes to replica 0 */
    bool until_started; /* no output: return as soon as it runs */
};

enum watch_outcome {
    WATCH_ENDED,   /* c->exit_code is the job's (until_started: nothing is set or said) */
    WATCH_STARTED, /* until_started */
    WATCH_LEFT     /* detached; c->exit_code is 0 */
};

int watch_job(struct cli *c, const struct watch_want *w, enum watch_outcome *out, struct err *e)
    MUST_USE;

#endif
