#include "store/read.h"
#include "store/segment.h"

#define SEGMENT_BITS 32

int store_segment(struct store *s, uint32_t back, struct store_segment *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_SEGMENT);
    row_bind_u64(q, 1, back);
    int got = row_next(s, q, e);
    if (got < 0)
        return -1;
    *out = got ? (struct store_segment){ row_u64(q, 0), row_u64(q, 1), row_u64(q, 2) }
               : (struct store_segment){ 0 };
    return 0;
}

int store_segment_lines(struct store *s, uint64_t number, store_seen_fn *fn, void *ctx,
                        struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_SEGMENT_LINES);
    int got;
    row_bind_u64(q, 1, number << SEGMENT_BITS);
    row_bind_u64(q, 2, (number + 1) << SEGMENT_BITS);
    while ((got = row_next(s, q, e)) > 0) {
        struct store_seen seen = { .at = row_u64(q, 0) - (number << SEGMENT_BITS),
                                   .t_ms = sqlite3_column_int64(q, 1),
                                   .line = row_text(q, 2, NULL),
                                   .whole = row_u64(q, 3) != 0 };
        if (fn(ctx, &seen, e) < 0)
            return -1;
    }
    return got;
}
