/* ring - rows of numbers, one each step of time, in a file of fixed size: the oldest gives way.
 *
 * A row has its place by its time alone, so writing one again changes nothing else, and a reader needs no
 * index.  Each row carries its time, how many samples are in it and a checksum: one that was torn by a
 * crash, or is of an earlier round, counts as missing.  Nothing is synced: history may lose its last
 * moments, never more.
 * A file that is not as expected (another version, other columns) is begun anew.
 */
#ifndef NS_HISTORY_RING_H
#define NS_HISTORY_RING_H

#include "base/err.h"

#define RING_COLUMNS_MAX 512u

struct ring;

struct ring_shape {
    int64_t step_ms;
    uint32_t rows, columns;
    uint64_t meaning; /* of the columns, as a hash: another one begins the file anew */
};

/* fresh: it was begun now. */
struct ring *ring_open(const char *path, const struct ring_shape *shape, bool *out_fresh,
                       struct err *e);
struct ring *ring_close(struct ring *r); /* NULL ok; returns NULL */
uint64_t ring_bytes(const struct ring_shape *shape);

/* Averages of `samples` samples, in the row of that time; those there already are weighed in.  A column
 * that is not finite is not known. */
int ring_merge(struct ring *r, int64_t t_ms, const float *v, uint32_t samples, struct err *e)
    MUST_USE;

/* Each row from from_ms on, before to_ms, that is there, in the order of time. */
typedef void ring_fn(void *ctx, int64_t t_ms, const float *v, uint32_t samples);
struct ring_span {
    int64_t from_ms, to_ms;
};
int ring_read(struct ring *r, struct ring_span span, ring_fn *fn, void *ctx, struct err *e)
    MUST_USE;

#endif
