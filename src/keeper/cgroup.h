/* cgroup - a control group for each task, below one folder of ours, on cgroup v1 and v2.
 *
 * What differs between the two is in the tables of cgroup.c: which folders a group is made in, which
 * file holds a limit and how the number is written, where usage is read.  The root of the
 * hierarchy is an argument, so both can be tried on a folder of plain files.  A controller the
 * machine lacks is left out and shows in cgroups_has; nothing here fails for want of one.
 * A group is named by the task; nothing outside our folder is ever written.
 */
#ifndef NS_KEEPER_CGROUP_H
#define NS_KEEPER_CGROUP_H

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

enum cgroups_kind {
    CGROUPS_NONE,
    CGROUPS_V1,
    CGROUPS_V2
};
const char *cgroups_kind_name(enum cgroups_kind k); /* "none", "v1", "v2" */

/* A machine with v1 controllers and an empty v2 beside them counts as v1. */
enum cgroups_kind cgroups_detect(const char *root);

enum cgroups_ability {
    CGROUPS_LIMITS, /* CPU, memory and process counts are all bounded */
    CGROUPS_FREEZE,
    CGROUPS_DEVICES, /* only listed ones can be opened, whatever is in /dev */
    CGROUPS_ABILITY_COUNT
};

struct cgroups;

/* Makes root/[controller/]parent.  kind CGROUPS_NONE gives one that can do nothing, silently. */
struct cgroups *cgroups_open(const char *root, enum cgroups_kind kind, const char *parent,
                             struct err *e);
struct cgroups *cgroups_free(struct cgroups *c); /* NULL ok; returns NULL; the groups stay */
enum cgroups_kind cgroups_kind(const struct cgroups *c);
bool cgroups_has(const struct cgroups *c, enum cgroups_ability a);

/* Removes our folder where no group is left in it. */
void cgroups_drop(const struct cgroups *c);

/* 0 means no limit. */
struct cgroup_limits {
    uint64_t cpu_milli, mem_mib, pids_max;
    const dev_t *devices; /* character devices beyond the harmless ones */
    size_t n_devices;
};

/* One that is there already is taken over and its limits are set anew. */
int cgroup_make(const struct cgroups *c, const char *name, const struct cgroup_limits *l,
                struct err *e) MUST_USE;

/* Descriptors to which a forked child writes "0" to be inside; all close-on-exec.  Returns their
 * number, or -1. */
#define CGROUP_JOIN_MAX 6
int cgroup_join_fds(const struct cgroups *c, const char *name, int out[CGROUP_JOIN_MAX],
                    struct err *e) MUST_USE;

/* A descriptor that becomes readable when the group is out of memory, the caller's; -1 where the
 * kernel ends the whole group by itself (v2) or cannot tell. */
int cgroup_watch_oom(const struct cgroups *c, const char *name);

int cgroup_freeze(const struct cgroups *c, const char *name, bool frozen, struct err *e) MUST_USE;
bool cgroup_is_frozen(const struct cgroups *c, const char *name); /* entirely */

/* Up to `cap` of those inside; the number there is. */
size_t cgroup_pids(const struct cgroups *c, const char *name, pid_t *out, size_t cap);
bool cgroup_holds(const struct cgroups *c, const char *name, pid_t pid);

/* SIGKILL to all inside, a frozen group is thawed on the way. */
void cgroup_kill(const struct cgroups *c, const char *name);

struct cgroup_usage {
    uint64_t cpu_ms, mem_peak_mib, oom_kills; /* 0 where nobody knows */
    uint64_t refused_forks;
};
void cgroup_usage(const struct cgroups *c, const char *name, struct cgroup_usage *out);

/* false: something is still inside, call again later. */
bool cgroup_remove(const struct cgroups *c, const char *name);

/* Each group below ours, as of now. */
typedef void cgroup_each_fn(void *ctx, const char *name);
void cgroup_each(const struct cgroups *c, cgroup_each_fn *fn, void *ctx);

#endif
