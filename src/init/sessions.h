/* sessions - who is connected to the task, and the commands they run inside it.
 *
 * Watchers learn of the end.  Attached clients see the job's output and may type.  Each exec is a
 * child of ours in a session of its own, which waits for its client as any program waits for its
 * terminal; when the client goes it is hung up, and killed after a while.
 *
 * The job waits for no client, but for one case: a job on a terminal is slowed down to what its
 * attached clients take, as every terminal does, and one that takes nothing for two seconds is cut.
 */
#ifndef NS_INIT_SESSIONS_H
#define NS_INIT_SESSIONS_H

#include <poll.h>

#include "init/child.h"
#include "init/client.h"
#include "wire/ring.h"

#define SESSIONS_USERS_MAX 16u                     /* attached, and execs */
#define SESSIONS_CLIENTS (SESSIONS_USERS_MAX + 8u) /* with watchers, and those that are coming */
#define SESSIONS_EXECS SESSIONS_USERS_MAX
#define SESSIONS_POLLS (1 + SESSIONS_CLIENTS + CHILD_ENDS * SESSIONS_EXECS)

struct exec {
    struct child child;    /* pid 0: the place is free */
    struct client *client; /* NULL: it has gone */
    int64_t kill_ms;       /* 0: not asked to end */
    bool ended;
    struct stream_exit how;
    size_t drained; /* bytes read since it ended */
};

struct sessions {
    int listener;
    struct child *job;
    const struct ring *log; /* what attached clients see is in it first */
    int64_t started_ms;     /* of the job, since 1970 */
    bool ended;             /* the job; `how` is set */
    struct stream_exit how;
    const char *why_not; /* the program could not be run: the reason; else NULL */
    bool linger;         /* at the end, until clients have read it: they may die with us */
    struct client client[SESSIONS_CLIENTS];
    struct exec exec[SESSIONS_EXECS];
    char chunk[STREAM_PAYLOAD_MAX];
};

void sessions_begin(struct sessions *s, int listener, struct child *job, const struct ring *log);

/* One round of poll(2): which descriptors, for how long at most (-1: for ever), what came of it.
 * now_ms is of a clock that never jumps. */
void sessions_polls(const struct sessions *s, struct pollfd out[static SESSIONS_POLLS]);
int sessions_timeout_ms(const struct sessions *s, int64_t now_ms);
void sessions_polled(struct sessions *s, const struct pollfd p[static SESSIONS_POLLS],
                     int64_t now_ms);

/* The job wrote something; and whether it should be read on. */
void sessions_output(struct sessions *s, enum stream_type type, struct str data, int64_t now_ms);
bool sessions_job_may_write(const struct sessions *s);

/* A child was reaped; false when it is no exec. */
bool sessions_reaped(struct sessions *s, pid_t pid, const struct stream_exit *how);

/* To the job: to everything below us but the execs. */
void sessions_signal_job(struct sessions *s, int signo);

/* The job has ended: tells everybody, and waits a bounded time until they have heard. */
void sessions_end(struct sessions *s, const struct stream_exit *how, const char *why_not);

#endif
