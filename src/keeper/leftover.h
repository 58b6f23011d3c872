/* leftover - processes that belong to no living task: found, named, and ended when that is wished.
 *
 * Two kinds.  In our own control groups: what stayed when the task's files were lost, or what the
 * kernel could not kill.  On a GPU: a program that computes there and that no living task owns.
 * Each is told to the daemon with its owner and command.  Empty control groups of dead tasks are
 * removed without a word.  Looking at GPUs may block, so a thread of its own does it.
 */
#ifndef NS_KEEPER_LEFTOVER_H
#define NS_KEEPER_LEFTOVER_H

#include "keeper/env.h"

struct leftover;

struct leftover_config {
    const struct env *env;
    const char *nvml;  /* NULL: searched */
    const char *group; /* the name of our folder among the control groups */
    bool end;          /* end them */
    bool (*alive)(void *ctx, const char *task);
    void *ctx;
};

struct leftover *leftover_new(const struct leftover_config *c);
struct leftover *leftover_free(struct leftover *l); /* NULL ok; waits for a look that goes on */

/* Now for the control groups, a little later for the GPUs. */
void leftover_look(struct leftover *l);

#endif
