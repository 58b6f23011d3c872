/* scratch_trash - what takes long about ending a scratch, away from the loop.
 *
 * A task may leave a million files, and a large file system takes its time to end: the first are
 * deleted by a child process, the second is closed by a thread.
 */
#ifndef NS_KEEPER_SCRATCH_TRASH_H
#define NS_KEEPER_SCRATCH_TRASH_H

#include "base/err.h"
#include "sys/log.h"
#include "sys/loop.h"

struct scratch_trash;

struct scratch_trash *trash_new(struct loop *l, struct log *log,
                                const char *dir);          /* dir outlives it */
struct scratch_trash *trash_free(struct scratch_trash *t); /* NULL ok; returns NULL */

/* Moves the folder into ours under that name, which is new, and deletes it later. */
int trash_throw(struct scratch_trash *t, const char *path, uint64_t name, struct err *e) MUST_USE;
void trash_empty(struct scratch_trash *t); /* deletes whatever is in the folder */

/* Whoever lets go of a mounted file system last does the work of ending it.  An open folder of it
 * holds it while it is unmounted; -1: it is no work. */
int trash_hold(const char *path);
void trash_let_go(struct scratch_trash *t, int held);

#endif
