/* pod_stand - how a pod's containers stand, from what the kubelet reports. */
#ifndef NS_ENGINE_KUBE_POD_STAND_H
#define NS_ENGINE_KUBE_POD_STAND_H

#include "engine/kube/pod_read.h"

struct kube_stand pod_stand(struct doc *d, const struct json *pod, enum pod_phase phase,
                            struct arena *a);

#endif
