/* rootfs - the host's own system as the root of a task: `image: host`.
 *
 * Each task gets an empty tree of folders and links (a skeleton) onto which the host's system
 * folders are mounted read-only.  Which folders those are is a table and is looked up once: where
 * /bin is a link it is a link inside, where it is a folder it is mounted.  The skeleton is the
 * task's own because mount points are made in it; as root it is built by the task's child in a tmpfs
 * that nobody else sees and that goes with it.
 */
#ifndef NS_KEEPER_ROOTFS_H
#define NS_KEEPER_ROOTFS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define ROOTFS_FOLDERS_MAX 32

struct rootfs_folder {
    const char *path; /* below the host's root, with the slash */
    char link[64];    /* where it points to when it is a link, else "" */
};

struct rootfs_plan {
    struct rootfs_folder folder[ROOTFS_FOLDERS_MAX]; /* those there are */
    size_t n;
};

void rootfs_look(const char *host_root, struct rootfs_plan *out); /* host_root: "" for / */

struct rootfs_entry {
    const char *path;
    const char *link; /* NULL: a folder */
};

/* The skeleton below `at`, parents first; ends with a NULL path; lives in `a`. */
const struct rootfs_entry *rootfs_skeleton(const struct rootfs_plan *p, const char *at,
                                           struct arena *a);

/* -1 with errno.  Async-signal-safe: a forked child may call it. */
int rootfs_build(const struct rootfs_entry *list) MUST_USE;

/* Removes a tree of ours: files, links and folders, never through a mount or a link.  What cannot
 * be removed stays and makes it -1.  A missing tree is removed already. */
int tree_remove(const char *path, struct err *e) MUST_USE;

#endif
