#include "store/mend.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/str.h"
#include "store/db.h"
#include "store/sum.h"
#include "sys/weak.h"

#define ROWS_MAX 16u /* that are looked at for it: with more, it was not a bit */
#define COLUMNS_MAX 32
#define ROW_BYTES_MAX (4u << 20)
#define SQL_BYTES 2048u

/* ---- a row as the bytes that were summed ---- */

struct column {
    size_t at, n; /* of its content in the bytes */
    int type;
};

struct row {
    struct buf bytes;
    struct column column[COLUMNS_MAX];
    int columns;
    uint64_t sum;   /* as it is in the row */
    uint64_t *need; /* before each byte: what the sum so far has to be for the rest to lead to it */
};

static void row_clear(struct row *r)
{
    buf_free(&r->bytes);
    free(r->need);
}

static void add_bytes(struct row *r, const void *p, size_t n)
{
    buf_add(&r->bytes, (struct str){ p, n });
}

/* In the order of sum.c. */
static bool read_row(sqlite3_stmt *q, struct row *r)
{
    r->columns = sqlite3_column_count(q) - 1;
    r->sum = (uint64_t)sqlite3_column_int64(q, 0);
    for (int i = 0; i < r->columns && i < COLUMNS_MAX; i++) {
        struct column *c = &r->column[i];
        c->type = sqlite3_column_type(q, i + 1);
        add_bytes(r, &c->type, sizeof c->type);
        int64_t number = sqlite3_column_int64(q, i + 1);
        const void *p = c->type == SQLITE_INTEGER ? &number : sqlite3_column_blob(q, i + 1);
        int size = c->type == SQLITE_INTEGER ? (int)sizeof number : sqlite3_column_bytes(q, i + 1);
        if (c->type != SQLITE_INTEGER)
            add_bytes(r, &size, sizeof size);
        c->at = r->bytes.n;
        c->n = (size_t)size;
        add_bytes(r, p, c->n);
    }
    struct err ignored;
    return r->columns <= COLUMNS_MAX && buf_check(&r->bytes, &ignored) == 0;
}

/* ---- the change that makes it right ---- */

static uint64_t unmultiplied(uint64_t h)
{
    uint64_t inverse = SUM_PRIME; /* right in its lowest bits; each round doubles how many */
    for (int i = 0; i < 6; i++)
        inverse *= 2 - SUM_PRIME * inverse;
    return h * inverse;
}

static void go_backwards(struct row *r, uint64_t end)
{
    uint64_t prime = unmultiplied(1);
    r->need[r->bytes.n] = end;
    for (size_t i = r->bytes.n; i-- > 0;)
        r->need[i] = r->need[i + 1] * prime ^ (unsigned char)r->bytes.p[i];
}

/* A byte of it is another.  In a number that lies there with fewer bytes the highest one is also its sign. */
static bool mend_number(struct row *r, const struct column *c, uint64_t before)
{
    static const unsigned widths[] = { 1, 2, 3, 4, 6 };
    int64_t v;
    memcpy(&v, r->bytes.p + c->at, sizeof v);
    for (size_t w = 0; w < ARRAY_LEN(widths); w++) {
        unsigned high = 8 * (widths[w] - 1), left = 64 - 8 * widths[w];
        uint64_t low = (uint64_t)v & ((UINT64_C(1) << high) - 1);
        bool lies_so = (int64_t)((uint64_t)v << left) >> left == v;
        for (unsigned top = 0; top < 256 && lies_so; top++) {
            int64_t other = (int64_t)((low | (uint64_t)top << high) << left) >> left;
            if (sum_add(before, &other, sizeof other) != r->need[c->at + c->n])
                continue;
            memcpy(r->bytes.p + c->at, &other, sizeof other);
            return true;
        }
    }
    return false;
}

static bool mend_byte(struct row *r, const struct column *c, uint64_t before)
{
    uint64_t prime = unmultiplied(1), h = before;
    for (size_t i = c->at; i < c->at + c->n; i++) {
        uint64_t byte = r->need[i + 1] * prime ^ h;
        if (byte < 256) {
            r->bytes.p[i] = (char)byte;
            return true;
        }
        h = sum_add(h, &r->bytes.p[i], 1);
    }
    return c->type == SQLITE_INTEGER && mend_number(r, c, before);
}

static bool one_byte_differs(uint64_t a, uint64_t b)
{
    uint64_t x = a ^ b;
    while (x && !(x & 0xff))
        x >>= 8;
    return x && x < 256;
}

static bool mend_row(struct row *r)
{
    uint64_t h = sum_add(SUM_FIRST, r->bytes.p, r->bytes.n);
    if (one_byte_differs(h | 1, r->sum)) { /* of the sum itself */
        r->sum = h | 1;
        return true;
    }
    r->need = xcalloc(r->bytes.n + 1, sizeof *r->need);
    for (uint64_t low = 0; low < 2; low++) { /* which is not in the sum */
        go_backwards(r, (r->sum & ~UINT64_C(1)) | low);
        for (int i = 0; i < r->columns; i++)
            if (mend_byte(r, &r->column[i], sum_add(SUM_FIRST, r->bytes.p, r->column[i].at)))
                return true;
    }
    return false;
}

/* ---- writing it ---- */

static int bind_row(sqlite3_stmt *q, const struct row *r)
{
    int rc = sqlite3_bind_int64(q, r->columns + 1, (int64_t)r->sum);
    for (int i = 0; i < r->columns && rc == SQLITE_OK; i++) {
        const struct column *c = &r->column[i];
        const char *p = r->bytes.p + c->at;
        int64_t v = 0;
        if (c->type == SQLITE_INTEGER)
            memcpy(&v, p, sizeof v);
        rc = c->type == SQLITE_INTEGER ? sqlite3_bind_int64(q, i + 1, v)
           : c->type == SQLITE_TEXT
               ? sqlite3_bind_text64(q, i + 1, p, c->n, SQLITE_STATIC, SQLITE_UTF8)
               : sqlite3_bind_blob64(q, i + 1, p, c->n, SQLITE_STATIC);
    }
    return rc;
}

/* The row is the one that is not whole and has this sum, or, when that was it, these columns. */
static bool write_row(sqlite3 *db, const struct sum_table *t, const struct row *r, uint64_t was)
{
    char sql[SQL_BYTES], marks[8 * COLUMNS_MAX] = "";
    sqlite3_stmt *q = NULL;
    size_t n = 0;
    for (int i = 1; i <= r->columns; i++)
        n += (size_t)snprintf(marks + n, sizeof marks - n, "%s?%d", i > 1 ? ", " : "", i);
    snprintf(sql, sizeof sql,
             "UPDATE %s SET (%s, sum) = (%s, ?%d) WHERE sum = ?%d AND sum <> ns_sum(%s)", t->name,
             t->columns, marks, r->columns + 1, r->columns + 2, t->columns);
    bool done = sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK &&
                bind_row(q, r) == SQLITE_OK &&
                sqlite3_bind_int64(q, r->columns + 2, (int64_t)was) == SQLITE_OK &&
                sqlite3_step(q) == SQLITE_DONE && sqlite3_changes(db) == 1;
    sqlite3_finalize(q);
    return done;
}

static bool run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static bool end(sqlite3 *db, bool done)
{
    if (done && run(db, "COMMIT"))
        return true;
    if (!sqlite3_get_autocommit(db))
        run(db, "ROLLBACK");
    return false;
}

/* What an index says of the row is what it was: it would not be found there as it is. */
static bool put_right(sqlite3 *db, const struct sum_table *t, const struct row *r, uint64_t was)
{
    char sql[80];
    snprintf(sql, sizeof sql, "REINDEX %s", t->name);
    return run(db, "BEGIN IMMEDIATE") && end(db, run(db, sql) && write_row(db, t, r, was));
}

enum found {
    FOUND_NONE,
    FOUND_MENDED,
    FOUND_LEFT
};

/* The row that is not whole, after `skip` others. */
static enum found mend_next(sqlite3 *db, const struct sum_table *t, const char *which,
                            unsigned skip)
{
    char sql[SQL_BYTES];
    sqlite3_stmt *q = NULL;
    AUTO(row_clear) struct row r = { .bytes = BUF(ROW_BYTES_MAX) };
    snprintf(
        sql, sizeof sql,
        "SELECT sum, %s FROM %s WHERE (%s) AND sum <> 0 AND sum <> ns_sum(%s) LIMIT 1 OFFSET %u",
        t->columns, t->name, which, t->columns, skip);
    int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    bool known = rc == SQLITE_ROW && read_row(q, &r);
    sqlite3_finalize(q);
    if (rc == SQLITE_DONE)
        return FOUND_NONE;
    uint64_t was = r.sum;
    return known && mend_row(&r) && put_right(db, t, &r, was) ? FOUND_MENDED : FOUND_LEFT;
}

static void set_triggers(sqlite3 *db, int on)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, on, NULL);
}

/* false: some are left. */
static bool mend_table(sqlite3 *db, const char *path, const struct sum_table *t, bool all,
                       struct log *log)
{
    const char *which = all ? "1" : t->start;
    unsigned left = 0, mended = 0;
    enum found f;
    while (left + mended < ROWS_MAX && (f = mend_next(db, t, which, left)) != FOUND_NONE)
        *(f == FOUND_MENDED ? &mended : &left) += 1;
    if (mended && log)
        log_event(log, LOG_WARN_, "store.mended", "path=%s table=%s rows=%u why=%s", path, t->name,
                  mended, "a byte was not as it was written");
    return left + mended < ROWS_MAX && left == 0;
}

bool mend_rows(sqlite3 *db, const char *path, bool all, struct log *log)
{
    bool whole = true;
    if (weak_or("row_sums", false, true))
        return true;
    set_triggers(db, 0); /* nothing has happened to what it tells of */
    for (size_t i = 0; i < sum_tables_n; i++)
        if (all || sum_tables[i].start)
            whole &= mend_table(db, path, &sum_tables[i], all, log);
    set_triggers(db, 1);
    return whole;
}

/* ---- indexes, and what is counted ---- */

/* Rows without a sum may be what is damaged, and their index what is right. */
static bool all_have_sums(sqlite3 *db, const char *path)
{
    int64_t without = 0;
    struct err ignored;
    for (size_t i = 0; i < sum_tables_n && without == 0; i++) {
        char sql[240];
        snprintf(sql, sizeof sql,
                 "SELECT EXISTS (SELECT 1 FROM pragma_index_list('%s') WHERE origin = 'c') "
                 "AND EXISTS (SELECT 1 FROM %s WHERE sum = 0)",
                 sum_tables[i].name, sum_tables[i].name);
        if (db_number(db, path, sql, &without, &ignored) < 0)
            return false;
    }
    return without == 0;
}

bool mend_indexes(sqlite3 *db, const char *path, struct log *log)
{
    struct err ignored;
    if (!all_have_sums(db, path) || sum_check(db, path, SUM_ALL, &ignored) < 0 ||
        !run(db, "BEGIN IMMEDIATE"))
        return false;
    bool done = end(db, run(db, "REINDEX") &&
                            db_sound(db, path, "PRAGMA integrity_check(1)", &ignored) == 0);
    if (done && log)
        log_event(log, LOG_WARN_, "store.mended", "path=%s why=%s", path,
                  "an index was not as its rows are");
    return done;
}

static const struct {
    const char *name, *columns, *rows, *counted;
} counts[] = {
    { "job_count", "tenant, state, n", "n <> 0",
      "SELECT tenant, state, count(*) FROM job GROUP BY tenant, state" },
    { "log_sum", "one, logs, bytes", "1",
      "SELECT 1, coalesce(sum(removed_ms = 0), 0), coalesce(sum(max(bytes, 0)), 0) FROM job_log" },
    { "log_tenant", "tenant, bytes", "bytes <> 0",
      "SELECT * FROM (SELECT tenant, sum(max(bytes, 0)) AS n FROM job_log GROUP BY tenant) WHERE n "
      "<> 0" },
};

void mend_counts(sqlite3 *db, const char *path, struct log *log)
{
    struct err ignored;
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        char sql[SQL_BYTES], fill[SQL_BYTES];
        int64_t differ = 0;
        snprintf(sql, sizeof sql,
                 "SELECT EXISTS (SELECT * FROM (SELECT %s FROM %s WHERE %s) EXCEPT SELECT * FROM "
                 "(%s)) OR EXISTS (SELECT * FROM (%s) EXCEPT SELECT %s FROM %s WHERE %s)",
                 counts[i].columns, counts[i].name, counts[i].rows, counts[i].counted,
                 counts[i].counted, counts[i].columns, counts[i].name, counts[i].rows);
        snprintf(fill, sizeof fill, "DELETE FROM %s; INSERT INTO %s (%s) %s", counts[i].name,
                 counts[i].name, counts[i].columns, counts[i].counted);
        if (db_number(db, path, sql, &differ, &ignored) < 0 || !differ ||
            !run(db, "BEGIN IMMEDIATE") || !end(db, run(db, fill)))
            continue;
        if (log)
            log_event(log, LOG_WARN_, "store.mended", "path=%s table=%s why=%s", path,
                      counts[i].name, "it was not what its rows add up to");
    }
}
