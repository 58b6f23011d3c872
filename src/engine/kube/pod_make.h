/* pod_make - the documents of a job of ours: its pods, their binding, the service of a gang.
 *
 * Pure: from what is to be started to JSON.  A task's pod has a name of its own, so that making it
 * twice is refused by the server, and carries all that is needed to know it again: whose task it is,
 * and what the job's spec was.
 */
#ifndef NS_ENGINE_KUBE_POD_MAKE_H
#define NS_ENGINE_KUBE_POD_MAKE_H

#include "base/buf.h"
#include "engine/engine.h"

#define POD_LABEL_JOB "nightshift.dev/job"
#define POD_CONTAINER "job"
#define POD_DIR "/nightshift"
#define POD_INIT POD_DIR "/init"
#define POD_TASK_DIR POD_DIR "/task"
#define POD_STATE_DIR POD_DIR "/state"
#define POD_NAME_MAX 64

/* What is the same for all pods here.  Texts are never NULL; "" where nothing was set. */
struct pod_site {
    const char *scheduler;   /* ours */
    const char *image;       /* of jobs that name none */
    const char *init_image;  /* where nightshift-init is, */
    const char *init_path;   /* and as what */
    const char *gpu;         /* what a GPU is called: nvidia.com/gpu */
    const char *state_size;  /* of what a job saves; "": nothing is kept */
    const char *state_class; /* storage class; "": the cluster's own */
    const char *home_size;   /* of a user's home; "": it is gone with the pod */
    const char *home_access; /* ReadWriteOnce, ReadWriteMany */
    const char *daemon;      /* whose pods they are: see pods.c */
    uint32_t scratch_mib;    /* of a job that does not say */
};

/* "nightshift-17-1-0" */
const char *pod_name(struct task_id t, char out[static POD_NAME_MAX]);
/* "nightshift-17": the service of a gang, and what its saved state is called */
const char *pod_job_name(uint64_t job, char out[static POD_NAME_MAX]);
const char *pod_home_name(struct str user, char out[static POD_NAME_MAX]);

/* -1 names the field that no pod can have. */
int pod_check(const struct pod_site *site, const struct spec *s, struct err *e) MUST_USE;

bool pod_keeps_state(const struct pod_site *site, const struct spec *s);

void pod_make(const struct pod_site *site, const struct engine_start *s, const char *space,
              struct buf *out);
/* Its annotations become the pod's: so whoever looks at a bound pod knows whose it is. */
struct pod_binding {
    const char *space, *pod, *uid;
    struct str node;
    struct task_id task;
};
void pod_make_binding(const struct pod_binding *b, struct buf *out);
void pod_make_service(uint64_t job, const char *space, struct buf *out);
/* A claim for what a job saves, or for a home. */
struct pod_claim {
    const char *space, *name, *size, *storage_class, *access;
};
void pod_make_claim(const struct pod_claim *c, struct buf *out);

#endif
