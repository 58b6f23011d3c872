/* jump - a wall clock that jumps, as people are told of it: see jump.c. */
#ifndef NS_CONTROL_JUMP_H
#define NS_CONTROL_JUMP_H

#include "control/control.h"

#define CONTROL_CLOCK_META "clock" /* in the store: steady_mark, for the next start */
struct control_clock {
    bool holds;       /* it is not clear what time it is: nothing is removed for its age */
    int64_t ahead_ms; /* of the wall clock */
};
struct control_clock control_clock(const struct control *c);
void control_clock_confirm(
    struct control *c); /* an administrator says that the wall clock is right */

#endif
