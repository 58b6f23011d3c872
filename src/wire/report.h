/* report - what a node's agent tells the control plane: samples of a machine, as lines of text.
 *
 *   nightshift-report 2
 *   from pc1 7c8a…-boot 17 1 0.1.0    node, boot, number of the batch, 1: its GPUs are simulated, version
 *   gpu 0 GPU-6c… 81920 400000 NVIDIA A100-SXM4-80GB
 *   s 1763400000000                   a sample: when
 *   n 1500 16000 …                    the machine, in the order of REPORT_NODE_VALUES
 *   g 0 970 410 …                     a GPU, in the order of REPORT_GPU_VALUES
 *   p 0 17.1.0 600 40000 2            a part of it: whose, thousandths, MiB, processes
 *   k 12 14 2 8                       the kubelet's pods, containers, devices given, devices there are
 *   D                                 what the kubelet gave away from here on
 *   d 0 GPU-6c… 17.1.0 ours/nightshift-17-1-0/job
 *   O                                 the owner's hold from here on: none, or one
 *   o 1763400000000 - pc1 I need it   since, until, by whom, why
 *   A                                 answers to commands from here on
 *   a 7 1 paused                      its number, 1: done, what is said of it
 *   T                                 the tasks from here on
 *   t 17.1.0 1200 …                   in the order of REPORT_TASK_VALUES
 *   H                                 what is wrong from here on
 *   h gpu_lost 3 GPU 3: it does not answer …
 *
 * A group (n; g with its p; k; D, O, A, T and H with theirs) that is as in the sample before is left
 * out, so an idle machine costs a line a second.  Each batch stands alone: its first sample has every group.
 * Numbers are integers; REPORT_UNKNOWN is "-".  Whose: a task, a pod ("namespace/pod/container"), `other`
 * (processes of neither) or `unknown` (the driver does not tell); what is left up to 1000 is idle.
 * Version 1 had no k, D, O and A; it is still read.
 * Reading checks everything and writes nothing outside the caller's sample.  Pure.
 */
#ifndef NS_WIRE_REPORT_H
#define NS_WIRE_REPORT_H

#include "base/buf.h"

#define REPORT_BYTES_MAX (1u << 20) /* of a batch */
#define REPORT_SAMPLES_MAX 3600u    /* of a batch */
#define REPORT_GPUS_MAX 64u
#define REPORT_PARTS_MAX 256u
#define REPORT_TASKS_MAX 256u
#define REPORT_FINDINGS_MAX 32u
#define REPORT_GIVEN_MAX 256u
#define REPORT_ACKS_MAX 32u
#define REPORT_WHO_MAX 384u /* namespace (63), pod (253) and container (63) */
#define REPORT_UNKNOWN (-1)
#define REPORT_VALUE_MAX (INT64_C(1) << 53)
#define REPORT_OTHER "other"      /* processes that belong to no task */
#define REPORT_NOT_TOLD "unknown" /* used, and the driver does not say by whom */

/* id, name; an instant each, or what it was on average since the sample before */
#define REPORT_NODE_VALUES(X)                                                                      \
    X(CPU, "cpu_milli")         /* processors that were busy, in thousandths */                    \
    X(CPUS, "cpus_milli")       /* that there are */                                               \
    X(MEM_USED, "mem_used_mib") /* without what the kernel would give up */                        \
    X(MEM, "mem_mib")                                                                              \
    X(DISK_USED, "disk_used_mib") /* of the file system that has the state folder */               \
    X(DISK, "disk_mib")                                                                            \
    X(READ, "read_bytes_s") /* of its disks */                                                     \
    X(WRITE, "write_bytes_s")                                                                      \
    X(RX, "rx_bytes_s") /* of its network cards */                                                 \
    X(TX, "tx_bytes_s")

#define REPORT_GPU_VALUES(X)                                                                       \
    X(UTIL, "util_permille")                                                                       \
    X(MEM_UTIL, "mem_util_permille") /* of the memory's bandwidth */                               \
    X(MEM_USED, "mem_used_mib")                                                                    \
    X(POWER, "power_mw")                                                                           \
    X(TEMP, "temp_c")                                                                              \
    X(SM_CLOCK, "sm_mhz")                                                                          \
    X(MEM_CLOCK, "mem_mhz")                                                                        \
    X(THROTTLE, "throttle") /* bits of nvml_throttle_name */                                       \
    X(ECC_CORRECTED, "ecc_corrected")                                                              \
    X(ECC_UNCORRECTED, "ecc_uncorrected")                                                          \
    X(XID, "xid") /* the last one; 0: none since the agent was started */

#define REPORT_TASK_VALUES(X)                                                                      \
    X(CPU, "cpu_milli")                                                                            \
    X(MEM, "mem_mib")                                                                              \
    X(READ, "read_bytes_s")                                                                        \
    X(WRITE, "write_bytes_s")                                                                      \
    X(RX, "rx_bytes_s")                                                                            \
    X(TX, "tx_bytes_s")                                                                            \
    X(PROCESSES, "processes")

#define X(id, name) REPORT_NODE_##id,
enum report_node_value {
    REPORT_NODE_VALUES(X) REPORT_NODE_COUNT
};
#undef X
#define X(id, name) REPORT_GPU_##id,
enum report_gpu_value {
    REPORT_GPU_VALUES(X) REPORT_GPU_COUNT
};
#undef X
#define X(id, name) REPORT_TASK_##id,
enum report_task_value {
    REPORT_TASK_VALUES(X) REPORT_TASK_COUNT
};
#undef X
const char *report_node_value_name(enum report_node_value v);
const char *report_gpu_value_name(enum report_gpu_value v);
const char *report_task_value_name(enum report_task_value v);

/* What does not change while the agent runs. */
struct report_gpu {
    uint32_t index;
    int64_t mem_mib, power_limit_mw;
    char uuid[96], name[96];
};

struct report_head {
    char node[65], boot[40], version[24];
    uint64_t number; /* of the batch: 1, 2, … since the agent was started */
    bool simulated;  /* its GPUs are */
    struct report_gpu gpu[REPORT_GPUS_MAX];
    uint32_t gpus;
};

struct report_part {
    uint32_t gpu;             /* place in the head's list */
    char who[REPORT_WHO_MAX]; /* "17.1.0", a pod, REPORT_OTHER or REPORT_NOT_TOLD */
    int64_t permille, mem_mib, processes;
};

struct report_task {
    char task[40];
    int64_t v[REPORT_TASK_COUNT];
};

struct report_finding {
    char rule[24];
    int32_t gpu; /* index, or -1: the machine */
    char text[200];
};

/* id, name; what the kubelet says of itself: all unknown where there is none */
#define REPORT_KUBELET_VALUES(X)                                                                   \
    X(PODS, "pods")                                                                                \
    X(CONTAINERS, "containers")                                                                    \
    X(GIVEN, "devices_given")                                                                      \
    X(DEVICES, "devices") /* that pods can be given */
#define X(id, name) REPORT_KUBELET_##id,
enum report_kubelet_value {
    REPORT_KUBELET_VALUES(X) REPORT_KUBELET_COUNT
};
#undef X
const char *report_kubelet_value_name(enum report_kubelet_value v);

/* A GPU, or a part of one, that the kubelet gave to a container. */
struct report_given {
    uint32_t gpu; /* place in the head's list */
    char device[128];
    char task[40]; /* of a pod that is a task; else empty */
    char pod[REPORT_WHO_MAX];
};

/* The machine's owner wants it. */
struct report_hold {
    int64_t since_ms,
        until_ms; /* since 0: there is none; until REPORT_UNKNOWN: until it is released */
    char by[40], reason[200];
};

struct report_ack {
    uint64_t id;
    bool done;
    char text[160];
};

struct report_sample {
    int64_t t_ms;
    int64_t node[REPORT_NODE_COUNT];
    int64_t gpu[REPORT_GPUS_MAX][REPORT_GPU_COUNT]; /* as in the head's list */
    struct report_part part[REPORT_PARTS_MAX];
    struct report_task task[REPORT_TASKS_MAX];
    struct report_finding finding[REPORT_FINDINGS_MAX];
    int64_t kubelet[REPORT_KUBELET_COUNT];
    struct report_given given[REPORT_GIVEN_MAX];
    struct report_hold hold;
    struct report_ack ack[REPORT_ACKS_MAX];
    uint32_t parts, tasks, findings, givens, acks;
};

struct report_head *report_head_new(void);
struct report_sample *report_sample_new(void); /* every value unknown, no lists */
void report_sample_copy(struct report_sample *to, const struct report_sample *from);

/* The first task's number of "17.1.0"; false for what is no task. */
bool report_who_job(const char *who, uint64_t *out_job);
/* The parts of "namespace/pod/container"; false for what is no pod. */
bool report_who_pod(const char *who, struct str *out_space, struct str *out_pod,
                    struct str *out_container);
/* What the kubelet gave a task of this GPU; NULL: nothing. */
const struct report_given *report_given_to(const struct report_sample *s, uint32_t gpu,
                                           const char *task);
/* The container that has a GPU alone; NULL: none, or several. */
const struct report_given *report_given_alone(const struct report_sample *s, uint32_t gpu);

/* ---- writing ---- */

struct report_writer;
struct report_writer *report_writer_new(void);
struct report_writer *report_writer_free(struct report_writer *w); /* NULL ok; returns NULL */
void report_writer_free_p(struct report_writer **w);
/* Begins a batch: out gets the head, and the next sample is written whole. */
void report_begin(struct report_writer *w, const struct report_head *h, struct buf *out);
void report_add(struct report_writer *w, const struct report_head *h, const struct report_sample *s,
                struct buf *out);

/* ---- reading ---- */

/* Called once for each sample, in order; what it gets lives until it returns. */
typedef void report_fn(void *ctx, const struct report_head *h, const struct report_sample *s);
/* An error names the line; samples before it were told.  head and sample are the caller's room. */
int report_read(struct str text, struct report_head *head, struct report_sample *sample,
                report_fn *fn, void *ctx, struct err *e) MUST_USE;

#endif
