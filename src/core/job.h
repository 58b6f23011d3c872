/* job - the life of one job as a table: no I/O, no clock, no store.
 *
 * A job moves only along the edges listed in job.c.  Terminal states have no outgoing edge, so a
 * finished job can never run again; everything that bills or frees GPUs relies on that.  What a
 * state means for resources (does it hold them, may it be placed) is a column of the same table.
 */
#ifndef NS_CORE_JOB_H
#define NS_CORE_JOB_H

#include "base/err.h"
#include "base/str.h"

/* id, name, holds resources, has ended */
#define JOB_STATES(X)                                                                              \
    X(HELD, "held", false, false)                                                                  \
    X(QUEUED, "queued", false, false)                                                              \
    X(STARTING, "starting", true, false)                                                           \
    X(RUNNING, "running", true, false)                                                             \
    X(FREEZING, "freezing", true, false)                                                           \
    X(PAUSED, "paused", true, false)                                                               \
    X(FROZEN, "frozen", false, false)                                                              \
    X(THAWING, "thawing", true, false)                                                             \
    X(STOPPING, "stopping", true, false)                                                           \
    X(SUCCEEDED, "succeeded", false, true)                                                         \
    X(FAILED, "failed", false, true)                                                               \
    X(CANCELLED, "cancelled", false, true)
enum job_state {
#define X(id, name, holds, ended) JOB_##id,
    JOB_STATES(X)
#undef X
    JOB_STATE_COUNT
};

/* id, name.  PLACED is the scheduler's own; the others come from people and engines. */
#define JOB_EVENTS(X)                                                                              \
    X(HOLD, "hold")       /* keep it out of the queue */                                           \
    X(RELEASE, "release") /* let it queue again */                                                 \
    X(PLACED, "placed")   /* a pass gave it room */                                                \
    X(STARTED, "started") /* its processes run (again) */                                          \
    X(RETURNED,                                                                                    \
      "returned")       /* it lost its place and starts anew: node lost, start failed, requeue */  \
    X(FREEZE, "freeze") /* give the resources back, keep the work */                               \
    X(TAKE, "take")     /* the same, decided by a pass: it goes on by itself when there is room */ \
    X(FROZE, "froze")   /* it gave its resources back */                                           \
    X(PAUSED, "paused") /* it stands still and keeps them: its memory is on those GPUs */          \
    X(THAW, "thaw")     /* let a frozen job be placed again */                                     \
    X(CANCEL, "cancel") /* end it */                                                               \
    X(STOP, "stop")     /* its time is over: end it, it counts as failed */                        \
    X(EXITED_OK, "exited_ok")                                                                      \
    X(EXITED_BAD, "exited_bad")                                                                    \
    X(ENDED, "ended") /* the processes of a job that was told to stop are gone */
enum job_event {
#define X(id, name) JOB_EV_##id,
    JOB_EVENTS(X)
#undef X
    JOB_EVENT_COUNT
};

const char *job_state_name(enum job_state s);
const char *job_event_name(enum job_event ev);
bool job_event_parse(struct str name, enum job_event *out);

bool job_state_holds(enum job_state s); /* has resources */
bool job_state_ended(enum job_state s);

/* The state after `on`; ERR_CONFLICT where the table has no such edge. */
int job_next(enum job_state from, enum job_event on, enum job_state *out_to, struct err *e)
    MUST_USE;

/* Walks the table, for docs and tests: false past the last edge. */
bool job_edge(size_t i, enum job_state *from, enum job_event *on, enum job_state *to);

#endif
