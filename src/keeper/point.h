/* point - places in a task's root: found, and made where they are missing, before anything is mounted.
 *
 * A task's root is ours alone until the first folder of its user's is mounted in it.  From there on a
 * name can be a link that changes while we look.  So places are made canonical first (point_real), and
 * then walked one name at a time, without links, holding on to what was looked at (point_open): below
 * what is not the root's own with the user's rights, so that nothing can be made there that its user
 * could not have made.  Async-signal-safe.
 */
#ifndef NS_KEEPER_POINT_H
#define NS_KEEPER_POINT_H

#include "keeper/actas.h"

#define POINT_PATH_MAX 2048

/* Where `path` leads inside `root`, links followed and never out of it.  What is not there keeps its
 * name.  -1 with errno. */
int point_real(int root, const char *path, char out[static POINT_PATH_MAX]) MUST_USE;

/* The same, and where a link leads to what is not there yet, that; for places of ours. */
int point_real_through(int root, const char *path, char out[static POINT_PATH_MAX]) MUST_USE;

/* The canonical place, as a descriptor to mount on.  Names that are missing are made: as ourselves in
 * the root's own file system, as the user in any other.  -1 with errno: ELOOP when a link is there. */
int point_open(int root, const char *place, bool is_file, const struct actas *who) MUST_USE;

/* What `path` leads to inside `root` for a user, links followed and never out of it. */
int point_look(int root, const char *path, const struct actas *who) MUST_USE;

/* The path of what a descriptor is open at; false: it has none, or none that fits. */
bool point_path(int fd, char *out, size_t n);

bool point_is_below(const char *path, const char *folder); /* or is it; both canonical */

#endif
