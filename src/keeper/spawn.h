/* spawn - the child that becomes crun (or nightshift-init): inside its control group from the start.
 *
 * Between fork and exec the child makes only async-signal-safe calls: it joins the control groups,
 * takes a mount namespace of its own with a small tmpfs in it, and there puts the task's root together
 * (compose.h).  All that may hang for ever - a home or a volume on a file server that does not answer -
 * is touched by the child only; before each it says through a pipe what it is about to touch, and
 * there, too, it says what went wrong.
 */
#ifndef NS_KEEPER_SPAWN_H
#define NS_KEEPER_SPAWN_H

#include <sys/types.h>

#include "base/err.h"
#include "keeper/cgroup.h"
#include "keeper/compose.h"
#include "keeper/rootfs.h"

#define SPAWN_FDS 7      /* they become 3 … 9 in the child */
#define SPAWN_HIGH_FD 64 /* above every number that the program is to get */

struct spawn_want {
    const char *const *argv; /* ends with NULL; argv[0] is a path */
    const char *const
        *argv_else;         /* when the folder to begin in is not there; NULL: then it fails */
    int program;            /* executed instead of argv[0], above SPAWN_HIGH_FD; -1: none */
    const char *const *env; /* ends with NULL */
    const char *cwd;        /* NULL: / */
    int fd[SPAWN_FDS];      /* -1: that number stays closed */
    int out_fd;             /* its stdout and stderr */
    int join_fd[CGROUP_JOIN_MAX];
    int n_join;

    const char *hide; /* a mount that the program must not see; NULL: none */
    const char *mnt;  /* an empty folder: the tmpfs is mounted on it, the rest is made below */
    const struct rootfs_entry *skeleton; /* NULL: none */
    struct compose
        *compose; /* as root: in a mount namespace of its own; NULL: nothing is mounted */
    const char *look,
        *look_else; /* without that: folders to begin in, outside; NULL: not looked at */
};

/* Where the child was when it failed, or what it is about to touch. */
enum spawn_step {
    SPAWN_BUSY, /* it has not failed */
    SPAWN_JOIN,
    SPAWN_MOUNTS,
    SPAWN_COMPOSE,
    SPAWN_CWD,
    SPAWN_HANDOVER,
    SPAWN_EXEC
};

struct spawn_report {
    enum spawn_step step;
    int cause;
    struct compose_trouble trouble; /* SPAWN_COMPOSE; SPAWN_BUSY: the index */
};

struct spawned {
    pid_t pid;
    int pidfd;  /* readable once it has ended */
    int report; /* spawn_failure and spawn_busy read it */
    struct spawn_report last;
    bool said; /* `last` is something */
};

/* The descriptors given stay the caller's. */
int spawn_child(const struct spawn_want *w, struct spawned *out, struct err *e) MUST_USE;

void spawn_default_signals(void); /* in a child, before it executes something */

/* Of an ended child: true, and e says what, when it never came to run the program. */
bool spawn_failure(const struct spawn_want *w, struct spawned *s, struct err *e);

/* Of a living one: false when it runs its program already; else e says what does not answer. */
bool spawn_busy(const struct spawn_want *w, struct spawned *s, struct err *e);

#endif
