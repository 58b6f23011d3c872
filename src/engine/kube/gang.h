/* gang - which pods start together, and how many it takes.
 *
 * A pod says which gang it belongs to in one of many ways; they are a table here, and the first that
 * applies counts.  How many it takes at least stands on the pod or in an object that its operator
 * made, which is then the better word: gang_size_read reads it.  Operators that create some pods
 * only when others are ready are counted without those, or they would wait for each other.
 * A pod that says nothing is a gang of one.
 */
#ifndef NS_ENGINE_KUBE_GANG_H
#define NS_ENGINE_KUBE_GANG_H

#include "engine/kube/doc.h"
#include "engine/kube/pack.h"

#define GANG_KINDS(X)                                                                              \
    X(ONE, "pod")            /* alone; nothing else of the id is set */                            \
    X(OWN, "annotated")      /* nightshift.dev/gang, or -size with an owner */                     \
    X(NATIVE, "native")      /* spec.schedulingGroup */                                            \
    X(WORKLOAD, "workload")  /* spec.workloadRef */                                                \
    X(POD_GROUP, "podgroup") /* scheduling.x-k8s.io */                                             \
    X(VOLCANO, "volcano")                                                                          \
    X(TRAINING, "training") /* Kubeflow */                                                         \
    X(JOB_SET, "jobset")                                                                           \
    X(LEADER_WORKER, "leaderworkerset")                                                            \
    X(RAY, "ray")                                                                                  \
    X(JOB, "job") /* batch, only when annotated */
enum gang_kind {
#define X(id, name) GANG_##id,
    GANG_KINDS(X)
#undef X
    GANG_KIND_COUNT
};
const char *gang_kind_name(enum gang_kind k);

/* Objects that tell a size: group and version, kind, plural. */
#define GANG_OBJECTS(X)                                                                            \
    X(NONE, "", "", "")                                                                            \
    X(POD_GROUP, "scheduling.x-k8s.io/v1alpha1", "PodGroup", "podgroups")                          \
    X(VOLCANO_GROUP, "scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups")                     \
    X(NATIVE_GROUP, "scheduling.k8s.io/v1alpha2", "PodGroup", "podgroups")                         \
    X(WORKLOAD, "scheduling.k8s.io/v1alpha1", "Workload", "workloads")                             \
    X(PYTORCH_JOB, "kubeflow.org/v1", "PyTorchJob", "pytorchjobs")                                 \
    X(TF_JOB, "kubeflow.org/v1", "TFJob", "tfjobs")                                                \
    X(XGBOOST_JOB, "kubeflow.org/v1", "XGBoostJob", "xgboostjobs")                                 \
    X(PADDLE_JOB, "kubeflow.org/v1", "PaddleJob", "paddlejobs")                                    \
    X(JAX_JOB, "kubeflow.org/v1", "JAXJob", "jaxjobs")                                             \
    X(MPI_JOB, "kubeflow.org/v2beta1", "MPIJob", "mpijobs")                                        \
    X(JOB_SET, "jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets")                                    \
    X(LEADER_WORKER_SET, "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets")     \
    X(RAY_CLUSTER, "ray.io/v1", "RayCluster", "rayclusters")                                       \
    X(JOB, "batch/v1", "Job", "jobs")
enum gang_object {
#define X(id, api, kind, plural) GANG_OBJ_##id,
    GANG_OBJECTS(X)
#undef X
    GANG_OBJECT_COUNT
};
struct gang_object_info {
    const char *api_version, *kind, *plural;
};
const struct gang_object_info *gang_object_info(enum gang_object o);

/* Texts are never NULL.  uid is that of the object where the pod says it, else "". */
struct gang_id {
    enum gang_kind kind;
    const char *ns, *name;
    const char *part; /* of what has several gangs under one name: a group, an attempt */
    const char *uid;
};

struct gang_ref {
    struct gang_id id;
    enum gang_object object; /* has the last word on the size; NONE: nothing has */
    uint32_t min;            /* what the pod says; 0: nothing */
};

/* -1: its annotations make no sense, with the sentence for its user; *out is then a gang of one.
 * Texts are borrowed from the document or lie in `a`. */
int gang_of_pod(struct doc *d, const struct json *pod, struct arena *a, struct gang_ref *out,
                struct err *e) MUST_USE;
void gang_ref_pack(struct gang_ref *g, struct pack *k);

/* The same for all members, whether or not they know the uid; adds to *out. */
void gang_key(const struct gang_id *id, struct buf *out);

struct gang_size {
    const char *ns, *name, *uid; /* of the object; borrowed from the document */
    uint32_t min;                /* at least 1 */
};

/* `part` as in gang_id; only a workload has gangs of different sizes. */
int gang_size_read(enum gang_object what, const struct json *object, const char *part,
                   struct gang_size *out, struct err *e) MUST_USE;

#endif
