#include "store/read.h"

static struct store_run run_of_row(sqlite3_stmt *q, struct arena *a)
{
    return (struct store_run){ .job = row_u64(q, 0),
                               .run = row_u32(q, 1),
                               .tenant = row_text(q, 2, a),
                               .user = row_text(q, 3, a),
                               .node = row_text(q, 4, a),
                               .model = row_text(q, 5, a),
                               .gpu_milli = row_u64(q, 6),
                               .cpu_milli = row_u64(q, 7),
                               .mem_mib = row_u64(q, 8),
                               .started_ms = sqlite3_column_int64(q, 9),
                               .ended_ms = sqlite3_column_int64(q, 10) };
}

int store_job_runs(struct store *s, const struct store_scope *who, uint64_t job, struct arena *a,
                   struct store_runs *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_RUNS);
    AUTO(free_p) struct store_run *v = NULL;
    size_t n = 0, cap = 0;
    row_bind_u64(q, 1, job);
    int got;
    while ((got = row_next(s, q, e)) > 0) {
        if (!scope_sees(who, row_text(q, 2, NULL)))
            continue;
        vec_grow(v, n, cap);
        v[n++] = run_of_row(q, a);
    }
    if (got < 0)
        return -1;
    *out = (struct store_runs){ arena_array(a, struct store_run, n), n };
    if (n)
        memcpy(out->v, v, n * sizeof *v);
    return 0;
}

int store_usage(struct store *s, const struct store_scope *who, const struct store_span *span,
                struct arena *a, struct store_usages *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_USAGE);
    AUTO(free_p) struct store_usage *v = NULL;
    size_t n = 0, cap = 0;
    sqlite3_bind_int64(q, 1, span->from_ms);
    sqlite3_bind_int64(q, 2, span->to_ms);
    sqlite3_bind_int64(q, 3, span->now_ms);
    int got;
    while ((got = row_next(s, q, e)) > 0) {
        if (!scope_sees(who, row_text(q, 0, NULL)))
            continue;
        vec_grow(v, n, cap);
        v[n++] = (struct store_usage){ .tenant = row_text(q, 0, a),
                                       .user = row_text(q, 1, a),
                                       .model = row_text(q, 2, a),
                                       .gpu_ms = row_u64(q, 3),
                                       .cpu_ms = row_u64(q, 4),
                                       .runs = row_u64(q, 5) };
    }
    if (got < 0)
        return -1;
    *out = (struct store_usages){ arena_array(a, struct store_usage, n), n };
    if (n)
        memcpy(out->v, v, n * sizeof *v);
    return 0;
}
