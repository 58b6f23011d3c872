/* pod_read - a v1 Pod into what is kept of it: one allocation, no document.
 *
 * Texts are never NULL; what a pod does not say is "".  Times are ms since 1970, 0 where there is
 * none.  What it asks for is counted as the Kubernetes scheduler counts it.
 */
#ifndef NS_ENGINE_KUBE_POD_READ_H
#define NS_ENGINE_KUBE_POD_READ_H

#include "engine/engine.h"
#include "engine/kube/amounts.h"
#include "engine/kube/gang.h"
#include "engine/kube/where.h"

#define POD_FINALIZER "nightshift.dev/exit" /* held until its end is written down */
#define POD_PROSE_MAX 512                   /* of a message that is kept */

/* Labels, else annotations, nightshift.dev/NAME. */
#define POD_OWNS(X)                                                                                \
    X(JOB, "job")                                                                                  \
    X(RUN, "run")                                                                                  \
    X(REPLICA, "replica")                                                                          \
    X(TENANT, "tenant")                                                                            \
    X(USER, "user")                                                                                \
    X(DAEMON, "daemon")                                                                            \
    X(SPEC, "spec")                                                                                \
    X(PRIORITY, "priority")                                                                        \
    X(MAX_TIME, "max-time")                                                                        \
    X(PREEMPTIBLE, "preemptible")
enum pod_own {
#define X(id, name) POD_OWN_##id,
    POD_OWNS(X)
#undef X
    POD_OWN_COUNT
};

#define POD_PHASES(X)                                                                              \
    X(UNKNOWN, "Unknown")                                                                          \
    X(PENDING, "Pending")                                                                          \
    X(RUNNING, "Running")                                                                          \
    X(SUCCEEDED, "Succeeded")                                                                      \
    X(FAILED, "Failed")
enum pod_phase {
#define X(id, name) POD_##id,
    POD_PHASES(X)
#undef X
    POD_PHASE_COUNT
};
const char *pod_phase_name(enum pod_phase p);

#define RESTART_POLICIES(X)                                                                        \
    X(ALWAYS, "Always")                                                                            \
    X(ON_FAILURE, "OnFailure")                                                                     \
    X(NEVER, "Never")
enum restart_policy {
#define X(id, name) RESTART_##id,
    RESTART_POLICIES(X)
#undef X
    RESTART_POLICY_COUNT
};

/* How its containers stand: the state of the one that decides.  Before all have begun that is the
 * init container it hangs at, or one that cannot start; later one that runs; at the end the one
 * that failed first, else the last to end. */
enum stand_kind {
    STAND_NONE,    /* nobody has begun with it */
    STAND_WAITING, /* reason: ContainerCreating, ErrImagePull … */
    STAND_RUNNING,
    STAND_ENDED
};
struct kube_stand {
    const char *container;
    const char *reason, *message; /* of waiting or of the end: "OOMKilled" */
    int64_t started_ms, finished_ms;
    int32_t exit_code, signal; /* when has_exit; in a restart's wait, those of the run before */
    uint32_t restarts;
    uint8_t kind; /* enum stand_kind */
    bool init;    /* it is an init container */
    bool stuck;   /* it waits for something that does not come by waiting: a bad image, a secret */
    bool has_exit;
};

struct kube_owner {
    const char *api_version, *kind, *name, *uid;
};

struct kube_port {
    const char *ip; /* "": every address */
    uint16_t port;
    char protocol; /* 'T' TCP, 'U' UDP, 'S' SCTP */
};

struct kube_condition {
    const char *reason, *message;
    bool known, yes;
};

struct kube_pod {
    const char *ns, *name, *uid;
    const char *node, *nominated_node; /* "": none yet */
    const char *scheduler, *priority_class, *ip;
    const char *own[POD_OWN_COUNT];
    const char *reason, *message; /* of the pod itself: "Evicted", "DeadlineExceeded" */
    const char *disruption;       /* why something other than its program ends it, when told */
    const char *refusal;          /* why we place it nowhere, a sentence; "": nothing */
    struct kube_owner owner;      /* its controller */
    struct gang_ref gang;
    struct kube_amounts asks;
    struct kube_port *ports;   /* of the host; sorted, each once */
    const char **claims;       /* names of volume claims in its namespace; sorted, each once */
    const struct where *where; /* NULL: asks nothing of a node */
    struct kube_condition scheduled;
    struct kube_stand stand;
    int64_t created_ms;
    int64_t deletion_ms; /* when its grace is over; 0: nobody deletes it */
    int64_t started_ms;  /* when the kubelet saw it first */
    int64_t grace_ms;    /* what it gets between being told to stop and being killed */
    int64_t deadline_ms; /* so long after its start it is ended; 0: never */
    int32_t priority;
    uint16_t n_ports, n_claims;
    uint8_t phase, restart; /* enum pod_phase, restart_policy */
    bool gated;             /* its scheduling gates are not all open */
    bool has_finalizer;     /* POD_FINALIZER */
    bool ready;
};

/* The caller frees what is returned with free; NULL: it is no pod, or not one we can keep. */
struct kube_pod *kube_pod_read(const struct json *pod, struct err *e);

/* Which of our tasks it is; false: it is none, by its labels. */
bool kube_pod_task(const struct kube_pod *p, struct task_id *out);

/* Both use one port of the host. */
bool kube_pods_clash(const struct kube_pod *a, const struct kube_pod *b);

#endif
