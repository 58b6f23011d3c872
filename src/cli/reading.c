#include "cli/reading.h"

int reading_add(struct reading *r, struct str bytes, struct err *e)
{
    size_t at = 0, used;
    struct str piece;
    buf_add(&r->raw, bytes);
    do {
        struct str all = buf_str(&r->raw), in = { all.p + at, all.n - at };
        if (r->response.state == RESPONSE_HEAD) {
            if (response_head(&r->response, in, &used, e) < 0)
                return -1;
        } else {
            if (response_body(&r->response, in, &used, &piece, e) < 0)
                return -1;
            buf_add(&r->body, piece);
        }
        at += used;
    } while (used && r->response.state != RESPONSE_DONE);
    buf_drop_front(&r->raw, at);
    if (buf_check(&r->raw, e) < 0)
        return -1;
    return buf_check(&r->body, e);
}

void reading_clear(struct reading *r)
{
    buf_free(&r->raw);
    buf_free(&r->body);
}
