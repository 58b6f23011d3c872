/* Whole or byte by byte: the same answer, the same body; what is handed out lies in what came in. */
#include "base/buf.h"
#include "client/response.h"
#include "tests/fuzz/target.h"

#define STEPS_MAX 1000000

static int read_all(struct str all, size_t step, struct response *r, struct buf *body)
{
    size_t at = 0, have = 0;
    struct err e;
    for (int i = 0; i < STEPS_MAX && r->state != RESPONSE_DONE; i++) {
        size_t used = 0;
        struct str in = { all.p + at, have - at }, piece = { in.p, 0 };
        int rc = r->state == RESPONSE_HEAD ? response_head(r, in, &used, &e)
                                           : response_body(r, in, &used, &piece, &e);
        if (rc < 0)
            return -1;
        if (used > in.n || piece.p < in.p || piece.p + piece.n > in.p + in.n)
            abort();
        buf_add(body, piece);
        at += used;
        if (used == 0 && have == all.n)
            return response_eof(r, &e);
        if (used == 0)
            have = MIN(have + step, all.n);
    }
    return r->state == RESPONSE_DONE ? 0 : -1;
}

FUZZ_TARGET(data, size)
{
    struct str all = { (const char *)data, size };
    AUTO(buf_free) struct buf one = BUF(1u << 20), other = BUF(1u << 20);
    struct response a = { 0 }, b = { 0 };
    if (size == 0 || size > 100000)
        return 0;
    int rc = read_all(all, size, &a, &one);
    if (read_all(all, 1, &b, &other) != rc)
        abort();
    if (rc == 0 && (a.status != b.status || !str_eq(buf_str(&one), buf_str(&other))))
        abort();
    return 0;
}
