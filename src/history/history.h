/* history - what machines did: the last sample of each, and rings of averages on the disk.
 *
 *   <folder>/<node>.1s   an hour      <node>.1m   31 days      <node>.10m  62 days
 *            <node>.1h, <node>.1d   five years
 *   <folder>/<node>.json what is wrong with it, and why it is drained
 *   <folder>/.tasks      what the newest tasks used (trail.h)
 *
 * Bounded: a machine with eight GPUs takes 25 MiB in all, all tasks together 8 MiB, and no more ever.  Samples may come late, twice or
 * out of order; each counts once in the second, late ones are averaged in.  One thread.
 *
 * It also keeps what is wrong with a machine (findings), so that one cause drains it once: an operator who
 * lets it work again is not overruled by the next report of the same.
 */
#ifndef NS_HISTORY_HISTORY_H
#define NS_HISTORY_HISTORY_H

#include "base/arena.h"
#include "wire/report.h"

#define HISTORY_STALE_MS 15000 /* a machine that was not heard of for so long is silent */
#define HISTORY_NODES_MAX 4096
#define HISTORY_POINTS_MAX 5000 /* of a chart */

/* id, name, unit: columns of a machine */
#define HISTORY_NODE_COLUMNS(X)                                                                    \
    X(CPU, "cpu_milli")                                                                            \
    X(MEM, "mem_used_mib")                                                                         \
    X(DISK, "disk_used_mib")                                                                       \
    X(READ, "read_bytes_s")                                                                        \
    X(WRITE, "write_bytes_s")                                                                      \
    X(RX, "rx_bytes_s")                                                                            \
    X(TX, "tx_bytes_s")
/* and of each of its GPUs */
#define HISTORY_GPU_COLUMNS(X)                                                                     \
    X(UTIL, "util_permille")                                                                       \
    X(JOBS, "jobs_permille") /* of it by jobs; the rest is of others or not told */                \
    X(MEM, "mem_used_mib")                                                                         \
    X(POWER, "power_mw")                                                                           \
    X(TEMP, "temp_c")                                                                              \
    X(CLOCK, "sm_mhz")
#define X(id, name) HISTORY_NODE_##id,
enum history_node_column {
    HISTORY_NODE_COLUMNS(X) HISTORY_NODE_COUNT
};
#undef X
#define X(id, name) HISTORY_GPU_##id,
enum history_gpu_column {
    HISTORY_GPU_COLUMNS(X) HISTORY_GPU_COUNT
};
#undef X
/* and of a task */
#define HISTORY_TASK_COLUMNS(X)                                                                    \
    X(CPU, "cpu_milli")                                                                            \
    X(MEM, "mem_mib")                                                                              \
    X(GPU, "gpu_permille") /* its part of all its GPUs together */                                 \
    X(GPU_MEM, "gpu_mem_mib")
#define X(id, name) HISTORY_TASK_##id,
enum history_task_column {
    HISTORY_TASK_COLUMNS(X) HISTORY_TASK_COUNT
};
#undef X
const char *history_node_column_name(enum history_node_column c);
const char *history_gpu_column_name(enum history_gpu_column c);

struct history;

/* folder NULL: nothing is kept on the disk. */
struct history *history_open(const char *folder, struct err *e);
struct history *history_close(struct history *h); /* NULL ok; returns NULL */

/* What is wrong with a machine. */
struct history_finding {
    struct report_finding is;
    int64_t since_ms;
    bool drained; /* it has drained the machine, or was there when an operator let it work */
};

struct history_node {
    const char *name;
    const struct report_head *head;
    const struct report_sample *last;
    int64_t heard_ms;             /* when, by our clock */
    const int64_t *idle_since_ms; /* of each GPU; 0: it works */
    const struct history_finding *finding;
    size_t findings;
    const char *reason; /* why it is drained; empty: not said */
    uint64_t samples;
};

/* A batch, checked and taken whole or not at all; `node` is who says so. */
int history_take(struct history *h, struct str node, struct str text, int64_t now_ms,
                 uint64_t *out_number, struct err *e) MUST_USE;
bool history_find(const struct history *h, struct str node, struct history_node *out);
bool history_at(const struct history *h, size_t i, struct history_node *out);

/* The first finding that drains and has not drained yet; NULL: none.  Valid until the next change. */
const struct history_finding *history_undrained(const struct history *h, struct str node);
/* The machine was drained for this reason: every finding of now has drained it.  Empty: it works again. */
void history_set_reason(struct history *h, struct str node, struct str reason);

/* What is wrong with a machine, or with these of its GPUs (bits by index), in words; false: nothing. */
bool history_trouble(const struct history *h, struct str node, uint64_t gpu_mask, struct buf *out);

/* ---- charts ---- */

struct history_ask {
    int64_t from_ms, to_ms, step_ms; /* step: at least; a ring's own when that is longer */
};
struct history_chart {
    int64_t from_ms, step_ms;
    size_t points;
    uint32_t gpus;
    const float *v; /* [column][point]; columns of the machine, then of each GPU; NAN: not known */
};
/* Of a machine that is not known: no GPUs, no points.  Lives in the arena. */
int history_chart(struct history *h, struct str node, const struct history_ask *ask,
                  struct arena *a, struct history_chart *out, struct err *e) MUST_USE;

/* ---- tasks ---- */

struct history_task {
    uint64_t job;
    uint32_t run, replica;
};
struct history_trail {
    int64_t from_ms, step_ms;
    size_t points;
    const float *v[HISTORY_TASK_COUNT]; /* [point]; NAN: not known */
};
/* What it used while it ran; false: that is not kept.  Valid until the next report. */
bool history_trail(const struct history *h, struct history_task which, struct history_trail *out);

#endif
