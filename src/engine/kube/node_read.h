/* node_read - a v1 Node into what is kept of it: one allocation, no document.
 *
 * Texts are never NULL; what a node does not say is "".  Labels are in the order of their keys,
 * taints in the order of key, value and effect, so equal nodes have equal lists.
 */
#ifndef NS_ENGINE_KUBE_NODE_READ_H
#define NS_ENGINE_KUBE_NODE_READ_H

#include "engine/kube/amounts.h"

#define NODE_LABEL_POOL "nightshift.dev/pool"
#define NODE_LABEL_STAGE "nightshift.dev/stage"
#define NODE_LABEL_RACK "topology.kubernetes.io/rack"

struct kube_label {
    const char *key, *value;
};

#define TAINT_EFFECTS(X)                                                                           \
    X(NO_SCHEDULE, "NoSchedule")                                                                   \
    X(NO_EXECUTE, "NoExecute")                                                                     \
    X(PREFER, "PreferNoSchedule")
enum taint_effect {
#define X(id, name) TAINT_##id,
    TAINT_EFFECTS(X)
#undef X
    TAINT_EFFECT_COUNT
};
const char *taint_effect_name(enum taint_effect f);
bool taint_effect_parse(const char *name, enum taint_effect *out);

struct kube_taint {
    const char *key, *value;
    enum taint_effect effect;
};

enum kube_ready {
    KUBE_READY_UNKNOWN, /* the kubelet does not report, or never did */
    KUBE_READY_NO,
    KUBE_READY_YES
};

enum gpu_sharing {
    GPU_SHARING_NONE,
    GPU_SHARING_TIME,
    GPU_SHARING_MPS,
    GPU_SHARING_OTHER
};
enum gpu_mig {
    GPU_MIG_OFF,
    GPU_MIG_SINGLE, /* every GPU in equal slices, counted like GPUs */
    GPU_MIG_MIXED   /* slices are resources with names of their own */
};

/* The GPUs of a node as its labels have them; resource "": it has none that we know. */
struct kube_gpu {
    const char *resource; /* "nvidia.com/gpu": what a pod asks for; of static storage */
    const char *model;    /* "A100-SXM4-80GB" */
    const char *slice;    /* "1g.10gb" when the GPUs counted are MIG slices of that kind */
    uint32_t count;       /* in the machine; shares of one GPU are not counted apart */
    uint32_t mem_mib;     /* of each */
    uint32_t replicas;    /* shares of each GPU; 1: not shared */
    uint8_t sharing, mig; /* enum gpu_sharing, gpu_mig */
    bool mig_capable;
};

struct kube_node {
    const char *name, *uid;
    const char *pool, *net_switch, *stage;
    struct kube_label *labels;
    struct kube_taint *taints;
    uint16_t n_labels, n_taints;
    uint8_t ready; /* enum kube_ready */
    bool unschedulable, deleting;
    int64_t ready_since_ms, created_ms;
    struct kube_amounts there; /* allocatable */
    struct kube_gpu gpu;
};

/* `switch_label` names the label that says which switch a node is at; NULL: its rack.  The caller
 * frees what is returned with free; NULL: it is no node, or not one we can keep. */
struct kube_node *kube_node_read(const struct json *node, const char *switch_label, struct err *e);

const char *kube_node_label(const struct kube_node *n, const char *key); /* NULL when not there */

#endif
