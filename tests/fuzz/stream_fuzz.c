/* Frames of any bytes: the same come out however the bytes are cut, and none is out of bounds. */
#include "tests/fuzz/target.h"
#include "wire/stream.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void look(const struct stream_frame *f, struct buf *seen)
{
    struct err e = { 0 };
    struct stream_exit how;
    uint16_t rows, cols;
    int signo;
    must(f->type > 0 && f->type < STREAM_TYPE_END && f->payload.n <= STREAM_PAYLOAD_MAX);
    if (f->type == STREAM_RESIZE)
        stream_get_resize(f->payload, &rows, &cols);
    if (f->type == STREAM_SIGNAL && stream_get_signal(f->payload, &signo, &e) == 0)
        must(signo >= 1 && signo <= 64);
    if (f->type == STREAM_EXIT && stream_get_exit(f->payload, &how, &e) == 0)
        must(how.code >= 0 && how.code <= 255 && how.signal >= 0 && how.signal <= 255);
    stream_put(seen, f->type, f->payload);
}

/* Decodes in chunks of `step` bytes and writes what came out again. */
static bool run(const uint8_t *data, size_t size, size_t step, struct buf *seen)
{
    AUTO(stream_decoder_clear) struct stream_decoder d = { 0 };
    for (size_t at = 0; at < size; at += step) {
        struct str chunk = { (const char *)data + at, MIN(step, size - at) };
        struct stream_frame f;
        struct err e = { 0 };
        int rc;
        while ((rc = stream_decode(&d, &chunk, &f, &e)) > 0)
            look(&f, seen);
        if (rc < 0) {
            must(e.code != ERR_NONE && e.msg[0]);
            return false;
        }
        must(chunk.n == 0);
    }
    return true;
}

FUZZ_TARGET(data, size)
{
    AUTO(buf_free) struct buf whole = BUF(size + 1), pieces = BUF(size + 1);
    size_t step = size ? 1 + data[size - 1] % 7u : 1;
    bool good = run(data, size, size ? size : 1, &whole);
    must(run(data, size, step, &pieces) == good);
    must(str_eq(buf_str(&whole), buf_str(&pieces)));
    must(whole.n <= size && (whole.n == 0 || memcmp(whole.p, data, whole.n) == 0));
    return 0;
}
