#include "store/sum.h"

#include <stdio.h>

#include "base/str.h"
#include "store/db.h"
#include "store/statements.h"
#include "sys/weak.h"

/* FNV-1a; the type and the length of each value go in as well, so that no two rows run into each other. */
static uint64_t add(uint64_t h, const void *p, size_t n)
{
    const unsigned char *at = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    return h;
}

static void ns_sum(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < n; i++) {
        int type = sqlite3_value_type(v[i]);
        h = add(h, &type, sizeof type);
        if (type == SQLITE_INTEGER) {
            int64_t number = sqlite3_value_int64(v[i]);
            h = add(h, &number, sizeof number);
        } else {
            const void *p = sqlite3_value_blob(v[i]);
            int size = sqlite3_value_bytes(v[i]);
            h = add(add(h, &size, sizeof size), p, (size_t)size);
        }
    }
    sqlite3_result_int64(ctx, (int64_t)(h | 1)); /* 0: there is none */
}

void sum_register(sqlite3 *db)
{
    sqlite3_create_function_v2(db, "ns_sum", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, ns_sum,
                               NULL, NULL, NULL);
}

/* table, its rows by name, what is summed, which rows a start is made from */
static const struct {
    const char *table, *name, *columns, *start;
} sums[] = {
    { "job", "id", JOB_COLUMNS, "state < 9" },
    { "job_spec", "job", "job, spec", "job IN (SELECT id FROM job WHERE state < 9)" },
    { "journal", "seq", "t_ms, line", "seq >= " SEGMENT_FIRST },
    { "account", "name", ACCOUNT_COLUMNS, "1" },
    { "directory", "name", "kind, name, body", "1" },
    { "pool", "name", POOL_COLUMNS, "1" },
};

static int check_table(sqlite3 *db, const char *path, size_t i, bool whole, struct err *e)
{
    char sql[1024];
    sqlite3_stmt *q = NULL;
    snprintf(sql, sizeof sql,
             "SELECT %s FROM %s WHERE %s AND sum <> 0 AND sum <> ns_sum(%s) LIMIT 1", sums[i].name,
             sums[i].table, whole ? "1" : sums[i].start, sums[i].columns);
    int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = db_step(q);
    if (rc == SQLITE_ROW && weak_or("row_sums", true, false)) {
        err_set(e, ERR_INTERNAL,
                "the store '%s' is damaged: row %s of table %s is not as it was written", path,
                (const char *)sqlite3_column_text(q, 0), sums[i].table);
        err_hint(e, "%s", DB_DAMAGED_HINT);
    } else if (rc != SQLITE_DONE && rc != SQLITE_ROW) {
        db_fail(db, path, "read", e);
    }
    bool bad = rc != SQLITE_DONE && !(rc == SQLITE_ROW && weak_or("row_sums", false, true));
    sqlite3_finalize(q);
    return bad ? -1 : 0;
}

int sum_check(sqlite3 *db, const char *path, bool whole, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(sums); i++)
        if (check_table(db, path, i, whole, e) < 0)
            return -1;
    return 0;
}
