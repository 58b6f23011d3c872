/* keeping - how far letting go of what is over has come.  Included by state.h alone. */
#ifndef NS_CONTROL_KEEPING_H
#define NS_CONTROL_KEEPING_H

#include "store/kept.h"
#include "sys/loop.h"

struct control;

/* A batch of keep.c on its way to the disk; it may outlive the control plane. */
struct keep_written {
    struct control *c; /* NULL: nobody waits for it any more */
};

/* How far letting go of what is over has come; see keep.c. */
struct keeping {
    struct loop_watch *timer;
    struct keep_written *written;
    uint64_t job, task;    /* whose tasks are being visited, and which is next */
    uint64_t bytes, there; /* of those that were */
    struct store_walk log_walk, job_walk;
    uint64_t planned; /* bytes of logs whose removal was asked for in this walk */
    /* Those with most output, when it is too large together: what would be left of each, and how far it went. */
    struct keep_room {
        char *tenant;
        uint64_t bytes;
        struct store_walk walk;
    } * room;
    size_t rooms;
    bool waits, progress;  /* in this walk a removal was asked for; another was seen to be done */
    uint32_t asks;         /* walks without progress */
    bool rests;            /* there is nothing to do until something ends or is old enough */
    int64_t whole_days_ms; /* usage before it is counted in whole days */
    uint64_t logs_removed;
    struct keep_day {
        int64_t since_ns;    /* by the clock that never jumps; 0: no day has begun */
        uint64_t logs, jobs; /* removed for their age in it */
        uint64_t logs_most, jobs_most;
        bool capped; /* some wait for tomorrow */
    } day;
};

#endif
