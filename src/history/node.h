/* node - one machine's history: for history.c only. */
#ifndef NS_HISTORY_NODE_H
#define NS_HISTORY_NODE_H

#include "history/history.h"
#include "history/ring.h"

#define NODE_COLUMNS_MAX (HISTORY_NODE_COUNT + REPORT_GPUS_MAX * HISTORY_GPU_COUNT)

/* id, how the file ends, step, rows.  A chart has some thousand points, and should not read many more rows. */
#define NODE_RINGS(X)                                                                              \
    X(SECOND, "1s", 1000, 3600u)                                                                   \
    X(MINUTE, "1m", 60000, 44640u)   /* 31 days */                                                 \
    X(MINUTES, "10m", 600000, 8928u) /* 62 days */                                                 \
    X(HOUR, "1h", 3600000, 43830u)   /* five years */                                              \
    X(DAY, "1d", 86400000, 1830u)    /* likewise */
enum node_ring {
#define X(id, name, step, rows) RING_##id,
    NODE_RINGS(X)
#undef X
    NODE_RING_COUNT
};

struct node {
    const char *name; /* of the history's names */
    const char *folder;
    struct report_head *head;
    struct report_sample *last;
    int64_t heard_ms;
    uint64_t samples;
    int64_t idle_since_ms[REPORT_GPUS_MAX];
    struct history_finding finding[REPORT_FINDINGS_MAX];
    size_t findings;
    char reason[1100];
    struct ring *ring[NODE_RING_COUNT];
    bool ring_failed;
    uint64_t meaning;
    /* The minute that is being gathered. */
    int64_t minute;
    uint32_t gathered;
    double *sum;
    uint32_t *count;
};

struct node *node_new(const char *name, const char *folder);
struct node *node_free(struct node *n); /* NULL ok; returns NULL */
/* false: it was counted before */
bool node_take(struct node *n, const struct report_head *head, const struct report_sample *s,
               int64_t now_ms);
void node_note_findings(struct node *n, int64_t now_ms); /* those of the last sample */
void node_view(const struct node *n, struct history_node *out);
void node_save(const struct node *n);

int64_t node_ring_step_ms(enum node_ring r);
/* The finest whose steps are not longer than asked for and that goes back so far. */
enum node_ring node_ring_for(int64_t step_ms, int64_t from_ms, int64_t last_ms);
int node_read(struct node *n, enum node_ring r, struct ring_span span, ring_fn *fn, void *ctx,
              struct err *e) MUST_USE;

#endif
