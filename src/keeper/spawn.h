/* spawn - the child that becomes crun (or nightshift-init): inside its control group from the start.
 *
 * Between fork and exec the child makes only async-signal-safe calls: it joins the control groups,
 * takes a mount namespace of its own with a small tmpfs in it, and there builds the skeleton of the
 * root and binds what the user named - home and volumes - after opening each with the user's own
 * rights.  A task can thus only be given what its user could
 * reach, and nothing can be swapped between the look and the mount.  What went wrong comes back
 * through a pipe, for the parent to read once the child has ended.
 */
#ifndef NS_KEEPER_SPAWN_H
#define NS_KEEPER_SPAWN_H

#include <sys/types.h>

#include "base/err.h"
#include "keeper/cgroup.h"
#include "keeper/rootfs.h"

#define SPAWN_FDS 6      /* they become 3 … 8 in the child */
#define SPAWN_HIGH_FD 64 /* above every number that the program is to get */
#define SPAWN_BINDS_MAX 66

struct spawn_bind {
    const char *from; /* opened as the user */
    const char *onto; /* ours, made */
    bool is_file;     /* a plain file, else a folder; refused when it is another by now */
    bool is_ours;     /* opened as ourselves: users need not be able to reach our folders */
};

struct spawn_want {
    const char *const *argv; /* ends with NULL; argv[0] is a path */
    int program;             /* executed instead of argv[0], above SPAWN_HIGH_FD; -1: none */
    const char *const *env;  /* ends with NULL */
    const char *cwd;         /* NULL: / */
    int fd[SPAWN_FDS];
    int out_fd; /* its stdout and stderr */
    int join_fd[CGROUP_JOIN_MAX];
    int n_join;

    const char *hide; /* a mount that the program must not see; NULL: none */
    bool own_mounts;  /* as root: a mount namespace of its own, which the rest needs */
    const char *mnt;  /* an empty folder: the tmpfs is mounted on it, the rest is made below */
    const struct rootfs_entry *skeleton; /* NULL: none */
    uint32_t uid, gid;
    const uint32_t *groups;
    uint32_t n_groups;
    struct spawn_bind bind[SPAWN_BINDS_MAX];
    uint32_t n_binds;
    const char *workdir;  /* must be a folder the user can enter; NULL: not looked at */
    bool workdir_in_home; /* it is below bind[0], and looked for from there */
};

struct spawned {
    pid_t pid;
    int pidfd;  /* readable once it has ended */
    int report; /* for spawn_failure */
};

/* The descriptors given stay the caller's. */
int spawn_child(const struct spawn_want *w, struct spawned *out, struct err *e) MUST_USE;

/* Of an ended child: true, and e says what, when it never came to run the program. */
bool spawn_failure(const struct spawn_want *w, int report, struct err *e);

#endif
