/* kube - the engine for many machines: tasks are pods of a Kubernetes cluster.
 *
 * Jobs of ours become pods that we make and bind.  Pods of others that name our scheduler are observed,
 * placed and bound too; what runs there besides takes room away.  What is known of the cluster comes from
 * watches, and every verb is a request that may be repeated, so a lost connection loses nothing.
 */
#ifndef NS_ENGINE_KUBE_KUBE_H
#define NS_ENGINE_KUBE_KUBE_H

#include "engine/engine.h"
#include "engine/kube/pod_make.h"
#include "sys/log.h"
#include "sys/loop.h"

struct kube_config;

struct kube_engine_config {
    struct loop *loop;
    struct log *log;
    struct clock clock;
    const struct kube_config *server; /* taken over */
    struct pod_site site;             /* texts are copied */
    const char *space;                /* our own namespace, where the lease is */
    const char *prefix;               /* of tenants' namespaces */
    const char *user_prefix;          /* what the API server puts before people's names */
    const char *other_tenant;         /* of pods in namespaces that are no tenant's; "": refused */
    const char *state;                /* folder: logs of tasks are below it */
    const char *identity;             /* in the lease: who we are */
    uint64_t log_bytes;               /* of one task */
    int64_t lost_after_ms;            /* a node that is not ready for so long has lost its tasks */
    engine_sink_fn *sink;
    void *ctx;
};

/* NULL: see e. */
int engine_kube_new(const struct kube_engine_config *c, struct engine *out, struct err *e) MUST_USE;

#endif
