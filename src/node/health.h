/* health - when a machine should take no more jobs: a table of rules over what was measured.
 *
 * A finding stays as long as its cause does; an XID stays until the agent is started anew, since the driver
 * tells each once.  What a finding means for jobs is decided elsewhere: a rule that drains says only
 * that new work would likely fail here.  Pure.
 */
#ifndef NS_NODE_HEALTH_H
#define NS_NODE_HEALTH_H

#include "node/nvml.h"
#include "wire/report.h"

/* id, name, drains, what it means */
#define HEALTH_RULES(X)                                                                            \
    X(GPU_LOST, "gpu_lost", true, "a GPU does not answer on the PCI bus any more")                 \
    X(GPU_RESET, "gpu_reset", true, "a GPU must be reset before it works again")                   \
    X(XID, "xid", true, "the driver reported an error after which a GPU cannot be trusted")        \
    X(ECC, "ecc", true, "the memory of a GPU had an error that could not be corrected")            \
    X(HOT, "too_hot", true, "a GPU slows itself down because it is too hot, for a minute or more") \
    X(DISK, "disk_full", true, "the disk that has the state folder is nearly full")                \
    X(MISMATCH, "driver_mismatch", true, "the driver was updated under the running system")        \
    X(DRIVER, "driver", true, "the driver is there and does not work")                             \
    X(HANGS, "driver_hangs", true, "the driver has not answered for a while")
enum health_rule {
#define X(id, name, drains, help) HEALTH_##id,
    HEALTH_RULES(X)
#undef X
    HEALTH_RULE_COUNT
};
const char *health_rule_name(enum health_rule r);
const char *health_rule_help(enum health_rule r);
bool health_rule_drains(struct str name); /* one that is not known does */

#define HEALTH_HOT_MS 60000
#define HEALTH_DISK_FREE_PERMILLE                                                                  \
    20 /* below it, and below HEALTH_DISK_FREE_MIB, it is nearly full */
#define HEALTH_DISK_FREE_MIB 2048

/* What the rules remember of a GPU between samples. */
struct health_gpu {
    int64_t hot_since_ms; /* 0: it is not */
    uint64_t xid;         /* the last that counts; 0: none */
};
struct health {
    struct health_gpu gpu[REPORT_GPUS_MAX];
};

/* Does an error of this number mean that the GPU, not the program on it, is broken? */
bool health_xid_counts(uint64_t xid, const char **out_what);

/* Facts that are not in the sample. */
struct health_facts {
    enum nvml_fault driver; /* why there is no driver; NVML_NO_LIBRARY is an ordinary machine */
    struct err driver_why;
    struct err
        broken; /* GPUs that the driver could not use from the beginning; code ERR_NONE: none */
    enum nvml_fault gpu[REPORT_GPUS_MAX]; /* why a GPU gave no sample */
};

/* Adds to s->finding what is wrong. */
void health_check(struct health *h, const struct report_head *head, const struct health_facts *f,
                  struct report_sample *s);
void health_add(struct report_sample *s, enum health_rule r, int32_t gpu, const char *text);

#endif
