/* supervisor - the life of one task, from the first process to the last.
 *
 * Starts the job, keeps its output and its exit status whatever happens to the keeper and the daemon,
 * reaps what nobody else reaps, and ends with nothing of the job left behind.  Everything it knows is
 * in one struct; it has one thread and one poll(2).
 */
#ifndef NS_INIT_SUPERVISOR_H
#define NS_INIT_SUPERVISOR_H

#include "wire/joblog.h"

/* The task's files, open: the keeper's, or our own in a pod.  All -1: nobody can connect and nothing
 * is kept, but the job runs. */
struct supervisor_files {
    int listener; /* ctl.sock, listening */
    int status;   /* for appending, locked */
    int segment[JOBLOG_SEGMENTS];
};
#define SUPERVISOR_NO_FILES                                                                        \
    {                                                                                              \
        -1, -1,                                                                                    \
        {                                                                                          \
            -1, -1, -1, -1                                                                         \
        }                                                                                          \
    }

struct supervisor_options {
    struct supervisor_files files;
    bool tty;
    bool input; /* stdin is a pipe that clients may fill; else it is empty */
    uint64_t log_bytes;
    const char *note;        /* the first record of the log; NULL: none */
    const char *const *argv; /* ends with NULL */

    /* In a pod the container's runtime reads our stdout and stderr: all output goes there too, and
     * the job waits for it as every container does.  The first SIGTERM is the kubelet's, for a pod
     * that is deleted: the job gets its freeze signal.  One that came before the job was started
     * ends us at once; all signals must be blocked by then. */
    bool pod;
    int freeze_signal;
    const char *complaint; /* a word of ours for stderr, first; NULL: none */
};

/* Returns the exit code of the job, as a shell would give it. */
int supervisor_run(const struct supervisor_options *o);

#endif
