#include "store/notice.h"
#include "store/read.h"

static int read_notices(struct store *s, sqlite3_stmt *q, uint32_t limit, struct arena *a,
                        struct store_notices *out, struct err *e)
{
    struct store_notices r = { .v = arena_array(a, struct store_notice, limit + 1) };
    int got = 0;
    while (r.n < limit && (got = row_next(s, q, e)) > 0)
        r.v[r.n++] = (struct store_notice){ .id = row_text(q, 0, a),
                                            .user = row_text(q, 1, a),
                                            .way = row_u32(q, 2),
                                            .event = row_u32(q, 3),
                                            .state = (enum store_notice_state)row_u32(q, 4),
                                            .made_ms = sqlite3_column_int64(q, 5),
                                            .due_ms = sqlite3_column_int64(q, 6),
                                            .tries = row_u32(q, 7),
                                            .subject = row_text(q, 8, a),
                                            .data = row_text(q, 9, a),
                                            .why = row_text(q, 10, a) };
    if (got < 0)
        return -1;
    *out = r;
    return 0;
}

int store_notices_waiting(struct store *s, uint32_t limit, struct arena *a,
                          struct store_notices *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_NOTICES_WAITING);
    row_bind_u64(q, 1, limit);
    return read_notices(s, q, limit, a, out, e);
}

int store_notices_of(struct store *s, struct str user, uint32_t limit, struct arena *a,
                     struct store_notices *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_NOTICES_OF);
    row_bind_text(q, 1, user);
    row_bind_u64(q, 2, limit);
    return read_notices(s, q, limit, a, out, e);
}

int store_notice_known(struct store *s, struct str id, bool *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_NOTICE_KNOWN);
    row_bind_text(q, 1, id);
    int got = row_next(s, q, e);
    if (got < 0)
        return -1;
    *out = got > 0;
    return 0;
}
