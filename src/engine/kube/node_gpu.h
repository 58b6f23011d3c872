/* node_gpu - which GPUs a node has, from the labels that vendors' feature discovery puts there. */
#ifndef NS_ENGINE_KUBE_NODE_GPU_H
#define NS_ENGINE_KUBE_NODE_GPU_H

#include "engine/kube/node_read.h"

/* Reads labels and allocatable of *n; texts lie there or in `a`. */
struct kube_gpu node_gpu_of(const struct kube_node *n, struct arena *a);

#endif
