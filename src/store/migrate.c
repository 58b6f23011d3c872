#include "store/migrate.h"

#include <stdio.h>

#include "base/str.h"
#include "core/job.h"
#include "core/types.h"
#include "store/db.h"
#include "sys/clock.h"

/* The numbers lie in files: another order of the enums needs a migration. */
_Static_assert(JOB_HELD == 0 && JOB_STOPPING == 8 && JOB_SUCCEEDED == 9 && JOB_CANCELLED == 11,
               "job states are stored by number");
_Static_assert(PRIO_LOW == 0 && PRIO_URGENT == 3, "priorities are stored by number");

static const char tables[] =
#include "0001-tables.sql.inc"
    ;
static const char counts[] =
#include "0002-counts.sql.inc"
    ;
static const char usage[] =
#include "0003-usage.sql.inc"
    ;
static const char kept[] =
#include "0004-kept.sql.inc"
    ;
static const char pools[] =
#include "0005-pools.sql.inc"
    ;
static const char directory[] =
#include "0006-directory.sql.inc"
    ;
static const char audit[] =
#include "0007-audit.sql.inc"
    ;
static const char ledger[] =
#include "0008-ledger.sql.inc"
    ;
static const char notices[] =
#include "0009-notices.sql.inc"
    ;
static const char steps[] =
#include "0010-steps.sql.inc"
    ;

static const char row_sums[] =
#include "0011-sums.sql.inc"
    ;

static const char log_tenants[] =
#include "0012-log-tenants.sql.inc"
    ;

static const char more_sums[] =
#include "0013-more-sums.sql.inc"
    ;

const struct migration migrations[] = {
    { 1, "tables", tables },        { 2, "counts", counts },
    { 3, "usage", usage },          { 4, "kept", kept },
    { 5, "pools", pools },          { 6, "directory", directory },
    { 7, "audit", audit },          { 8, "ledger", ledger },
    { 9, "notices", notices },      { 10, "steps", steps },
    { 11, "sums", row_sums },       { 12, "log_tenants", log_tenants },
    { 13, "more_sums", more_sums },
};
const size_t migrations_n = ARRAY_LEN(migrations);

/* Who wrote it last, where the table that says so can be read. */
static void written_by(sqlite3 *db, char *out, size_t size)
{
    sqlite3_stmt *q = NULL;
    snprintf(out, size, "a newer nightshiftd");
    if (sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = 'program'", -1, &q, NULL) ==
            SQLITE_OK &&
        sqlite3_step(q) == SQLITE_ROW)
        snprintf(out, size, "nightshiftd %s", (const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
}

static int too_new(sqlite3 *db, const char *path, int64_t version, struct err *e)
{
    char by[80];
    written_by(db, by, sizeof by);
    err_set(e, ERR_CONFLICT,
            "the store '%s' has format %lld, of %s; this is nightshiftd %s, which knows formats up "
            "to %zu",
            path, (long long)version, by, NS_VERSION, migrations_n);
    return err_hint(e, "start the newer nightshiftd, or use a copy from before the upgrade");
}

int migrate_check(sqlite3 *db, const char *path, struct err *e)
{
    int64_t id, version, tables_n;
    if (db_number(db, path, "PRAGMA application_id", &id, e) < 0 ||
        db_number(db, path, "PRAGMA user_version", &version, e) < 0 ||
        db_number(db, path, "SELECT count(*) FROM sqlite_schema", &tables_n, e) < 0)
        return -1;
    bool empty = id == 0 && version == 0 && tables_n == 0;
    if (!empty && id != STORE_APPLICATION_ID) {
        err_set(e, ERR_INVALID,
                "'%s' is the SQLite file of another program, not a Nightshift store", path);
        return err_hint(e, "name another file, or move this one away");
    }
    if (version < 0 || version > (int64_t)migrations_n)
        return too_new(db, path, version, e);
    return 0;
}

static int step_run(sqlite3 *db, const char *path, const struct migration *m, struct err *e)
{
    char number[160];
    snprintf(number, sizeof number,
             "PRAGMA user_version = %d; PRAGMA application_id = %d;"
             "INSERT OR REPLACE INTO meta (key, value) VALUES ('program', '%s'); COMMIT;",
             m->number, STORE_APPLICATION_ID, NS_VERSION);
    if (db_exec(db, path, "BEGIN IMMEDIATE", e) == 0 && db_exec(db, path, m->sql, e) == 0 &&
        db_exec(db, path, number, e) == 0)
        return 0;
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return err_wrap(e, "bringing the store to format %d (%s)", m->number, m->name);
}

/* ---- steps that take long ---- */

#define TELL_NS INT64_C(1000000000)
#define OPS_BETWEEN_LOOKS 200000 /* of SQLite's machine: some milliseconds */

struct telling {
    struct log *log;
    const struct migration *step;
    int64_t from_ns, told_ns;
};

static void tell(const struct telling *t, const char *event, int64_t now_ns)
{
    log_event(t->log, LOG_INFO_, event, "format=%d name=%s seconds=%.1f", t->step->number,
              t->step->name, (double)(now_ns - t->from_ns) / 1e9);
}

static int on_progress(void *ctx)
{
    struct telling *t = ctx;
    int64_t now_ns = clock_mono_ns();
    if (now_ns - t->told_ns >= TELL_NS) {
        t->told_ns = now_ns;
        tell(t, "store.upgrading", now_ns);
    }
    return 0;
}

int migrate_up(sqlite3 *db, const char *path, struct log *log, struct err *e)
{
    int64_t version;
    struct telling t = { .log = log };
    int rc = 0;
    if (db_number(db, path, "PRAGMA user_version", &version, e) < 0)
        return -1;
    bool upgrade = version > 0;
    if (log && upgrade)
        sqlite3_progress_handler(db, OPS_BETWEEN_LOOKS, on_progress, &t);
    for (size_t i = (size_t)version; i < migrations_n && rc == 0; i++) {
        t.step = &migrations[i];
        t.from_ns = t.told_ns = clock_mono_ns();
        rc = step_run(db, path, t.step, e);
        if (rc == 0 && log && upgrade)
            tell(&t, "store.upgraded", clock_mono_ns());
    }
    sqlite3_progress_handler(db, 0, NULL, NULL);
    return rc;
}

/* ---- the words of the schema ---- */

#define WORDS_OTHER 8 /* bytes: more is no bit that fell over */

static bool fell_over(const char *a, const char *b)
{
    size_t n = strlen(a), differ = 0;
    if (strlen(b) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        differ += a[i] != b[i];
    return differ > 0 && differ <= WORDS_OTHER;
}

static int check_words(sqlite3_stmt *mine, sqlite3_stmt *theirs, const char *path, struct err *e)
{
    while (sqlite3_step(mine) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(mine, 0);
        sqlite3_reset(theirs);
        sqlite3_bind_text(theirs, 1, name, -1, SQLITE_STATIC);
        if (sqlite3_step(theirs) != SQLITE_ROW ||
            !fell_over((const char *)sqlite3_column_text(mine, 1),
                       (const char *)sqlite3_column_text(theirs, 0)))
            continue;
        err_set(e, ERR_INTERNAL,
                "the store '%s' is damaged: the definition of %s is not as it was "
                "written",
                path, name);
        return err_hint(e, "%s", DB_DAMAGED_HINT);
    }
    return 0;
}

int migrate_words(sqlite3 *db, const char *path, struct err *e)
{
    AUTO(db_close_p) sqlite3 *fresh = NULL;
    sqlite3_stmt *mine = NULL, *theirs = NULL;
    int rc = sqlite3_open(":memory:", &fresh);
    for (size_t i = 0; i < migrations_n && rc == SQLITE_OK; i++)
        rc = sqlite3_exec(fresh, migrations[i].sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(fresh, "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL",
                                -1, &mine, NULL);
    if (rc != SQLITE_OK) {
        err_set(e, ERR_INTERNAL, "cannot make an empty store in memory: %s", sqlite3_errmsg(fresh));
    } else if ((rc = sqlite3_prepare_v2(
                    db, "SELECT sql FROM sqlite_schema WHERE name = ?1 AND sql IS NOT NULL", -1,
                    &theirs, NULL)) != SQLITE_OK) {
        db_fail(db, path, "read", e);
    } else {
        rc = check_words(mine, theirs, path, e) < 0 ? SQLITE_CORRUPT : SQLITE_OK;
    }
    sqlite3_finalize(mine);
    sqlite3_finalize(theirs);
    return rc == SQLITE_OK ? 0 : -1;
}
