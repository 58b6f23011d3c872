/* act - what the control plane may ask of the agent: pause, resume and throttle a task, by its control group.
 *
 * The only thing here that changes the machine.  It reaches the group of a task and no other, does a command
 * once however often it is sent, and answers each.  It lets go on only what it paused itself: a job that the
 * keeper froze, for another's turn or before the end of a window, is not the agent's.  What it paused is kept in a
 * file, so that a restart forgets nothing.  While the owner holds the machine, nothing goes on.
 */
#ifndef NS_AGENT_ACT_H
#define NS_AGENT_ACT_H

#include "base/json.h"
#include "wire/report.h"

/* id, name, help */
#define ACTS(X)                                                                                    \
    X(PAUSE, "pause", "stop its processes where they are")                                         \
    X(RESUME, "resume", "let them go on")                                                          \
    X(THROTTLE, "throttle", "its share of the processors: 1 to 10000, 100 is everybody's")
enum act_what {
#define X(id, name, help) ACT_##id,
    ACTS(X)
#undef X
    ACT_COUNT
};

struct act;

struct act_places {
    const char *cgroup_root, *cgroup; /* as load.h has them */
    const char *file;                 /* what is paused */
    const char *state;                /* as load.h has it */
};

struct act *act_new(const struct act_places *p); /* the texts are borrowed */
struct act *act_free(struct act *a);             /* NULL ok; returns NULL */

/* The list of an answer.  Each command that is new is done or refused; `acks` are those of the last
 * REPORT_ACKS_MAX. */
void act_take(struct act *a, const struct json *commands, bool held);
void act_put_acks(const struct act *a, struct report_sample *out);

#endif
