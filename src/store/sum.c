#include "store/sum.h"

#include <stdio.h>

#include "base/str.h"
#include "store/columns.h"
#include "store/db.h"
#include "store/statements_audit.h"
#include "sys/weak.h"

/* FNV-1a; the type and the length of each value go in as well, so that no two rows run into each other. */
uint64_t sum_add(uint64_t h, const void *p, size_t n)
{
    const unsigned char *at = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ at[i]) * SUM_PRIME;
    return h;
}

static int64_t sum_of(int n, sqlite3_value **v)
{
    uint64_t h = SUM_FIRST;
    for (int i = 0; i < n; i++) {
        int type = sqlite3_value_type(v[i]);
        h = sum_add(h, &type, sizeof type);
        if (type == SQLITE_INTEGER) {
            int64_t number = sqlite3_value_int64(v[i]);
            h = sum_add(h, &number, sizeof number);
        } else {
            const void *p = sqlite3_value_blob(v[i]);
            int size = sqlite3_value_bytes(v[i]);
            h = sum_add(sum_add(h, &size, sizeof size), p, (size_t)size);
        }
    }
    return (int64_t)(h | 1); /* 0: there is none */
}

static void ns_sum(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    sqlite3_result_int64(ctx, sum_of(n, v));
}

#define BEFORE_ROW 3 /* the table, the row's name, the sum */

static void ns_whole(sqlite3_context *ctx, int n, sqlite3_value **v)
{
    int64_t sum = n > BEFORE_ROW ? sqlite3_value_int64(v[2]) : 0;
    if (sum == 0 || sum == sum_of(n - BEFORE_ROW, v + BEFORE_ROW) ||
        weak_or("row_sums", false, true)) {
        sqlite3_result_int(ctx, 1);
        return;
    }
    char why[160];
    snprintf(why, sizeof why, "row %.60s of table %.20s is not as it was written",
             (const char *)sqlite3_value_text(v[1]), (const char *)sqlite3_value_text(v[0]));
    sqlite3_result_error(ctx, why, -1);
    sqlite3_result_error_code(ctx, SQLITE_CORRUPT);
}

void sum_register(sqlite3 *db)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    sqlite3_create_function_v2(db, "ns_sum", -1, flags, NULL, ns_sum, NULL, NULL, NULL);
    sqlite3_create_function_v2(db, "ns_whole", -1, flags, NULL, ns_whole, NULL, NULL, NULL);
}

const struct sum_table sum_tables[] = {
    { "job", "id", JOB_COLUMNS, "state < 9" },
    { "job_spec", "job", SPEC_COLUMNS, "job IN (SELECT id FROM job WHERE state < 9)" },
    { "account", "name", ACCOUNT_COLUMNS, "1" },
    { "directory", "name", ENTRY_COLUMNS, "1" },
    { "pool", "name", POOL_COLUMNS, "1" },
    { "meta", "key", META_COLUMNS, "1" },
    { "journal_segment", "number", SEGMENT_COLUMNS, "1" },
    { "journal", "seq", LINE_COLUMNS, "seq >= " SEGMENT_FIRST },
    { "run", "job", RUN_COLUMNS, NULL },
    { "run_carried", "job", CARRIED_COLUMNS, NULL },
    { "usage_day", "day", USAGE_COLUMNS, NULL },
    { "ledger_day", "day", LEDGER_COLUMNS, NULL },
    { "machines_day", "day", MACHINES_COLUMNS, NULL },
    { "event", "number", EVENT_COLUMNS, NULL },
    { "job_step", "job", STEP_COLUMNS, NULL },
    { "job_log", "job", LOG_COLUMNS, NULL },
    { "notice", "id", NOTICE_COLUMNS, NULL },
    { "answer", "key", ANSWER_COLUMNS, NULL },
};
const size_t sum_tables_n = ARRAY_LEN(sum_tables);

int sum_give(sqlite3 *db, const char *path, struct err *e)
{
    return db_exec(db, path,
                   "UPDATE journal_segment SET sum = " SUM(
                       SEGMENT_COLUMNS) " WHERE sum = 0;"
                                        "UPDATE meta SET sum = " SUM(
                                            META_COLUMNS) " WHERE sum = 0 AND key NOT IN "
                                                          "('program', '" AUDIT_HEAD_KEY
                                                          "', '" AUDIT_CUT_KEY "')",
                   e);
}

/* ns_whole ends it at the first that is not whole. */
static int check_table(sqlite3 *db, const char *path, const struct sum_table *t, const char *which,
                       struct err *e)
{
    char sql[1024];
    sqlite3_stmt *q = NULL;
    snprintf(sql, sizeof sql, "SELECT ns_whole('%s', %s, sum, %s) FROM %s WHERE %s", t->name,
             t->row, t->columns, t->name, which);
    int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW)
        rc = db_step(q);
    if (rc != SQLITE_DONE)
        db_fail(db, path, "read", e);
    sqlite3_finalize(q);
    return rc == SQLITE_DONE ? 0 : -1;
}

int sum_check(sqlite3 *db, const char *path, enum sum_what what, struct err *e)
{
    for (size_t i = 0; i < sum_tables_n; i++) {
        const struct sum_table *t = &sum_tables[i];
        char which[120] = "1";
        bool read_by_line = strcmp(t->name, "journal") == 0;
        if (what == SUM_START && read_by_line)
            continue;
        if (what == SUM_START ? !t->start
                              : what == SUM_HISTORY && t->start && strcmp(t->start, "1") == 0)
            continue;
        if (what != SUM_ALL && t->start)
            snprintf(which, sizeof which, "%s(%s)", what == SUM_HISTORY ? "NOT " : "", t->start);
        if (check_table(db, path, t, which, e) < 0)
            return -1;
    }
    return 0;
}
