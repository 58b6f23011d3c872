/* load - what a machine does now: its GPUs and whose their work is, processors, memory, disks, networks.
 *
 * One call a sample.  It reads and never writes; it may block as long as the driver does, so it belongs on a
 * thread of its own.  A driver that does not work is a finding of the sample, looked for again from time to
 * time; a GPU that is gone stays in the list with every value unknown.
 * Simulated GPUs have no driver: their figures are made up from their jobs and the time, and the head says
 * so.
 */
#ifndef NS_NODE_LOAD_H
#define NS_NODE_LOAD_H

#include "node/probe.h"
#include "wire/report.h"

struct load;

struct load_config {
    struct node_want want;
    const char *cgroup_root,
        *cgroup; /* where the tasks are: see usage.h; cgroup NULL: that of the instance in `state` */
    const char *state;   /* whose disk counts */
    const char *kubelet; /* its pod-resources socket; NULL: not looked for.  See pods.h */
    const char *pod_logs, *kube_prefix;
};

struct load *load_new(const struct load_config *c, struct err *e); /* the texts are borrowed */
struct load *load_free(struct load *l);                            /* NULL ok; returns NULL */
void load_free_p(struct load **l);

/* What does not change; valid until the next sample, which may find GPUs that came late. */
const struct report_head *load_head(const struct load *l);

struct load_time {
    int64_t wall_ms, mono_ns; /* mono_ns must not go back */
};
void load_sample(struct load *l, struct load_time now, struct report_sample *out);

#endif
