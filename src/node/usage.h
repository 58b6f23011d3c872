/* usage - processors, memory, disks and networks: of the machine, and of each task by its control group.
 *
 * Reads /proc and the cgroup file system (v1 and v2) and remembers the counters of the sample before, so that
 * rates are averages between the two; the first sample has none.  What a kernel does not tell is unknown.
 * Nothing is written.  Folders are arguments: tests have their own.
 */
#ifndef NS_NODE_USAGE_H
#define NS_NODE_USAGE_H

#include "wire/report.h"

struct usage;

struct usage_places {
    const char *root;        /* stands for "/"; "" is the real one */
    const char *cgroup_root; /* "/sys/fs/cgroup" */
    const char *cgroup;      /* the folder in it that has the tasks: "nightshift" */
    const char *state;       /* whose file system counts as the machine's disk */
};

struct usage *usage_new(const struct usage_places *p); /* the texts are borrowed */
struct usage *usage_free(struct usage *u);             /* NULL ok; returns NULL */

/* Fills the machine's values and the tasks.  mono_ns must not go back. */
void usage_sample(struct usage *u, int64_t mono_ns, struct report_sample *s);

/* Some processes of a task, to look at what they share; their number. */
size_t usage_task_pids(struct usage *u, const char *task, int32_t *out, size_t max);

#endif
