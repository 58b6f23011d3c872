/* lift - what would have to be out of the way for a job to have room: the least, found by putting it
 * out of the way and searching again.  The cluster is as it was when the call is over.
 *
 * Nothing of what is found is too much: without any one of it the job still has no room.
 */
#ifndef NS_CORE_LIFT_H
#define NS_CORE_LIFT_H

#include "core/state.h"

enum lift {
    LIFT_KEPT = 1 << 0,    /* room that is kept for, or promised to, others */
    LIFT_CPU = 1 << 1,     /* CPUs in use, on machines whose free GPUs are enough */
    LIFT_MEM = 1 << 2,     /* memory in use there */
    LIFT_BUSY = 1 << 3,    /* all of that and all that runs, on the machines that could run it */
    LIFT_DOWN = 1 << 4,    /* that machines are drained or down */
    LIFT_WINDOW = 1 << 6,  /* that machines are lent at other times, or not for long enough */
    LIFT_POOLS = 1 << 7,   /* that its tenant may not use some machines */
    LIFT_MODELS = 1 << 8,  /* that limits keep it from some GPU models */
    LIFT_TRAITS = 1 << 9,  /* that it asks for machines of some classes */
    LIFT_DEVICE = 1 << 10, /* devices in use, on machines whose free GPUs are enough */
    LIFT_NEVER = 1 << 5 /* with nothing else running, and all machines up, it has no room either */
};

/* A set of them; 0: there is room now. */
unsigned lift_least(struct core *c, const struct job *j);

#endif
