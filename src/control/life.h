/* life - what happened to a job, as its user reads it: steps into the open turn, beside the changes they tell of.
 *
 * A step is told when a job's state or run changes, and not each time that its message does.  A step of a job that
 * waits says why, as soon as a pass has looked; when that changes while it waits, another step says so, some jobs a
 * minute and STEP_REASONS_MAX times a wait.
 */
#ifndef NS_CONTROL_LIFE_H
#define NS_CONTROL_LIFE_H

#include "control/control.h"

struct entry;

/* id, slug, meaning */
#define LIFE_STEPS(X)                                                                              \
    X(SUBMITTED, "submitted", "it was taken")                                                      \
    X(HELD, "held", "somebody keeps it out of the queue")                                          \
    X(RELEASED, "released", "it may queue again")                                                  \
    X(WAITS, "waits", "it waits for something else than before")                                   \
    X(PLACED, "placed", "a pass gave it room: it is being started there")                          \
    X(STARTED, "started", "its processes run")                                                     \
    X(FREEZING, "freezing", "it is asked to stand still")                                          \
    X(FROZEN, "frozen", "it gave its room back and keeps its work")                                \
    X(PAUSED, "paused", "it stands still and keeps its room")                                      \
    X(THAWING, "thawing", "it is being let go on")                                                 \
    X(THAWED, "thawed", "it goes on")                                                              \
    X(REQUEUED, "requeued", "it lost its place and waits to start again")                          \
    X(STOPPING, "stopping", "it is being ended")                                                   \
    X(ENDED, "ended", "it is over")
enum life_step {
#define X(id, slug, text) STEP_##id,
    LIFE_STEPS(X)
#undef X
    LIFE_STEP_COUNT
};
const char *life_step_name(enum life_step s);

/* What a move from one state to another is called. */
enum life_step life_step_of(enum job_state from, enum job_state to);

void life_tell(struct control *c, struct entry *en); /* it changed: with its row */
/* Somebody asked for it, and it stays in its state for now. */
void life_asked(struct control *c, struct entry *en, enum life_step what);
void life_known(struct entry *en);    /* it was told before, by an earlier daemon */
void life_reasons(struct control *c); /* after a pass, before the turn is written */
void life_minute(struct control *c);  /* looks at some that wait */

#endif
