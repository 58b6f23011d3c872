/* take - what a search for room by freezing and moving works with, and what it found. */
#ifndef NS_CORE_TAKE_H
#define NS_CORE_TAKE_H

#include "core/cluster.h"

struct take_room {
    uint32_t node;
    bool closed; /* being cleared: nothing is moved to it */
    struct room room;
};

struct take_step {
    uint32_t job; /* is frozen */
    bool moves;   /* and goes on at `to` */
    struct slot to;
};

/* GPU thousandths that a node could give by freezing, and by moving jobs as well. */
struct take_reach {
    uint32_t frozen, moved;
};

struct take_scratch {
    struct take_reach *reach; /* of each node, when the search begins */
    struct take_room *room;
    uint32_t rooms, room_cap;
    uint64_t *node_mark; /* epoch << 32 | index of its room */
    uint64_t *job_mark;  /* epoch: in the steps already */
    uint32_t node_cap, job_cap;
    uint64_t epoch;
    struct take_step *step;
    uint32_t steps, step_cap;
    uint32_t *fork;              /* of each share: see find_forks */
    int64_t *allowed[2], *taken; /* [1]: of jobs that have had little so far */
    uint32_t share_cap;
};
void take_scratch_free(struct take_scratch *s);

#endif
