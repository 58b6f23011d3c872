/* devices - extended resources as the core counts devices (core/device.h): slices of GPUs, shared GPUs, network
 * cards, whatever a device plugin names.
 *
 * The resource that the site calls its GPU is none of them, but on machines that give out more of it than a
 * machine may have GPUs: those share each GPU among many.  Hugepages are not counted by anybody here.
 */
#ifndef NS_ENGINE_KUBE_DEVICES_H
#define NS_ENGINE_KUBE_DEVICES_H

#include "base/buf.h"
#include "engine/kube/node_read.h"

#define DEVICES_TEXT_MAX 4096u /* bytes of a list of them, as a journal has it */

/* What pods of others take of a name on a machine. */
struct taken {
    uint64_t hash, n;
};
struct takens {
    struct taken *at;
    size_t n, cap;
};
void takens_move(struct takens *t, struct str name, uint64_t n, bool add);
uint64_t takens_count(const struct takens *t, struct str name);

/* Does it give out more of `gpu` than one machine may have GPUs? */
bool node_shares_gpus(const struct kube_node *n, const char *gpu);

/* What one of `name` is worth on this machine, in thousandths of a GPU; 0: it is no GPU, nor a part of one. */
uint32_t node_device_worth(const struct kube_node *n, const char *name);

/* What the machine has, less what is taken; `gpus_taken` of `gpu`.  Of more kinds than the core takes, those that
 * are worth something stay. */
void node_devices(const struct kube_node *n, const char *gpu, uint64_t gpus_taken,
                  const struct takens *t, struct buf *out);

/* What a pod asks for.  -1: more, or something else, than is counted here, with the reason; `out` has what is. */
int pod_devices(const struct kube_amounts *asks, const char *gpu, struct buf *out, struct err *e)
    MUST_USE;

/* The larger count of each, of both. */
void devices_join(struct str a, struct str b, struct buf *out);

#endif
