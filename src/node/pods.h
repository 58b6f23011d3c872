/* pods - on a machine of Kubernetes: which container has which GPU, and whose a process is.
 *
 * Who has a device the kubelet tells (kubelet.h).  A process is a container's by its cgroup's path, as the drivers
 * cgroupfs and systemd name it, v1 and v2; the container's number is a name by the link to its log that the kubelet
 * keeps: POD_NAMESPACE_CONTAINER-NUMBER.log.  So nobody has to be asked but this machine.
 * A pod of one of our jobs is its task: it is called nightshift-JOB-RUN-REPLICA, its container `job`, and it is in a
 * namespace whose name begins as those of tenants do.  Every other is "namespace/pod/container".
 * May block as long as KUBELET_WAIT_MS; a machine without the socket is not one of Kubernetes.
 */
#ifndef NS_NODE_PODS_H
#define NS_NODE_PODS_H

#include "node/nvml.h"
#include "wire/report.h"

struct pods;

struct pods_places {
    const char *socket; /* the kubelet's; NULL or "": not looked for */
    const char *logs;   /* "/var/log/containers" */
    const char *proc;   /* "/proc" */
    const char *prefix; /* of the namespaces of tenants; "": any */
};

struct pods *pods_new(const struct pods_places *p); /* the texts are borrowed */
struct pods *pods_free(struct pods *p);             /* NULL ok; returns NULL */

/* Asks the kubelet when it is time to.  mono_ns must not go back. */
void pods_refresh(struct pods *p, int64_t mono_ns);

/* Adds what the kubelet gave away of these GPUs; `n`, which may be NULL, knows whose MIG devices are. */
void pods_add_given(struct pods *p, const struct report_head *h, struct nvml *n,
                    struct report_sample *out);

enum pods_found {
    PODS_NONE,    /* a process of no pod */
    PODS_UNKNOWN, /* of a pod whose name is not known yet */
    PODS_FOUND,
};
enum pods_found pods_of_process(struct pods *p, int32_t pid, char out[static REPORT_WHO_MAX]);

/* The pod's UID and the container's number in a cgroup's path; false when it is none of a pod. */
bool pods_cgroup(struct str path, char out_uid[static 40], char out_container[static 72]);
/* "nightshift-17-1-0" -> "17.1.0" */
bool pods_task(struct str pod, char out[static 40]);

#endif
