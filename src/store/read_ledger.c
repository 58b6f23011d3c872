/* Whose the machines' GPUs were: rows as they were written. */
#include "store/read.h"
#include "store/usage.h"

int store_ledger_last_day(struct store *s, int64_t *out, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_LEDGER_LAST);
    int got = row_next(s, q, e);
    if (got >= 0)
        *out = got ? sqlite3_column_int64(q, 0) : INT64_MIN;
    return got < 0 ? -1 : 0;
}

static void tell_row(sqlite3_stmt *q, store_ledger_fn *fn, void *ctx)
{
    struct ledger_row r = { .day = sqlite3_column_int64(q, 0), .tenant = row_text(q, 1, NULL) };
    if (r.tenant.n == 0)
        r.machines = (struct ledger_machines){ .total = sqlite3_column_int64(q, 2),
                                               .got = sqlite3_column_int64(q, 3),
                                               .idle = sqlite3_column_int64(q, 4),
                                               .away = sqlite3_column_int64(q, 5) };
    else
        r.sums = (struct ledger_sums){ .entitled = sqlite3_column_int64(q, 2),
                                       .got = sqlite3_column_int64(q, 3),
                                       .lent = sqlite3_column_int64(q, 4),
                                       .borrowed = sqlite3_column_int64(q, 5),
                                       .frozen = sqlite3_column_int64(q, 6),
                                       .wanted = sqlite3_column_int64(q, 7) };
    fn(ctx, &r);
}

int store_ledger(struct store *s, const struct store_scope *who, struct store_days days,
                 store_ledger_fn *fn, void *ctx, struct err *e)
{
    AUTO(row_end_p) sqlite3_stmt *q = row_query(s, ST_LEDGER_DAYS);
    int got;
    sqlite3_bind_int64(q, 1, days.from);
    sqlite3_bind_int64(q, 2, days.to);
    while ((got = row_next(s, q, e)) > 0) {
        struct str tenant = row_text(q, 1, NULL);
        if (tenant.n == 0 || store_scope_sees(who, tenant))
            tell_row(q, fn, ctx);
    }
    return got;
}
