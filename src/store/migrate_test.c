#include "store/migrate.h"

#include <sqlite3.h>

#include "base/buf.h"
#include "sys/file.h"
#include "tests/lib/storing.h"

/* Runs SQL on the file as it lies there. */
static void sql(const struct storing *t, const char *text)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    CHECK(sqlite3_open(t->path, &db) == SQLITE_OK);
    sqlite3_exec(db, text, NULL, NULL, &why);
    CHECK_STR(why, NULL);
    CHECK(sqlite3_close(db) == SQLITE_OK);
}

/* What a version 1 left behind: three jobs, their specs, a run, two lines of journal. */
static const char version_1_rows[] =
    "INSERT INTO job VALUES (1,'vision','ana','train',1000,10,1,1000,0,0, 1,1,20,0,0,0,0,0,'','',"
    "'',0,0), (2,'vision','ben','eval',1001,11,2,2000,0,0, 9,1,30,21,30,1,0,0,'','','',0,0),"
    "(3,'audio','cleo','train',1002,12,1,500,0,0, 3,2,40,40,0,1,0,0,'','','[]',0,0);"
    "INSERT INTO job_spec VALUES (1,'{\"a\":1}'), (2,'{}'), (3,'{}');"
    "INSERT INTO run VALUES (2,1,'vision','ben','desk1','A100',2000,4000,100,21,30);"
    "INSERT INTO journal VALUES (4294967296,1,'first'), (4294967297,2,'second');"
    "INSERT INTO event VALUES (5,1,'job','vision',1,'{}');"
    "PRAGMA application_id = 1314080852; PRAGMA user_version = 1;";

static void make_version_1(struct storing *t)
{
    storing_begin(t);
    sql(t, migrations[0].sql);
    sql(t, version_1_rows);
}

static void the_steps_are_numbered_without_gaps(void)
{
    for (size_t i = 0; i < migrations_n; i++) {
        CHECK(migrations[i].number == (int)i + 1);
        CHECK(migrations[i].name[0] && migrations[i].sql[0]);
    }
    CHECK(STORE_APPLICATION_ID == 1314080852);
}

static void an_older_store_is_brought_up_to_date(void)
{
    AUTO(storing_end) struct storing t;
    make_version_1(&t);
    storing_open(&t);
    struct err e = { 0 };
    uint64_t n[JOB_STATE_COUNT];
    struct store_job j;
    for (int round = 0; round < 2; round++) {
        CHECK(store_jobs_count(t.store, &storing_all, n, &e) == 0);
        CHECK(n[JOB_QUEUED] == 1 && n[JOB_SUCCEEDED] == 1 && n[JOB_RUNNING] == 1);
        CHECK(n[JOB_FAILED] == 0 && store_last_job(t.store) == 3);
        CHECK(store_last_event(t.store) == 5 && store_journal_lines(t.store) == 2);
        CHECK(store_job_get(t.store, &storing_all, 1, &t.arena, &j, &e) == 0);
        CHECK(str_is(j.fixed.spec, "{\"a\":1}") && str_is(j.fixed.user, "ana"));
        storing_reopen(&t); /* the steps run once */
    }
    struct store_batch *b = store_batch_new(t.store);
    struct store_job_now now = { .state = JOB_STARTING };
    store_set_job(b, 1, &now);
    storing_commit(&t, b);
    CHECK(store_jobs_count(t.store, &storing_all, n, &e) == 0);
    CHECK(n[JOB_QUEUED] == 0 && n[JOB_STARTING] == 1);
}

static void a_step_that_fails_leaves_the_store_as_it_was(void)
{
    AUTO(storing_end) struct storing t;
    make_version_1(&t);
    sql(&t, "CREATE TRIGGER job_moved AFTER UPDATE ON job BEGIN SELECT 1; END"); /* in the way */
    struct err e = { 0 };
    CHECK(store_open(t.loop, t.path, NULL, &e) == NULL);
    CHECK(strstr(e.msg, "to format 2 (counts)") && strstr(e.msg, "job_moved"));
    sql(&t, "DROP TRIGGER job_moved"); /* and nothing else of step 2 is in the way now */
    storing_open(&t);
    uint64_t n[JOB_STATE_COUNT];
    CHECK(store_jobs_count(t.store, &storing_all, n, &e) == 0 && n[JOB_QUEUED] == 1);
}

static void expect_refused_unchanged(struct storing *t, enum err_code code, struct err *e)
{
    AUTO(buf_free) struct buf before = BUF(0), after = BUF(0);
    struct err read;
    CHECK(file_read(t->path, 1 << 20, &before, &read) == 0);
    *e = (struct err){ 0 };
    CHECK(store_open(t->loop, t->path, NULL, e) == NULL);
    CHECK_INT(e->code, code);
    CHECK(strstr(e->msg, t->path) && e->hint[0]);
    CHECK(file_read(t->path, 1 << 20, &after, &read) == 0);
    CHECK(str_eq(buf_str(&before), buf_str(&after)));
}

static void a_newer_store_is_refused_by_both_names(void)
{
    AUTO(storing_end) struct storing t;
    make_version_1(&t);
    struct err e;
    sql(&t, "PRAGMA user_version = 77; INSERT INTO meta VALUES ('program', '9.8.7')");
    expect_refused_unchanged(&t, ERR_CONFLICT, &e);
    CHECK(strstr(e.msg, "format 77") && strstr(e.msg, "nightshiftd 9.8.7"));
    CHECK(strstr(e.msg, "nightshiftd " NS_VERSION));
    sql(&t, "DROP TABLE meta"); /* a shape that we cannot know */
    expect_refused_unchanged(&t, ERR_CONFLICT, &e);
    CHECK(strstr(e.msg, "format 77") && strstr(e.msg, "a newer nightshiftd"));
}

static void the_file_of_another_program_is_refused(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    struct err e;
    sql(&t, "CREATE TABLE photos (id INTEGER)");
    expect_refused_unchanged(&t, ERR_INVALID, &e);
    CHECK(strstr(e.msg, "another program"));
    sql(&t, "DROP TABLE photos; PRAGMA application_id = 252006674");
    expect_refused_unchanged(&t, ERR_INVALID, &e);
}

static void a_new_store_knows_who_made_it(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct str by;
    struct err e;
    CHECK(store_meta(t.store, "program", &t.arena, &by, &e) == 0 && str_is(by, NS_VERSION));
}

static const struct test tests[] = {
    { "the steps are numbered without gaps", the_steps_are_numbered_without_gaps },
    { "an older store is brought up to date, once", an_older_store_is_brought_up_to_date },
    { "a step that fails leaves the store as it was",
      a_step_that_fails_leaves_the_store_as_it_was },
    { "a newer store is refused by both names and not changed",
      a_newer_store_is_refused_by_both_names },
    { "the file of another program is refused and not changed",
      the_file_of_another_program_is_refused },
    { "a new store knows who made it", a_new_store_knows_who_made_it },
};
TEST_CASES(tests)
