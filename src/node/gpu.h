/* gpu - the GPUs of this machine as a list of plain values: real ones, or simulated ones.
 *
 * A simulated GPU has a UUID that begins with "SIM-" and says so in its flag, so nobody takes it
 * for a real one; no device belongs to it.
 * Link groups: GPUs that reach each other over NVLink are one group.  Where there is no NVLink, those
 * of one NUMA node are; where nothing is known, all are.  Groups are numbered from 0 in the order
 * of the list.
 */
#ifndef NS_NODE_GPU_H
#define NS_NODE_GPU_H

#include "node/nvml.h"

#define GPU_LIST_MAX 64 /* GPUs of one machine */

struct gpu_info {
    uint32_t index; /* in NVML's order, from 0 */
    int32_t minor;  /* of /dev/nvidia<minor>; -1: it has no such device (simulated, WSL2) */
    char uuid[96];
    char name[96];  /* as the driver says: "NVIDIA A100-SXM4-80GB" */
    char model[64]; /* as people type it: "A100-80GB" */
    uint32_t mem_mib;
    char pci[24]; /* may be empty */
    uint8_t link_group;
    bool simulated, mig;
};

struct gpu_list {
    struct gpu_info gpu[GPU_LIST_MAX];
    uint32_t n;
    uint32_t n_broken; /* GPUs that the driver has and cannot use; not in the list */
    struct err broken; /* what is wrong with the first of them */
};

/* One that is broken does not hide the others. */
int gpu_list_read(struct nvml *n, struct gpu_list *out, struct err *e) MUST_USE;

/* `host` makes the UUIDs differ between machines and stay the same on one. */
struct gpu_sim {
    uint32_t count;
    const char *model; /* as people type it */
    uint32_t mem_mib;
    uint32_t link_size; /* GPUs of one link group; 0: all */
};
int gpu_list_simulate(const struct gpu_sim *want, const char *host, struct gpu_list *out,
                      struct err *e) MUST_USE;

/* "NVIDIA GeForce RTX 4090" -> "RTX4090".  Vendor and form-factor words go, what tells two models
 * apart stays; blanks become '-'.  Never empty. */
const char *gpu_model(const char *name, char out[static 64]);

#endif
