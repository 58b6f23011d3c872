/* The newest segment of a journal is damaged line by line, and made anew from the one before it. */
#include "control/patch.h"

#include <sqlite3.h>

#include "store/segment.h"
#include "tests/lib/controlling.h"

#define LONG(fields) "{\"command\":[\"sleep\",\"3600\"],\"resources\":{\"gpus\":1}" fields "}"
#define DAY_MS INT64_C(86400000)

static void sql(struct controlling *t, const char *text)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    t->s.store = store_close(t->s.store);
    CHECK(sqlite3_open(t->s.path, &db) == SQLITE_OK);
    sqlite3_exec(db, text, NULL, NULL, &why);
    CHECK_STR(why, NULL);
    CHECK(sqlite3_close(db) == SQLITE_OK);
    storing_open(&t->s);
}

/* Two days of jobs, then a cut, and some that came since. */
static void live_a_while(struct controlling *t)
{
    struct err e;
    controlling_begin(t, NULL);
    uint64_t held = controlling_submit(t, LONG(",\"held\":true,\"name\":\"for later\""));
    for (int i = 0; i < 6; i++) {
        controlling_submit(t, LONG(",\"name\":\"one of six\",\"max_time\":\"20h\""));
        controlling_wait(t, DAY_MS / 3);
    }
    uint64_t paused = controlling_submit(t, LONG(""));
    controlling_settle(t);
    CHECK(controlling_verb(t, paused, VERB_FREEZE) == 0);
    for (int i = 0; i < 25100; i++) {
        CHECK(control_verb(t->c, held, VERB_RELEASE, STR("ana"), (struct control_done){ 0 }, &e) ==
              0);
        CHECK(control_verb(t->c, held, VERB_HOLD, STR("ana"), (struct control_done){ 0 }, &e) == 0);
    }
    controlling_settle(t);
    CHECK(store_journal_lines(t->s.store) < 200);
    controlling_submit(t, LONG(",\"name\":\"since then\""));
    controlling_settle(t);
    CHECK_STR(controlling_journal_differs(t), "");
}

static int add_line(void *ctx, const struct store_seen *seen, struct err *e)
{
    struct buf *all = ctx;
    (void)e;
    buf_printf(all, "%llu %d %lld %.*s\n", (unsigned long long)seen->at, seen->whole,
               (long long)seen->t_ms, STR_ARG(seen->line));
    return 0;
}

static void dump(struct controlling *t, struct store_segment *seg, struct buf *out)
{
    struct err e = { 0 };
    CHECK(store_segment(t->s.store, 0, seg, &e) == 0);
    CHECK(store_segment_lines(t->s.store, seg->number, add_line, out, &e) == 0);
}

static void expect_mended(struct controlling *t, const char *damage)
{
    AUTO(buf_free) struct buf before = BUF(4 << 20), after = BUF(4 << 20);
    struct store_segment seg;
    struct err e = { 0 };
    dump(t, &seg, &before);
    sql(t, damage);
    CHECK(patch_journal(t->s.store, t->log, &e) == 0);
    CHECK_STR(e.msg, "");
    dump(t, &seg, &after);
    CHECK(str_eq(buf_str(&before), buf_str(&after)));
}

static void expect_refused(struct controlling *t, const char *damage, const char *why)
{
    struct err e = { 0 };
    sql(t, damage);
    CHECK_STR(patch_journal(t->s.store, t->log, &e) < 0 ? "" : damage, "");
    CHECK(e.code == ERR_INTERNAL && strstr(e.msg, "the journal is damaged"));
    CHECK(strstr(e.msg, why) && strstr(e.hint, "nightshift restore"));
}

#define NEWEST "(SELECT max(number) FROM journal_segment) * 4294967296"

static void what_a_segment_begins_with_is_made_again(void)
{
    struct controlling t;
    struct store_segment seg;
    struct err e = { 0 };
    live_a_while(&t);
    controlling_kill(&t);
    CHECK(store_segment(t.s.store, 0, &seg, &e) == 0 && seg.number == 2 && seg.begins > 20);
    CHECK(store_journal_lines(t.s.store) > seg.begins);
    for (uint64_t at = 0; at < seg.begins; at += 5) {
        char damage[240];
        snprintf(damage, sizeof damage,
                 "UPDATE journal SET line = 'no' || line WHERE seq = %llu + " NEWEST,
                 (unsigned long long)at);
        expect_mended(&t, damage);
        snprintf(damage, sizeof damage, "DELETE FROM journal WHERE seq = %llu + " NEWEST,
                 (unsigned long long)at);
        expect_mended(&t, damage);
    }
    char all[240];
    snprintf(all, sizeof all,
             "DELETE FROM journal WHERE seq >= " NEWEST " AND seq < %llu + " NEWEST,
             (unsigned long long)seg.begins);
    expect_mended(&t, all);
    snprintf(all, sizeof all,
             "UPDATE journal SET line = 'x' WHERE seq >= " NEWEST " AND seq < %llu + " NEWEST,
             (unsigned long long)seg.begins);
    expect_mended(&t, all);
    controlling_boot(&t);
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void what_can_only_be_guessed_is_refused(void)
{
    struct controlling t;
    live_a_while(&t);
    controlling_kill(&t);
    sql(&t, "CREATE TABLE kept AS SELECT * FROM journal");
#define AGAIN "DELETE FROM journal; INSERT INTO journal SELECT * FROM kept; "
    expect_refused(&t,
                   "UPDATE journal SET line = 'no' || line WHERE seq = "
                   "(SELECT max(seq) FROM journal)",
                   "what they told is nowhere else");
    expect_refused(&t, AGAIN "DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal) - 1",
                   "what they told is nowhere else");
    expect_refused(&t,
                   AGAIN "UPDATE journal SET line = 'no' || line WHERE seq IN (4294967296 + 5, "
                         "4294967296 * 2 + 5)",
                   "nor is the segment before it");
    expect_refused(&t,
                   AGAIN
                   "DELETE FROM journal WHERE seq = (SELECT max(seq) FROM journal WHERE seq < "
                   "4294967296 * 2) OR seq = 4294967296 * 2 + 5",
                   "nor is the segment before it");
    expect_refused(&t,
                   AGAIN "UPDATE journal SET line = 'no' || line WHERE seq = 4294967296 * 2 + 5; "
                         "DELETE FROM journal_segment WHERE number = 1",
                   "is not there");
    controlling_end(&t);
}

static const struct test tests[] = {
    { "what a segment begins with is made again", what_a_segment_begins_with_is_made_again },
    { "what can only be guessed is refused", what_can_only_be_guessed_is_refused },
};
TEST_CASES(tests)
