#include "base/parse.h"
#include "store/kept.h"
#include "store/read.h"

int store_log_get(struct store *s, uint64_t job, struct store_log *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_LOG);
    row_bind_u64(q, 1, job);
    int got = row_next(s, q, e);
    if (got < 0)
        return -1;
    if (got == 0)
        return err_set(e, ERR_NOT_FOUND, "job %llu has no output that is kept",
                       (unsigned long long)job);
    int64_t bytes = sqlite3_column_int64(q, 0);
    *out = (struct store_log){ .measured = bytes >= 0,
                               .bytes = (uint64_t)MAX(bytes, INT64_C(0)),
                               .removed_ms = sqlite3_column_int64(q, 1),
                               .why = (enum store_log_why)row_u64(q, 2) };
    return 0;
}

int store_log_sum(struct store *s, struct store_log_sum *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_LOG_SUM);
    if (row_next(s, q, e) < 0)
        return -1;
    *out = (struct store_log_sum){ row_u64(q, 0), row_u64(q, 1) };
    return 0;
}

int store_log_tenants(struct store *s, uint32_t limit, struct arena *a,
                      struct store_log_tenants *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_LOG_TENANTS);
    struct store_log_tenants r = { .v = arena_array(a, struct store_log_tenant, limit) };
    int got = 0;
    row_bind_u64(q, 1, limit);
    while (r.n < limit && (got = row_next(s, q, e)) > 0)
        r.v[r.n++] = (struct store_log_tenant){ row_text(q, 0, a), row_u64(q, 1) };
    if (got < 0)
        return -1;
    *out = r;
    return 0;
}

/* ---- walks ---- */

static int read_kept(struct store *s, sqlite3_stmt *q, uint32_t limit, struct arena *a,
                     struct store_kepts *out, struct err *e)
{
    struct store_kepts r = { .v = arena_array(a, struct store_kept, limit) };
    int got = 0;
    while (r.n < limit && (got = row_next(s, q, e)) > 0)
        r.v[r.n++] = (struct store_kept){ .job = row_u64(q, 0),
                                          .runs = row_u32(q, 1),
                                          .replicas = row_u32(q, 2),
                                          .bytes = row_u64(q, 3),
                                          .ended_ms = sqlite3_column_int64(q, 4) };
    if (got < 0)
        return -1;
    *out = r;
    return 0;
}

int store_logs_unmeasured(struct store *s, uint32_t limit, struct arena *a, struct store_kepts *out,
                          struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_LOGS_NEW);
    row_bind_u64(q, 1, limit);
    return read_kept(s, q, limit, a, out, e);
}

static int read_oldest(struct store *s, enum stmt by, const struct store_kept_query *which,
                       struct arena *a, struct store_kepts *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, by);
    sqlite3_bind_int64(q, 1, which->after.ended_ms);
    row_bind_u64(q, 2, which->after.job);
    sqlite3_bind_int64(q, 3, which->before_ms);
    row_bind_u64(q, 4, which->limit);
    if (by == ST_LOGS_OF)
        row_bind_text(q, 5, which->tenant);
    return read_kept(s, q, which->limit, a, out, e);
}

int store_logs_kept(struct store *s, const struct store_kept_query *which, struct arena *a,
                    struct store_kepts *out, struct err *e)
{
    return read_oldest(s, which->tenant.n ? ST_LOGS_OF : ST_LOGS_KEPT, which, a, out, e);
}

int store_jobs_old(struct store *s, const struct store_kept_query *which, struct arena *a,
                   struct store_kepts *out, struct err *e)
{
    return read_oldest(s, ST_JOBS_OLD, which, a, out, e);
}

/* ---- what else grows ---- */

int store_trim_left(struct store *s, const struct store_trim *t, bool *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_TRIM_LEFT);
    row_bind_u64(q, 1, t->keep_events);
    sqlite3_bind_int64(q, 2, t->answers_before_ms);
    sqlite3_bind_int64(q, 3, t->whole_days_before_ms / DAY_MS);
    if (row_next(s, q, e) < 0)
        return -1;
    *out = row_u64(q, 0) != 0;
    return 0;
}

int read_whole_days(struct store *s, int64_t *out_ms, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_META);
    uint64_t ms = 0;
    row_bind_text(q, 1, STR(WHOLE_DAYS_KEY));
    int got = row_next(s, q, e);
    if (got < 0 || (got > 0 && parse_u64(row_text(q, 0, NULL), INT64_MAX, &ms, e) < 0))
        return -1;
    *out_ms = (int64_t)ms;
    return 0;
}
