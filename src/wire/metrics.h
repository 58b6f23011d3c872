/* metrics - figures of GPUs and machines as Prometheus reads them, under the names and labels of NVIDIA's
 * dcgm-exporter where it has one.
 *
 * The one table of these series: the daemon writes them for all machines, an agent for its own.  Values that are
 * not known are left out, and so are labels of pods where there is none.  Pure.
 */
#ifndef NS_WIRE_METRICS_H
#define NS_WIRE_METRICS_H

#include "wire/report.h"

/* Whose a series is, as far as whoever asks may know. */
struct metrics_whose {
    struct str job, user, tenant; /* all empty: of nobody who may be named */
    struct str space, pod, container;
};

struct metrics_gpu {
    const struct report_head *head;
    const struct report_sample *sample;
    uint32_t at; /* in the head's list */
    const char *host;
    bool simulated;
    struct metrics_whose whose;
};

/* The names of a part's pod as its labels; nothing for what is none. */
void metrics_name_pod(struct metrics_whose *w, const char *pod);

void metrics_head(struct buf *b, const char *name, const char *help); /* of a gauge */
void metrics_label(struct buf *b, const char *name, struct str value);

/* Every series of GPUs, each with its head. */
void metrics_gpus(struct buf *b, const struct metrics_gpu *list, size_t n);

/* The parts of a GPU: id, series, help, what a value is divided by. */
#define METRICS_PARTS(X)                                                                           \
    X(WORK, "nightshift_gpu_part_percent", "Work of a GPU by whose it is.", 10)                    \
    X(MEM, "nightshift_gpu_part_mem_mib", "Memory of a GPU by whose it is.", 1)
enum metrics_part {
#define X(id, name, help, unit) METRICS_PART_##id,
    METRICS_PARTS(X)
#undef X
    METRICS_PART_COUNT
};
void metrics_part_head(struct buf *b, enum metrics_part k);
int64_t metrics_part_value(const struct report_part *p, enum metrics_part k);
/* `g`'s own `whose` is not looked at. */
void metrics_part(struct buf *b, enum metrics_part k, const struct metrics_gpu *g, const char *kind,
                  const struct metrics_whose *whose, int64_t value);

/* A machine: series one after the other, 0 up to METRICS_NODE_COUNT. */
#define METRICS_NODE_COUNT 8
void metrics_node_head(struct buf *b, size_t k);
void metrics_node(struct buf *b, size_t k, const char *host, const struct report_sample *s);

#endif
