/* supervisor - the life of one task, from the first process to the last.
 *
 * Starts the job, keeps its output and its exit status whatever happens to the keeper and the daemon,
 * reaps what nobody else reaps, and ends with nothing of the job left behind.  Everything it knows is
 * in one struct; it has one thread and one poll(2).
 */
#ifndef NS_INIT_SUPERVISOR_H
#define NS_INIT_SUPERVISOR_H

#include "base/base.h"

/* What the keeper hands over. */
#define SUPERVISOR_FD_LISTENER 3 /* ctl.sock, listening */
#define SUPERVISOR_FD_STATUS 4   /* the status file, for appending, locked by the keeper */
#define SUPERVISOR_FD_SEGMENTS 5 /* and the three after it */
#define SUPERVISOR_FD_LAST 8

struct supervisor_options {
    bool tty;
    bool input; /* stdin is a pipe that clients may fill; else it is empty */
    uint64_t log_bytes;
    const char *note;        /* the first record of the log; NULL: none */
    const char *const *argv; /* ends with NULL */
};

/* Returns the exit code of the job, as a shell would give it. */
int supervisor_run(const struct supervisor_options *o);

#endif
