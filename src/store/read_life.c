#include "store/life.h"
#include "store/read.h"

/* Whose it is stands in its row. */
static int is_seen(struct store *s, const struct store_scope *who, uint64_t job, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_JOB);
    row_bind_u64(q, 1, job);
    int got = row_next(s, q, e);
    return got > 0 ? store_scope_sees(who, row_text(q, 1, NULL)) : got;
}

static uint32_t limit_of(const struct store_life *of)
{
    return of->limit && of->limit < PAGE_MAX ? of->limit : PAGE_MAX;
}

int store_job_steps(struct store *s, const struct store_scope *who, const struct store_life *of,
                    struct arena *a, struct store_steps *out, struct err *e)
{
    uint32_t limit = limit_of(of);
    AUTO(snapshot_end_p) struct store *held = snapshot_begin(s);
    int got = is_seen(held, who, of->job, e);
    *out = (struct store_steps){ 0 };
    if (got <= 0)
        return got;
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_STEPS);
    struct store_steps r = { .v = arena_array(a, struct store_step, limit) };
    row_bind_u64(q, 1, of->job);
    row_bind_u64(q, 2, of->after);
    row_bind_u64(q, 3, limit);
    while (r.n < limit && (got = row_next(s, q, e)) > 0)
        r.v[r.n++] = (struct store_step){ .job = row_u64(q, 0),
                                          .number = row_u64(q, 1),
                                          .t_ms = sqlite3_column_int64(q, 2),
                                          .what = row_text(q, 3, a),
                                          .state = (enum job_state)row_u32(q, 4),
                                          .run = row_u32(q, 5),
                                          .reason = row_text(q, 6, a),
                                          .who = row_text(q, 7, a),
                                          .note = row_text(q, 8, a),
                                          .where = row_text(q, 9, a),
                                          .exit_code = sqlite3_column_int(q, 10),
                                          .exit_signal = sqlite3_column_int(q, 11) };
    if (got < 0)
        return -1;
    *out = r;
    return 0;
}

int store_job_places(struct store *s, const struct store_scope *who, const struct store_life *of,
                     struct arena *a, struct store_places *out, struct err *e)
{
    uint32_t limit = limit_of(of);
    AUTO(snapshot_end_p) struct store *held = snapshot_begin(s);
    int got = is_seen(held, who, of->job, e);
    *out = (struct store_places){ 0 };
    if (got <= 0)
        return got;
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_PLACES);
    struct store_places r = { .v = arena_array(a, struct store_place, limit) };
    row_bind_u64(q, 1, of->job);
    row_bind_u64(q, 2, limit);
    while (r.n < limit && (got = row_next(s, q, e)) > 0)
        r.v[r.n++] = (struct store_place){ .run = row_u32(q, 0),
                                           .from_ms = sqlite3_column_int64(q, 1),
                                           .to_ms = sqlite3_column_int64(q, 2),
                                           .where = row_text(q, 3, a) };
    if (got < 0)
        return -1;
    *out = r;
    return 0;
}
