/* nvml - what the NVIDIA driver says about the GPUs: its library, opened when the program runs.
 *
 * Nothing is linked, so one build serves machines with and without GPUs, old drivers and new.  What
 * a driver does not offer is "not known" and no failure; a call fails only when the driver or the
 * GPU does.  The struct err then tells a person the way out, and the fault tells a program which of
 * the few cases it is.
 *
 * Calls may block: nvml_open takes 10 ms with the driver awake and seconds a GPU where persistence
 * mode is off; nvml_sample and nvml_processes take some ms a GPU; a GPU that hangs can hold any of
 * them for ever, in the kernel, where no signal helps.  Call them off the loop.  One thread at a
 * time.
 */
#ifndef NS_NODE_NVML_H
#define NS_NODE_NVML_H

#include "base/err.h"

struct nvml;

#define NVML_FAULTS(X)                                                                             \
    X(NONE, "none")                                                                                \
    X(NO_LIBRARY, "no_library")   /* no driver is installed */                                     \
    X(BAD_LIBRARY, "bad_library") /* it is there and cannot be used */                             \
    X(NO_DRIVER, "no_driver")     /* the kernel module is not loaded */                            \
    X(MISMATCH, "mismatch")       /* library and kernel module are of different versions */        \
    X(DENIED, "denied")                                                                            \
    X(LOST, "gpu_lost")   /* a GPU fell off the bus */                                             \
    X(RESET, "gpu_reset") /* a GPU must be reset before it works again */                          \
    X(OTHER, "other")
enum nvml_fault {
#define X(id, name) NVML_##id,
    NVML_FAULTS(X)
#undef X
    NVML_FAULT_COUNT
};
const char *nvml_fault_name(enum nvml_fault f);

#define NVML_UNKNOWN (-1) /* of any number below */

struct nvml_device {
    uint32_t index; /* NVML's order: by PCI address */
    char uuid[96], name[96];
    char pci[24];  /* "0000:3b:00.0"; empty when not known */
    int32_t minor; /* of /dev/nvidia<minor> */
    int64_t mem_mib;
    int32_t mig; /* 1: divided into MIG instances */
};

struct nvml_sample {
    int64_t gpu_percent, mem_percent;
    int64_t mem_used_mib,
        mem_total_mib; /* used: without what the driver itself holds, if it tells */
    int64_t power_mw, power_limit_mw;
    int64_t temperature_c;
    int64_t sm_mhz, mem_mhz;
    int64_t ecc_corrected, ecc_uncorrected; /* since the driver was loaded */
    int64_t throttle;                       /* bits of nvml_throttle_name */
};

struct nvml_process {
    int32_t pid;
    int64_t mem_mib;
    bool graphics; /* else compute */
};

/* What a process did on a GPU lately: an average over the driver's own stretch of time. */
struct nvml_process_load {
    int32_t pid;
    int64_t percent;
};

/* How two GPUs of a machine reach each other. */
struct nvml_link {
    int32_t nvlink;    /* 1: over NVLink, directly or through a switch */
    int32_t same_numa; /* 1: they hang on the same NUMA node */
};

/* `path` NULL: where the loader finds it, then where WSL2 has it.  *out_fault (may be NULL) is set
 * on failure. */
struct nvml *nvml_open(const char *path, enum nvml_fault *out_fault, struct err *e);
struct nvml *nvml_close(struct nvml *n); /* NULL ok; returns NULL */
void nvml_close_p(struct nvml **n);

const char *nvml_driver_version(const struct nvml *n);  /* "550.54.15"; empty when not known */
const char *nvml_library_version(const struct nvml *n); /* "12.550.54.15"; likewise */

/* A GPU is named by its index.  On failure *out_fault (may be NULL) says which case it is. */
int nvml_count(struct nvml *n, uint32_t *out, struct err *e) MUST_USE;
int nvml_device(struct nvml *n, uint32_t index, struct nvml_device *out, enum nvml_fault *out_fault,
                struct err *e) MUST_USE;
int nvml_sample(struct nvml *n, uint32_t index, struct nvml_sample *out, enum nvml_fault *out_fault,
                struct err *e) MUST_USE;
/* The UUID of the GPU that a MIG device ("MIG-…") is a part of; false: there is none, or nobody can say. */
bool nvml_mig_parent(struct nvml *n, const char *mig, char out[static 96]);
int nvml_link(struct nvml *n, uint32_t a, uint32_t b, struct nvml_link *out, struct err *e)
    MUST_USE;

/* At most `max` of them; *out_n is how many were written.  A pid is one of our own pid namespace. */
int nvml_processes(struct nvml *n, uint32_t index, struct nvml_process *out, size_t max,
                   size_t *out_n, struct err *e) MUST_USE;

/* Averages over what the driver has measured after since_us (of its own clock, since 1970).  told false: this
 * driver or GPU does not tell, and there are none. */
struct nvml_loads {
    struct nvml_process_load *v; /* the caller's room */
    size_t max, n;
    bool told;
};
int nvml_process_loads(struct nvml *n, uint32_t index, uint64_t since_us, struct nvml_loads *out,
                       struct err *e) MUST_USE;

/* Errors that the driver reports by number (XID).  The first call asks it to; what happened before is not
 * told.  true: *out_index and *out_xid are one that was not told before.  Does not wait. */
bool nvml_next_xid(struct nvml *n, uint32_t *out_index, uint64_t *out_xid);

/* What holds a GPU's clocks back, for the i-th lowest bit: "power cap"; NULL past the last. */
const char *nvml_throttle_name(unsigned bit);

#endif
