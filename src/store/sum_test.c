/* Every table, every column: one byte is put right, more is told. */
#include "store/sum.h"

#include <fcntl.h>
#include <sqlite3.h>

#include "base/buf.h"
#include "base/rng.h"
#include "store/audit.h"
#include "store/directory.h"
#include "store/kept.h"
#include "store/life.h"
#include "store/notice.h"
#include "store/pools.h"
#include "store/save.h"
#include "store/segment.h"
#include "store/usage.h"
#include "sys/file.h"
#include "tests/lib/storing.h"

#define DAY INT64_C(86400000)

static void fill_jobs(struct store_batch *b)
{
    struct store_job ended = storing_job(7, "vision", "ana", "over", JOB_RUNNING);
    struct store_job lives = storing_job(8, "vision", "ben", "lives", JOB_RUNNING);
    struct store_run run = { .job = 7,
                             .run = 1,
                             .tenant = STR("vision"),
                             .user = STR("ana"),
                             .node = STR("desk1"),
                             .model = STR("A100"),
                             .gpu_milli = 2000,
                             .cpu_milli = 3000,
                             .mem_mib = 400,
                             .started_ms = DAY / 2 };
    struct store_run goes_on = run;
    goes_on.job = 8;
    lives.now.run = ended.now.run = 1;
    storing_add(b, &ended);
    storing_add(b, &lives);
    store_put_run(b, &run);
    store_put_run(b, &goes_on);
    store_end_run(b, 7, 1, DAY * 2);
    ended.now.state = JOB_SUCCEEDED;
    store_set_job(b, 7, &ended.now);
    store_size_log(b, 7, 5000);
}

/* Something in every table. */
static void fill(struct storing *t)
{
    struct store_batch *b = store_batch_new(t->store);
    fill_jobs(b);
    store_add_step(b, &(struct store_step){ .job = 7, .t_ms = 70, .what = STR("submitted") });
    store_step_reason(b, 7, STR("its turn"));
    store_put_ledger(b, &(struct ledger_row){ .day = 3, .tenant = STR("vision"), .sums.got = 77 });
    store_put_ledger(b, &(struct ledger_row){ .day = 3, .machines.total = 78 });
    store_add_journal(b, 9, STR("{\"a\":\"line\"}"));
    store_new_segment(b, 10, 4);
    store_add_journal(b, 11, STR("{\"another\":1}"));
    store_segment_begins(b, &(struct store_segment){ .begins = 1, .lines_before = 1 });
    store_add_event(b, 12, "job", STR("vision"), 7, STR("{}"));
    store_put_account(b, &(struct store_account){ STR("ana"), STR("/home/ana"), 5, 6, true, 7 });
    store_put_answer(b, STR("ana"), STR("key"), 13, STR("{\"id\":7}"));
    store_set_meta(b, "clock", STR("tick 12"));
    store_put_entry(b, DIRECTORY_PERSON, &(struct store_entry){ STR("ana"), STR("{}") });
    store_put_pool(b, &(struct store_pool){ .name = STR("desks"), .nodes = STR("desk1") });
    store_put_notice(b, &(struct store_notice){ .id = STR("n1"),
                                                .user = STR("ana"),
                                                .subject = STR("it ended"),
                                                .data = STR("{}") });
    store_add_audit(b, &(struct audit_row){ .t_ms = 14, .who = STR("ana"), .what = STR("x") });
    storing_commit(t, b);
}

static sqlite3 *file_of(const struct storing *t)
{
    sqlite3 *db = NULL;
    CHECK(sqlite3_open(t->path, &db) == SQLITE_OK);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    return db;
}

static int add_row(void *ctx, int n, char **v, char **names)
{
    (void)names;
    for (int i = 0; i < n; i++)
        buf_printf(ctx, "%s|", v[i] ? v[i] : "NULL");
    buf_addc(ctx, '\n');
    return 0;
}

static void ask(sqlite3 *db, struct buf *out, const char *text)
{
    char *why = NULL;
    sqlite3_exec(db, text, add_row, out, &why);
    CHECK_STR(why, NULL);
}

static void dump(sqlite3 *db, struct buf *out)
{
    for (size_t i = 0; i < sum_tables_n; i++) {
        char text[600];
        snprintf(text, sizeof text, "SELECT %s, sum FROM %s", sum_tables[i].columns,
                 sum_tables[i].name);
        ask(db, out, text);
    }
}

static void every_table_has_sums_or_is_known_by_others(void)
{
    AUTO(storing_end) struct storing t;
    AUTO(buf_free) struct buf names = BUF(4096);
    storing_begin_often(&t);
    storing_open(&t);
    t.store = store_close(t.store);
    sqlite3 *db = file_of(&t);
    ask(db, &names, "SELECT name FROM sqlite_schema WHERE type = 'table'");
    struct str rest = buf_str(&names), name;
    size_t n = 0;
    while (str_cut(rest, '\n', &name, &rest)) {
        bool known = str_is(name, "audit|") || str_is(name, "job_count|") ||
                     str_is(name, "log_sum|") || str_is(name, "log_tenant|");
        char text[80];
        for (size_t i = 0; i < sum_tables_n; i++) {
            snprintf(text, sizeof text, "%s|", sum_tables[i].name);
            n += str_is(name, text);
            known |= str_is(name, text);
        }
        CHECK(known);
    }
    CHECK(n == sum_tables_n);
    sqlite3_close(db);
}

/* ---- what falls over ---- */

enum damage {
    ONE_BYTE,
    MANY,
    KINDS
};

/* A column of the table's rows is changed; false: none of them has anything to change. */
static bool damage(sqlite3 *db, const char *t, const char *c, bool number, enum damage kind)
{
    char text[400];
    char *why = NULL;
    if (number && kind == ONE_BYTE)
        snprintf(text, sizeof text, "UPDATE %s SET %s = (%s | 64) - (%s & 64) WHERE sum <> 0", t, c,
                 c, c);
    else if (number)
        snprintf(text, sizeof text, "UPDATE %s SET %s = 12345678901 - %s WHERE sum <> 0", t, c, c);
    else if (kind == ONE_BYTE)
        snprintf(text, sizeof text,
                 "UPDATE %s SET %s = char(unicode(%s) + 1) || substr(%s, 2) "
                 "WHERE %s <> '' AND sum <> 0",
                 t, c, c, c, c);
    else
        snprintf(text, sizeof text, "UPDATE %s SET %s = 'xy' || %s || 'z' WHERE sum <> 0", t, c, c);
    sqlite3_exec(db, text, NULL, NULL, &why);
    CHECK_STR(why, NULL);
    return sqlite3_changes(db) > 0;
}

static void expect_mended(struct storing *t, const struct buf *want, const char *what)
{
    AUTO(buf_free) struct buf got = BUF(1 << 16);
    struct err e = { 0 };
    CHECK(store_open_verified(t->path, &e) == NULL && strstr(e.msg, "is damaged"));
    storing_reopen(t);
    CHECK_STR(store_damaged(t->store, &e) ? e.msg : "", "");
    t->store = store_close(t->store);
    sqlite3 *db = file_of(t);
    dump(db, &got);
    CHECK_STR(str_eq(buf_str(&got), buf_str(want)) ? "" : what, "");
    sqlite3_close(db);
}

/* No start is made from it, or it is told and no reader gets it. */
static void expect_told(struct storing *t, const char *table, const char *what)
{
    struct err e = { 0 };
    char of[64];
    snprintf(of, sizeof of, " of table %s is not as it was written", table);
    t->store = store_open(t->loop, t->path, NULL, &e);
    CHECK_STR(t->store && !store_damaged(t->store, &e) ? what : "", "");
    CHECK_STR(strstr(e.msg, of) ? "" : e.msg, "");
    CHECK(strstr(e.hint, "nightshift restore"));
    t->store = store_close(t->store);
    CHECK(store_open_verified(t->path, &e) == NULL && strstr(e.msg, of));
}

static void put_back(const struct storing *t, const struct buf *file)
{
    int fd = open(t->path, O_WRONLY | O_TRUNC);
    CHECK(fd >= 0 && write(fd, file->p, file->n) == (ssize_t)file->n);
    close(fd);
}

struct all {
    struct storing t;
    struct buf file, want;
    int tried[KINDS];
};

/* A store with rows in every table, as file and as text. */
static void all_begin(struct all *a, void (*more)(struct storing *t))
{
    struct err e = { 0 };
    *a = (struct all){ .file = BUF(4 << 20), .want = BUF(1 << 20) };
    storing_begin_often(&a->t);
    storing_open(&a->t);
    fill(&a->t);
    if (more)
        more(&a->t);
    a->t.store = store_close(a->t.store);
    CHECK(file_read(a->t.path, 4 << 20, &a->file, &e) == 0);
    sqlite3 *db = file_of(&a->t);
    dump(db, &a->want);
    sqlite3_close(db);
}

static void all_end(struct all *a)
{
    storing_end(&a->t);
    buf_free(&a->file);
    buf_free(&a->want);
}

static void try_column(struct all *a, const char *table, const char *column, bool number)
{
    for (enum damage kind = ONE_BYTE; kind < KINDS; kind++) {
        char what[80];
        snprintf(what, sizeof what, "%s.%s", table, column);
        put_back(&a->t, &a->file);
        sqlite3 *db = file_of(&a->t);
        bool done = damage(db, table, column, number, kind);
        sqlite3_close(db);
        a->tried[kind] += done;
        if (done && kind == ONE_BYTE)
            expect_mended(&a->t, &a->want, what);
        else if (done)
            expect_told(&a->t, table, what);
    }
}

static void try_table(struct all *a, const struct sum_table *table)
{
    AUTO(buf_free) struct buf columns = BUF(4096);
    struct str rest, line, name;
    char text[120], column[40];
    put_back(&a->t, &a->file);
    sqlite3 *db = file_of(&a->t);
    snprintf(text, sizeof text, "SELECT name, type FROM pragma_table_info('%s')", table->name);
    ask(db, &columns, text);
    sqlite3_close(db);
    rest = buf_str(&columns);
    while (str_cut(rest, '\n', &line, &rest)) {
        str_cut(line, '|', &name, &line);
        snprintf(column, sizeof column, "%.*s", STR_ARG(name));
        if (strcmp(column, "seq") != 0) /* its place: whoever reads the journal counts */
            try_column(a, table->name, column, str_is(line, "INTEGER|"));
    }
}

static void one_byte_is_put_right_and_more_is_told(void)
{
    struct all a;
    struct err e = { 0 };
    all_begin(&a, NULL);
    for (size_t i = 0; i < sum_tables_n; i++)
        try_table(&a, &sum_tables[i]);
    CHECK(a.tried[ONE_BYTE] > 100 && a.tried[MANY] > 120);
    put_back(&a.t, &a.file);
    storing_open(&a.t); /* and as it was it is whole */
    CHECK(!store_damaged(a.t.store, &e));
    all_end(&a);
}

/* ---- any bit of the file ---- */

#define FLIPS 120
#define SEED 12

static void fill_more(struct storing *t)
{
    struct store_batch *b = store_batch_new(t->store);
    for (uint64_t id = 100; id < 220; id++) {
        struct store_job j = storing_job(id, "vision", "ana", "one-of-many", JOB_QUEUED);
        storing_add(b, &j);
        store_add_journal(b, 20, STR("{\"t\":20,\"ev\":\"pass\",\"and\":\"some words\"}"));
        store_add_event(b, 20, "job", STR("vision"), id, STR("{\"job\":1,\"state\":\"queued\"}"));
        store_add_step(b, &(struct store_step){ .job = id, .t_ms = 20, .what = STR("submitted") });
        store_add_audit(b, &(struct audit_row){ .t_ms = 21, .who = STR("ana"), .what = STR("y") });
    }
    storing_commit(t, b);
}

/* 'r': refused, 't': started, and told; 'w': whole.  Anything else is a start that is wrong, and nobody knows. */
static char start_on(struct all *a)
{
    AUTO(buf_free) struct buf got = BUF(1 << 20);
    struct err e = { 0 };
    a->t.store = store_open(a->t.loop, a->t.path, NULL, &e);
    if (!a->t.store)
        return e.msg[0] && e.hint[0] ? 'r' : '?';
    bool told = store_damaged(a->t.store, &e);
    struct store_filter any = { 0 };
    struct store_jobs jobs = { 0 };
    bool listed = store_jobs_list(a->t.store, &storing_all, &any, &a->t.arena, &jobs, &e) == 0 &&
                  jobs.n == 122;
    a->t.store = store_close(a->t.store);
    sqlite3 *db = file_of(&a->t);
    dump(db, &got);
    sqlite3_close(db);
    return told ? 't' : listed && str_eq(buf_str(&got), buf_str(&a->want)) ? 'w' : '?';
}

static void any_bit_is_put_right_or_told(void)
{
    struct all a;
    struct rng rng = { getenv("NIGHTSHIFT_SEED") ? strtoull(getenv("NIGHTSHIFT_SEED"), NULL, 10)
                                                 : SEED };
    int seen[256] = { 0 };
    all_begin(&a, fill_more);
    for (int i = 0; i < FLIPS; i++) {
        uint64_t bit = rng_below(&rng, (uint32_t)a.file.n * 8);
        a.file.p[bit / 8] = (char)(a.file.p[bit / 8] ^ (1 << bit % 8));
        put_back(&a.t, &a.file);
        char how = start_on(&a);
        CHECK_AT(bit, how != '?');
        seen[(unsigned char)how]++;
        a.file.p[bit / 8] = (char)(a.file.p[bit / 8] ^ (1 << bit % 8));
    }
    CHECK(seen['r'] > 0 && seen['w'] > FLIPS / 2);
    all_end(&a);
}

/* ---- whoever reads it ---- */

static int no_line(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    (void)ctx, (void)t_ms, (void)line, (void)e;
    return 0;
}

static void no_row(void *ctx, const struct ledger_row *row)
{
    (void)ctx, (void)row;
}

static int read_each(struct storing *t, int which, struct err *e)
{
    struct store_filter any = { 0 };
    struct store_jobs jobs;
    struct store_job job;
    struct store_runs runs;
    struct store_usages usage;
    struct store_events events;
    struct store_steps steps;
    struct store_notices notices;
    struct store_log log;
    struct str text;
    struct store_segment seg;
    switch (which) {
    case 0: return store_jobs_list(t->store, &storing_all, &any, &t->arena, &jobs, e);
    case 1: return store_job_get(t->store, &storing_all, 7, &t->arena, &job, e);
    case 2: return store_job_runs(t->store, &storing_all, 7, &t->arena, &runs, e);
    case 3:
        return store_usage(t->store, &storing_all, &(struct store_span){ 0, 9 * DAY, 9 * DAY, 0 },
                           &t->arena, &usage, e);
    case 4:
        return store_usage(t->store, &storing_all,
                           &(struct store_span){ DAY + 5, DAY + 9, 9 * DAY, 0 }, &t->arena, &usage,
                           e);
    case 5:
        return store_ledger(t->store, &storing_all, (struct store_days){ 0, 9 }, no_row, NULL, e);
    case 6:
        return store_events_after(t->store, &storing_all, &(struct store_after){ 0 }, &t->arena,
                                  &events, e);
    case 7:
        return store_job_steps(t->store, &storing_all, &(struct store_life){ .job = 7 }, &t->arena,
                               &steps, e);
    case 8: return store_log_get(t->store, 7, &log, e);
    case 9: return store_notices_of(t->store, STR("ana"), 9, &t->arena, &notices, e);
    case 10: return store_answer(t->store, STR("ana"), STR("key"), &t->arena, &text, e);
    case 11: return store_meta(t->store, "clock", &t->arena, &text, e);
    case 12: return store_journal_all(t->store, no_line, NULL, e);
    default: return store_segment(t->store, 0, &seg, e);
    }
}

static void whoever_reads_a_damaged_row_is_refused(void)
{
    static const char *const changes[] = {
        "job SET fails = 9999999999",
        "job_spec SET spec = 'ab' || spec || 'c'",
        "run SET mem_mib = 9999999999",
        "usage_day SET starts = 9999999999",
        "run_carried SET sum = sum + 9999999999",
        "ledger_day SET got = 9999999999",
        "event SET body = 'ab' || body || 'c'",
        "job_step SET note = 'ab' || note || 'c'",
        "job_log SET bytes = 9999999999",
        "notice SET why = 'abc'",
        "answer SET body = 'abc'",
        "meta SET value = 'a' || value || 'c'",
        "journal SET line = 'a' || line || 'c'",
        "journal_segment SET begins = 9999999999",
    };
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        AUTO(storing_end) struct storing t;
        struct err e = { 0 };
        char text[120];
        storing_begin_often(&t);
        storing_open(&t);
        fill(&t);
        CHECK_INT(read_each(&t, (int)i, &e), 0);
        CHECK(!store_damaged(t.store, &e));
        sqlite3 *db = file_of(&t); /* while it is open, as a disk does it */
        snprintf(text, sizeof text, "UPDATE %s WHERE sum <> 0", changes[i]);
        CHECK(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK);
        sqlite3_close(db);
        CHECK(read_each(&t, (int)i, &e) < 0);
        CHECK_STR(strstr(e.msg, "is not as it was written") ? "" : changes[i], "");
        CHECK(store_damaged(t.store, &e) && strstr(e.hint, "nightshift restore"));
    }
}

static void what_is_changed_later_stays_damaged(void)
{
    AUTO(storing_end) struct storing t;
    struct err e = { 0 };
    storing_begin_often(&t);
    storing_open(&t);
    fill(&t);
    sqlite3 *db = file_of(&t);
    CHECK(sqlite3_exec(db, "UPDATE job SET submitted_ms = 9999999999 WHERE id = 8", NULL, NULL,
                       NULL) == SQLITE_OK);
    sqlite3_close(db);
    struct store_batch *b = store_batch_new(t.store);
    store_set_job(b, 8, &(struct store_job_now){ .state = JOB_QUEUED });
    storing_commit(&t, b);
    t.store = store_close(t.store);
    CHECK(store_open(t.loop, t.path, NULL, &e) == NULL && strstr(e.msg, "row 8 of table job"));
}

static void counts_are_made_anew(void)
{
    AUTO(storing_end) struct storing t;
    struct err e = { 0 };
    uint64_t n[JOB_STATE_COUNT];
    struct store_log_sum sum;
    storing_begin_often(&t);
    storing_open(&t);
    fill(&t);
    t.store = store_close(t.store);
    sqlite3 *db = file_of(&t);
    CHECK(sqlite3_exec(db,
                       "UPDATE job_count SET n = n + 16; UPDATE log_sum SET bytes = 1;"
                       "DELETE FROM log_tenant",
                       NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
    storing_open(&t);
    CHECK(store_jobs_count(t.store, &storing_all, n, &e) == 0);
    CHECK(n[JOB_RUNNING] == 1 && n[JOB_SUCCEEDED] == 1);
    CHECK(store_log_sum(t.store, &sum, &e) == 0 && sum.logs == 1 && sum.bytes == 5000);
}

static const struct test tests[] = {
    { "every table has sums, or is known by others", every_table_has_sums_or_is_known_by_others },
    { "one byte is put right, and more is told", one_byte_is_put_right_and_more_is_told },
    { "any bit is put right, or told", any_bit_is_put_right_or_told },
    { "whoever reads a damaged row is refused", whoever_reads_a_damaged_row_is_refused },
    { "what is changed later stays damaged", what_is_changed_later_stays_damaged },
    { "counts are made anew", counts_are_made_anew },
};
TEST_CASES(tests)
