/* proctree - a process with all that descend from it, where no control group holds them together.
 *
 * Only what is still connected is found: a process whose parent has ended belongs to somebody else
 * by then.  `proc` is /proc, or a folder that stands for it.
 */
#ifndef NS_KEEPER_PROCTREE_H
#define NS_KEEPER_PROCTREE_H

#include <sys/types.h>

#include "base/base.h"

/* The root first, parents before children; the number written, at most `cap`. */
size_t proctree_list(const char *proc, pid_t root, pid_t *out, size_t cap);

/* Is it process 1 of a pid namespace below this one? */
bool proctree_is_first(const char *proc, pid_t pid);

/* SIGKILL to all of them, or to all but the root: first each is stopped, so that none forks away
 * meanwhile. */
void proctree_kill(const char *proc, pid_t root, bool spare_root);

#endif
