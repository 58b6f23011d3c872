/* older - what a keeper of a version without instances (node/instance.h) left under the names that all had. */
#ifndef NS_KEEPER_OLDER_H
#define NS_KEEPER_OLDER_H

#include "base/err.h"

/* Tasks of it may live: their groups and networks have its names, so we go on with those. */
bool older_lives(const char *run);

/* Removes what is its own by the notes in RUN, and what is everybody's only if nobody uses it. */
void older_clear(const char *run, const char *cgroup_root);

#endif
