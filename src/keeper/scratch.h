/* scratch - a bounded private place on disk for each task (its /tmp and /var/tmp), gone at its end.
 *
 * STATE/scratch/<number> holds the folders tmp and var-tmp, which are the user's; everything above
 * them is root's, and other accounts cannot enter.  What bounds it is the first of these that works
 * here and suits the size: a project quota of the file system, a tmpfs (small ones; its pages count
 * as the memory of the task that writes them), an ext4 file on a loop device; else nothing does, and
 * scratch_bounded says so.  Whoever mounts it into a task does so with nosuid and nodev.
 *
 * The owner of a file may move it to another project, so with project quotas a task's seccomp filter
 * must refuse the ioctls FS_IOC_FSSETXATTR and FS_IOC_SETFLAGS.
 *
 * Making and ending a file system costs more than the rest of a short task.  One that comes back
 * with little in it is emptied and kept a while for the next task.
 *
 * All state is in the file system and with the tasks: who holds a place notes its path, adopts it
 * after a restart, and scratch_sweep removes what nobody adopted.
 */
#ifndef NS_KEEPER_SCRATCH_H
#define NS_KEEPER_SCRATCH_H

#include "base/err.h"
#include "sys/log.h"
#include "sys/loop.h"

struct scratch;

#define SCRATCH_KINDS(X)                                                                           \
    X(PROJECT, "project", "a project quota of the file system")                                    \
    X(TMPFS, "tmpfs", "a tmpfs, counted as memory of the task")                                    \
    X(LOOP, "loop", "an ext4 file on a loop device")                                               \
    X(PLAIN, "plain", "a plain folder that nothing bounds")
enum scratch_kind {
#define X(id, name, help) SCRATCH_##id,
    SCRATCH_KINDS(X)
#undef X
    SCRATCH_KIND_COUNT
};
const char *scratch_kind_name(enum scratch_kind k);
const char *scratch_kind_help(enum scratch_kind k);

struct scratch_config {
    struct loop *loop;
    struct log *log;        /* NULL ok; hears once what was chosen */
    const char *dir;        /* STATE/scratch */
    uint64_t tmpfs_max_mib; /* 0: 256 */
    uint64_t look_ms; /* between two looks at what is idle or could not be removed; 0: 20000 */
    unsigned without; /* bits of kinds not to use: 1u << SCRATCH_LOOP; PLAIN is always there */
};

/* Tries what works here; takes some milliseconds. */
struct scratch *scratch_new(const struct scratch_config *c, struct err *e);
struct scratch *scratch_free(struct scratch *s); /* NULL ok; the folders stay */
void scratch_free_p(struct scratch **s);

enum scratch_kind scratch_choose(const struct scratch *s, uint64_t mib); /* for that size */
bool scratch_bounded(const struct scratch *s); /* every size is: capability "quota" */

#define SCRATCH_PATH_MAX 256

struct scratch_want {
    uint64_t mib; /* > 0 */
    uint32_t uid, gid;
};

int scratch_take(struct scratch *s, const struct scratch_want *w,
                 char out_path[static SCRATCH_PATH_MAX], struct err *e) MUST_USE;

/* For a task that an earlier keeper gave it to.  Before scratch_sweep. */
int scratch_adopt(struct scratch *s, const char *path, struct err *e) MUST_USE;

/* Removes what was not adopted.  Once, after the last scratch_adopt. */
void scratch_sweep(struct scratch *s);

/* Its processes are gone.  Idempotent.  Large ones are deleted in the background. */
int scratch_give_back(struct scratch *s, const char *path, struct err *e) MUST_USE;

bool scratch_full(const char *path); /* has it no room left now? */

void scratch_drop_idle(struct scratch *s); /* those kept for the next task */

#endif
