/* pod_asks - what a pod needs of a node, as the Kubernetes scheduler adds it up.
 *
 * Containers run together and are added; init containers run one after another, so the largest
 * counts, each with the sidecars that were started before it.  What is said of the pod as a whole
 * replaces sums of CPU, memory and huge pages.  The overhead of its runtime comes on top.
 */
#ifndef NS_ENGINE_KUBE_POD_ASKS_H
#define NS_ENGINE_KUBE_POD_ASKS_H

#include "engine/kube/pod_read.h"

struct kube_amounts pod_asks(struct doc *d, const struct json *spec, struct arena *a);
bool pod_is_sidecar(struct doc *d, const struct json *init_container);

#endif
