/* podres - what the kubelet answers on its pod-resources socket (v1): which container has which device.
 *
 * List gives every device of every container, one call each; GetAllocatableResources those that pods can be
 * given.  Names are checked: they are what Kubernetes lets a name be, so they have no blank and no slash.
 * Fields of later versions are passed over.  Reads only; texts are those of the message.  Pure.
 */
#ifndef NS_WIRE_PODRES_H
#define NS_WIRE_PODRES_H

#include "base/err.h"
#include "base/str.h"

#define PODRES_BYTES_MAX (4u << 20) /* of an answer */
#define PODRES_NAME_MAX 253         /* of a pod; namespaces and containers have 63 */
#define PODRES_DEVICE_MAX 127

struct podres_device {
    struct str space, pod, container; /* empty: of no pod */
    struct str resource;              /* "nvidia.com/gpu" */
    struct str id;                    /* "GPU-…", "MIG-…", as the device plugin calls it */
};

struct podres_counts {
    uint64_t pods, containers, devices;
};

typedef void podres_fn(void *ctx, const struct podres_device *d);

int podres_list(struct str message, podres_fn *fn, void *ctx, struct podres_counts *out,
                struct err *e) MUST_USE;
int podres_allocatable(struct str message, podres_fn *fn, void *ctx, struct podres_counts *out,
                       struct err *e) MUST_USE;

#endif
