/* machine - what this machine is, apart from its GPUs: processors, memory, kernel, cgroups, clock.
 *
 * CPUs and memory are what we may use, not what is built in: within the affinity mask, the CPU
 * quota and the memory limit of the cgroups we live in.
 * `root` is a folder that stands for "/" in tests; "" is the real one.
 */
#ifndef NS_NODE_MACHINE_H
#define NS_NODE_MACHINE_H

#include "base/err.h"

#define CGROUP_KINDS(X)                                                                            \
    X(NONE, "none")                                                                                \
    X(V1, "v1")                                                                                    \
    X(V2, "v2")                                                                                    \
    X(HYBRID, "hybrid") /* v1 controllers, and an empty v2 tree beside them */
enum cgroup_kind {
#define X(id, name) CGROUP_##id,
    CGROUP_KINDS(X)
#undef X
    CGROUP_KIND_COUNT
};
const char *cgroup_kind_name(enum cgroup_kind k);

struct machine {
    char host[65];    /* without its domain */
    char kernel[65];  /* "6.1.0-18-amd64" */
    char boot_id[37]; /* another one after each boot; empty when not known */
    uint32_t cpu_milli;
    uint64_t mem_mib;
    enum cgroup_kind cgroup;
    bool wsl; /* Windows' Linux: GPUs come through /dev/dxg */
    bool clock_synced;
    int64_t clock_error_ms; /* at most so far off, says the kernel; -1: not known */
};

int machine_read(const char *root, struct machine *out, struct err *e) MUST_USE;

/* Told to people: NULL when the clock can be relied on, else what is wrong with it. */
const char *machine_clock_trouble(const struct machine *m);

#endif
