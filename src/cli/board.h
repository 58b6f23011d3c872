/* board - what `nightshift top` shows, as lines: machines, GPUs and who has them, the jobs.  Pure. */
#ifndef NS_CLI_BOARD_H
#define NS_CLI_BOARD_H

#include "base/arena.h"
#include "cli/jobs.h"
#include "cli/table.h"

enum board_sort {
    SORT_STATE, /* running first, then those that wait, by id */
    SORT_GPUS,
    SORT_TIME,
    SORT_USER,
    SORT_COUNT
};
const char *board_sort_name(enum board_sort s);

struct board_line {
    const char *text;
    enum tint tint;
    uint64_t job; /* 0: no line of a job */
};

struct board {
    struct board_line *line;
    size_t n, cap;
    size_t first_job; /* where the jobs begin */
};

struct board_want {
    const struct json *nodes; /* list, or NULL */
    struct jobs *jobs;        /* gets sorted */
    enum board_sort sort;
    unsigned columns;
    int64_t now_ms;
};

/* Lines live in `a`. */
void board_build(const struct board_want *w, struct arena *a, struct board *out);

#endif
