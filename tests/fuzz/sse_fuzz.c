/* Events do not depend on how the bytes were cut. */
#include "cli/sse.h"
#include "tests/fuzz/target.h"

static int read_all(struct str all, size_t step, struct buf *out)
{
    AUTO(sse_clear) struct sse s = sse_new();
    struct err e;
    int rc = 0;
    for (size_t at = 0; at < all.n && rc == 0; at += step) {
        struct str chunk = { all.p + at, MIN(step, all.n - at) };
        struct sse_event ev;
        while ((rc = sse_next(&s, &chunk, &ev, &e)) > 0) {
            buf_addz(out, ev.id);
            buf_addc(out, '\n');
            buf_add(out, ev.data);
            buf_addc(out, '\0');
        }
        if (rc == 0 && chunk.n)
            abort();
    }
    return rc;
}

FUZZ_TARGET(data, size)
{
    struct str all = { (const char *)data, size };
    AUTO(buf_free) struct buf one = BUF(4u << 20), other = BUF(4u << 20);
    if (size == 0 || size > 100000)
        return 0;
    if (read_all(all, size, &one) != read_all(all, 7, &other) ||
        !str_eq(buf_str(&one), buf_str(&other)))
        abort();
    return 0;
}
