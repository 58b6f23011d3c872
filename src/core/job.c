#include "core/job.h"

static const struct {
    const char *name;
    bool holds, ended;
} states[] = {
#define X(id, name, holds, ended) [JOB_##id] = { name, holds, ended },
    JOB_STATES(X)
#undef X
};
_Static_assert(ARRAY_LEN(states) == JOB_STATE_COUNT, "every state has its row");

static const char *const event_names[] = {
#define X(id, name) [JOB_EV_##id] = name,
    JOB_EVENTS(X)
#undef X
};

static const struct edge {
    enum job_state from;
    enum job_event on;
    enum job_state to;
} edges[] = {
    { JOB_HELD, JOB_EV_RELEASE, JOB_QUEUED },
    { JOB_HELD, JOB_EV_CANCEL, JOB_CANCELLED },
    { JOB_QUEUED, JOB_EV_HOLD, JOB_HELD },
    { JOB_QUEUED, JOB_EV_PLACED, JOB_STARTING },
    { JOB_QUEUED, JOB_EV_CANCEL, JOB_CANCELLED },
    { JOB_STARTING, JOB_EV_STARTED, JOB_RUNNING },
    { JOB_STARTING, JOB_EV_RETURNED, JOB_QUEUED },
    { JOB_STARTING, JOB_EV_EXITED_BAD, JOB_FAILED },
    { JOB_STARTING, JOB_EV_CANCEL, JOB_STOPPING },
    { JOB_RUNNING, JOB_EV_EXITED_OK, JOB_SUCCEEDED },
    { JOB_RUNNING, JOB_EV_EXITED_BAD, JOB_FAILED },
    { JOB_RUNNING, JOB_EV_RETURNED, JOB_QUEUED },
    { JOB_RUNNING, JOB_EV_FREEZE, JOB_FREEZING },
    { JOB_RUNNING, JOB_EV_TAKE, JOB_FREEZING },
    { JOB_RUNNING, JOB_EV_CANCEL, JOB_STOPPING },
    { JOB_RUNNING, JOB_EV_STOP, JOB_STOPPING },
    { JOB_FREEZING, JOB_EV_FREEZE, JOB_FREEZING }, /* it was taken back; now it is to stay so */
    { JOB_FREEZING, JOB_EV_THAW, JOB_FREEZING },   /* and this takes that back */
    { JOB_FREEZING, JOB_EV_FROZE, JOB_FROZEN },
    { JOB_FREEZING, JOB_EV_PAUSED, JOB_PAUSED },
    { JOB_FREEZING, JOB_EV_STARTED, JOB_RUNNING }, /* it could not be frozen and goes on */
    { JOB_PAUSED, JOB_EV_THAW, JOB_THAWING },
    { JOB_PAUSED, JOB_EV_EXITED_OK, JOB_SUCCEEDED }, /* it had ended before it stood still */
    { JOB_PAUSED, JOB_EV_EXITED_BAD, JOB_FAILED },
    { JOB_PAUSED, JOB_EV_RETURNED, JOB_QUEUED },
    { JOB_PAUSED, JOB_EV_CANCEL, JOB_STOPPING },
    { JOB_FREEZING, JOB_EV_EXITED_OK, JOB_SUCCEEDED }, /* it finished while it was asked to save */
    { JOB_FREEZING, JOB_EV_EXITED_BAD, JOB_FAILED },
    { JOB_FREEZING, JOB_EV_RETURNED, JOB_QUEUED },
    { JOB_FREEZING, JOB_EV_CANCEL, JOB_STOPPING },
    { JOB_FROZEN, JOB_EV_THAW, JOB_FROZEN }, /* now it waits for room like a queued job */
    { JOB_FROZEN, JOB_EV_PLACED, JOB_THAWING },
    { JOB_FROZEN, JOB_EV_FREEZE, JOB_FROZEN }, /* takes a thaw back */
    { JOB_FROZEN, JOB_EV_CANCEL, JOB_CANCELLED },
    { JOB_THAWING, JOB_EV_STARTED, JOB_RUNNING },
    { JOB_THAWING, JOB_EV_RETURNED, JOB_QUEUED },
    { JOB_THAWING, JOB_EV_FROZE, JOB_FROZEN }, /* the thaw did not happen; nothing is lost */
    { JOB_THAWING, JOB_EV_PAUSED, JOB_PAUSED },
    { JOB_THAWING, JOB_EV_EXITED_OK, JOB_SUCCEEDED },
    { JOB_THAWING, JOB_EV_EXITED_BAD, JOB_FAILED },
    { JOB_THAWING, JOB_EV_CANCEL, JOB_STOPPING },
    { JOB_STOPPING, JOB_EV_ENDED, JOB_CANCELLED },
    { JOB_STOPPING, JOB_EV_EXITED_OK, JOB_SUCCEEDED },
    { JOB_STOPPING, JOB_EV_EXITED_BAD, JOB_FAILED },
};

const char *job_state_name(enum job_state s)
{
    return (size_t)s < ARRAY_LEN(states) ? states[s].name : "?";
}

const char *job_event_name(enum job_event ev)
{
    return (size_t)ev < ARRAY_LEN(event_names) ? event_names[ev] : "?";
}

bool job_event_parse(struct str name, enum job_event *out)
{
    for (size_t i = 0; i < ARRAY_LEN(event_names); i++)
        if (str_is(name, event_names[i])) {
            *out = (enum job_event)i;
            return true;
        }
    return false;
}

bool job_state_holds(enum job_state s)
{
    return states[s].holds;
}

bool job_state_ended(enum job_state s)
{
    return states[s].ended;
}

int job_next(enum job_state from, enum job_event on, enum job_state *out_to, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(edges); i++)
        if (edges[i].from == from && edges[i].on == on) {
            *out_to = edges[i].to;
            return 0;
        }
    err_set(e, ERR_CONFLICT, "a %s job cannot take '%s'", job_state_name(from), job_event_name(on));
    if (states[from].ended)
        return err_hint(e, "the job has ended; submit it again to run it again");
    return -1;
}

bool job_edge(size_t i, enum job_state *from, enum job_event *on, enum job_state *to)
{
    if (i >= ARRAY_LEN(edges))
        return false;
    *from = edges[i].from;
    *on = edges[i].on;
    *to = edges[i].to;
    return true;
}
