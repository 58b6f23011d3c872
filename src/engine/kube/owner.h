/* owner - objects of others that can be suspended: which they are, how they stand, and the patch that suspends one or
 * lets it go on.
 *
 * Pure.  We note in an annotation that it was us: what its user has suspended is never ours to wake.
 */
#ifndef NS_ENGINE_KUBE_OWNER_H
#define NS_ENGINE_KUBE_OWNER_H

#include "engine/kube/gang.h"

#define OWNER_SUSPENDED_BY "nightshift.dev/suspended-by" /* the daemon's id */

/* gang, the object that it is, group and version, plural, the folder of `suspend` below spec ("": none) */
#define OWNER_KINDS(X)                                                                             \
    X(JOB, JOB, "batch/v1", "jobs", "")                                                            \
    X(JOB_SET, JOB_SET, "jobset.x-k8s.io/v1alpha2", "jobsets", "")                                 \
    X(TRAINING, PYTORCH_JOB, "kubeflow.org/v1", "pytorchjobs", "runPolicy")                        \
    X(TRAINING, TF_JOB, "kubeflow.org/v1", "tfjobs", "runPolicy")                                  \
    X(TRAINING, XGBOOST_JOB, "kubeflow.org/v1", "xgboostjobs", "runPolicy")                        \
    X(TRAINING, PADDLE_JOB, "kubeflow.org/v1", "paddlejobs", "runPolicy")                          \
    X(TRAINING, JAX_JOB, "kubeflow.org/v1", "jaxjobs", "runPolicy")                                \
    X(TRAINING, MPI_JOB, "kubeflow.org/v2beta1", "mpijobs", "runPolicy")                           \
    X(TRAINING, MPI_JOB, "kubeflow.org/v1", "mpijobs", "runPolicy")                                \
    X(RAY, RAY_CLUSTER, "ray.io/v1", "rayclusters", "")

struct owner_kind {
    enum gang_kind gang;
    enum gang_object object;
    const char *api_version, *plural, *folder;
};

/* The first (after NULL) or next that such a gang may belong to; NULL: there are no more.  With GANG_OBJ_NONE the object
 * is not known: a gang's name does not tell it. */
const struct owner_kind *owner_kind_next(enum gang_kind gang, enum gang_object object,
                                         const struct owner_kind *after);

/* Texts are borrowed from the document. */
struct owner {
    const char *version;      /* of the object: a patch names it, so that it meets what was read */
    const char *suspended_by; /* "": by its user, when it is */
    bool suspended;
    bool over;       /* it has finished, or is being removed */
    bool controlled; /* by another object, which would undo what we change */
    uint32_t comes;  /* so many pods, when it goes on; 0: it does not say */
};
int owner_read(const struct owner_kind *kind, const struct json *object, struct owner *out,
               struct err *e) MUST_USE;

/* A merge patch: suspended by `by`, or let go on when that is NULL. */
void owner_patch(const struct owner_kind *kind, const struct owner *o, const char *by,
                 struct buf *out);

#endif
