/* report_grid - a table for a terminal: columns as wide as their longest cell, names made harmless.
 * For report_*.c only.
 */
#ifndef NS_SIMULATE_REPORT_GRID_H
#define NS_SIMULATE_REPORT_GRID_H

#include "simulate/report_parts.h"

#define CELL_BYTES 256

struct grid {
    struct arena arena;
    char (*cell)[CELL_BYTES]; /* rows * cols; the first row is the head */
    size_t rows, cols;
};

struct grid grid_new(size_t rows, size_t cols);
void grid_free(struct grid *g);
void grid_put(struct grid *g, size_t row, size_t col, const char *text);

/* Into the first column, shortened. */
void grid_put_name(struct grid *g, size_t row, const char *z);
void grid_put_title(struct grid *g, size_t row, const char *z);

/* The first column to the left, figures to the right. */
void grid_print(const struct grid *g, struct buf *out);

#endif
