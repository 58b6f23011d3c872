/* probe - everything the keeper tells about its machine, in one call.
 *
 * A machine without a driver is a machine without GPUs, and that is no failure; a driver that is
 * there and does not work is reported in `gpu_trouble`, and the machine is used without GPUs.
 * Blocks as nvml_open does.
 */
#ifndef NS_NODE_PROBE_H
#define NS_NODE_PROBE_H

#include "node/gpu.h"
#include "node/machine.h"

/* What was asked for on the command line; zero everywhere: what there is. */
struct node_want {
    const char *name;         /* NULL: the host name */
    uint32_t cpu_milli;       /* 0: what there is */
    uint64_t mem_mib;         /* 0: what there is */
    bool no_gpus;             /* do not look for GPUs */
    struct gpu_sim simulated; /* count > 0: instead of real GPUs */
    const char *nvml_path;    /* NULL: searched */
    const char *root;         /* NULL: "/" */
};

struct node_facts {
    char name[65];
    struct machine machine; /* what there is */
    uint32_t cpu_milli;     /* what may be given to jobs */
    uint64_t mem_mib;
    struct gpu_list gpus;
    bool simulated;         /* its GPUs are */
    char driver[96];        /* version; empty without one */
    enum nvml_fault fault;  /* of the driver; NVML_NO_LIBRARY is an ordinary machine without GPUs */
    struct err gpu_trouble; /* code ERR_NONE: none; else what is wrong and what to do */
};

int node_probe(const struct node_want *want, struct node_facts *out, struct err *e) MUST_USE;

#endif
