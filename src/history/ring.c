#include "history/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "sys/file.h"

#define HEAD_BYTES 4096
#define MAGIC UINT64_C(0x31676e6952736e4e) /* "NnsRing1" */
#define READ_ROWS 1024                     /* at a time */

struct ring_head {
    uint64_t magic, meaning;
    int64_t step_ms;
    uint32_t rows, columns;
};

struct row_head {
    int64_t at; /* time by step, plus one: 0 is none */
    uint32_t samples, sum;
};

struct ring {
    struct ring_shape shape;
    int fd;
    size_t row_bytes;
    char *row;  /* one */
    char *many; /* READ_ROWS */
    float *now;
};

static size_t bytes_of_row(const struct ring_shape *s)
{
    size_t n = sizeof(struct row_head) + s->columns * sizeof(float);
    return (n + 7) & ~(size_t)7;
}

uint64_t ring_bytes(const struct ring_shape *shape)
{
    return HEAD_BYTES + (uint64_t)shape->rows * bytes_of_row(shape);
}

static int failed(const char *path, const char *what, struct err *e)
{
    return err_set(e, ERR_UNAVAILABLE, "cannot %s %s: %s", what, path, strerror(errno));
}

static bool is_as_expected(int fd, const struct ring_shape *s)
{
    struct ring_head h;
    struct stat st;
    return fstat(fd, &st) == 0 && (uint64_t)st.st_size == ring_bytes(s) &&
           pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h && h.magic == MAGIC &&
           h.meaning == s->meaning && h.step_ms == s->step_ms && h.rows == s->rows &&
           h.columns == s->columns;
}

/* The length without the blocks: the disk fills as time passes, up to the bound. */
static int begin_anew(int fd, const struct ring_shape *s)
{
    struct ring_head h = { MAGIC, s->meaning, s->step_ms, s->rows, s->columns };
    if (ftruncate(fd, 0) < 0 || ftruncate(fd, (off_t)ring_bytes(s)) < 0)
        return -1;
    return pwrite(fd, &h, sizeof h, 0) == (ssize_t)sizeof h ? 0 : -1;
}

struct ring *ring_open(const char *path, const struct ring_shape *shape, bool *out_fresh,
                       struct err *e)
{
    AUTO(file_close_p) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        failed(path, "open", e);
        return NULL;
    }
    *out_fresh = !is_as_expected(fd, shape);
    if (*out_fresh && begin_anew(fd, shape) < 0) {
        failed(path, "make", e);
        return NULL;
    }
    struct ring *r = xcalloc(1, sizeof *r);
    r->shape = *shape;
    r->row_bytes = bytes_of_row(shape);
    r->row = xcalloc(1, r->row_bytes);
    r->now = xcalloc(shape->columns + 1, sizeof *r->now);
    r->fd = fd;
    fd = -1;
    return r;
}

struct ring *ring_close(struct ring *r)
{
    if (!r)
        return NULL;
    close(r->fd);
    free(r->row);
    free(r->many);
    free(r->now);
    free(r);
    return NULL;
}

static uint32_t sum_of(const char *row, size_t bytes)
{
    struct row_head h;
    memcpy(&h, row, sizeof h);
    uint64_t v = str_hash((struct str){ row + sizeof h, bytes - sizeof h });
    v ^= (uint64_t)h.at * UINT64_C(0x9e3779b97f4a7c15) ^ h.samples;
    return (uint32_t)(v ^ v >> 32);
}

/* Is it whole, and of that time? */
static bool row_holds(const struct ring *r, const char *row, int64_t at, struct row_head *out)
{
    memcpy(out, row, sizeof *out);
    return out->at == at + 1 && out->samples > 0 && out->sum == sum_of(row, r->row_bytes);
}

static int64_t step_of(const struct ring *r, int64_t t_ms)
{
    return t_ms / r->shape.step_ms;
}

static off_t place_of(const struct ring *r, int64_t at)
{
    return (off_t)HEAD_BYTES + (off_t)((uint64_t)at % r->shape.rows) * (off_t)r->row_bytes;
}

int ring_merge(struct ring *r, int64_t t_ms, const float *v, uint32_t samples, struct err *e)
{
    struct row_head h;
    int64_t at = step_of(r, t_ms);
    if (t_ms < 0 || samples == 0)
        return 0;
    uint32_t had = 0;
    memcpy(r->now, v, r->shape.columns * sizeof(float));
    if (pread(r->fd, r->row, r->row_bytes, place_of(r, at)) == (ssize_t)r->row_bytes &&
        row_holds(r, r->row, at, &h)) {
        const float *was = (const float *)(r->row + sizeof h);
        had = h.samples;
        for (uint32_t i = 0; i < r->shape.columns; i++)
            if (!isfinite(v[i]))
                r->now[i] = was[i];
            else if (isfinite(was[i]))
                r->now[i] = (float)(((double)was[i] * had + (double)v[i] * samples) /
                                    ((double)had + samples));
    }
    h = (struct row_head){ .at = at + 1, .samples = had + samples };
    memset(r->row, 0, r->row_bytes);
    memcpy(r->row, &h, sizeof h);
    memcpy(r->row + sizeof h, r->now, r->shape.columns * sizeof(float));
    h.sum = sum_of(r->row, r->row_bytes);
    memcpy(r->row, &h, sizeof h);
    if (pwrite(r->fd, r->row, r->row_bytes, place_of(r, at)) != (ssize_t)r->row_bytes)
        return failed("the history", "write", e);
    return 0;
}

int ring_read(struct ring *r, struct ring_span span, ring_fn *fn, void *ctx, struct err *e)
{
    int64_t at = step_of(r, MAX(span.from_ms, INT64_C(0)));
    int64_t end = step_of(r, MAX(span.to_ms, INT64_C(0)) + r->shape.step_ms - 1);
    if (end - at > (int64_t)r->shape.rows)
        at = end - (int64_t)r->shape.rows;
    if (!r->many)
        r->many = xmalloc(READ_ROWS * r->row_bytes);
    while (at < end) {
        int64_t first = (int64_t)((uint64_t)at % r->shape.rows);
        int64_t n = MIN(end - at, (int64_t)r->shape.rows - first);
        n = MIN(n, (int64_t)READ_ROWS);
        ssize_t got = pread(r->fd, r->many, (size_t)n * r->row_bytes, place_of(r, at));
        if (got < 0)
            return failed("the history", "read", e);
        for (int64_t i = 0; i < n && (size_t)(i + 1) * r->row_bytes <= (size_t)got; i++) {
            const char *row = r->many + (size_t)i * r->row_bytes;
            struct row_head h;
            if (row_holds(r, row, at + i, &h))
                fn(ctx, (at + i) * r->shape.step_ms, (const float *)(row + sizeof h), h.samples);
        }
        at += n;
    }
    return 0;
}
