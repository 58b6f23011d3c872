#include <sqlite3.h>

#include "store/audit.h"
#include "tests/lib/storing.h"

static void sql(const struct storing *t, const char *text, const char *want)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    CHECK(sqlite3_open(t->path, &db) == SQLITE_OK);
    sqlite3_exec(db, text, NULL, NULL, &why);
    CHECK_STR(why, want);
    sqlite3_free(why);
    CHECK(sqlite3_close(db) == SQLITE_OK);
}

static struct audit_row row(const char *who, const char *what, const char *subject, int64_t t_ms)
{
    return (struct audit_row){ .t_ms = t_ms,
                               .who = str_of(who),
                               .via = STR("socket uid 1000"),
                               .address = STR("unix"),
                               .what = str_of(what),
                               .subject = str_of(subject),
                               .tenant = STR("vision"),
                               .before = STR("{\"weight\":1}"),
                               .after = STR("{\"weight\":2}"),
                               .reason = STR("they asked") };
}

static void add(struct storing *t, const struct audit_row *r)
{
    struct store_batch *b = store_batch_new(t->store);
    store_add_audit(b, r);
    storing_commit(t, b);
}

static void begin_with_rows(struct storing *t, int n)
{
    storing_begin(t);
    storing_open(t);
    for (int i = 1; i <= n; i++) {
        struct audit_row r = row(i % 2 ? "ana" : "ben", i % 3 ? "node.drain" : "pool.set",
                                 i % 2 ? "desk1" : "desk2", i * 1000);
        add(t, &r);
    }
}

static struct audit_chain verify(struct storing *t, const struct audit_link *noted)
{
    struct store_audit_check c;
    struct err e = { 0 };
    int calls = 0;
    CHECK(store_audit_check_begin(t->store, noted, &c, &e) == 0);
    while (!c.done) {
        CHECK(store_audit_check(t->store, &c, 3, &e) == 0);
        CHECK(++calls < 10000);
    }
    return c.chain;
}

static struct store_audits list(struct storing *t, const struct store_audit_filter *f)
{
    struct store_audits out;
    struct err e = { 0 };
    CHECK(store_audit_list(t->store, f, &t->arena, &out, &e) == 0);
    return out;
}

static void rows_are_numbered_and_chained(void)
{
    AUTO(storing_end) struct storing t;
    begin_with_rows(&t, 7);
    struct store_audits all = list(&t, &(struct store_audit_filter){ 0 });
    CHECK(all.n == 7 && all.next == 0 && all.v[0].row.number == 7 && all.v[6].row.number == 1);
    CHECK_STR(all.v[0].row.reason.p, "they asked");
    CHECK_STR(all.v[0].row.after.p, "{\"weight\":2}");
    struct audit_chain c = verify(&t, NULL);
    CHECK(c.fault == AUDIT_FAULT_NONE && c.rows == 7);
    struct store_audit_ends ends;
    struct err e = { 0 };
    CHECK(store_audit_ends(t.store, &ends, &e) == 0);
    CHECK(ends.cut.number == 0 && ends.head.number == 7);
    CHECK(audit_hash_eq(&ends.head.hash, &all.v[0].hash));
    storing_reopen(&t);
    struct audit_row r = row("ana", "node.resume", "desk1", 9000);
    add(&t, &r);
    c = verify(&t, &ends.head);
    CHECK(c.fault == AUDIT_FAULT_NONE && c.rows == 8 && c.found);
}

static void a_batch_that_is_thrown_away_leaves_no_trace(void)
{
    AUTO(storing_end) struct storing t;
    begin_with_rows(&t, 2);
    struct store_batch *lost = store_batch_new(t.store), *kept = store_batch_new(t.store);
    struct audit_row a = row("ana", "node.drain", "lost", 1), b = row("ben", "pool.set", "kept", 2);
    store_add_audit(lost, &a);
    store_add_audit(kept, &b);
    store_add_audit(kept, &b);
    store_batch_free(lost);
    storing_commit(&t, kept);
    struct audit_chain c = verify(&t, NULL);
    CHECK(c.fault == AUDIT_FAULT_NONE && c.rows == 4);
    CHECK(list(&t, &(struct store_audit_filter){ .subject = STR("lost") }).n == 0);
    CHECK(list(&t, &(struct store_audit_filter){ .subject = STR("kept") }).n == 2);
}

static void filters_narrow_and_pages_go_on(void)
{
    AUTO(storing_end) struct storing t;
    begin_with_rows(&t, 30);
    CHECK(list(&t, &(struct store_audit_filter){ .who = STR("ana") }).n == 15);
    CHECK(list(&t, &(struct store_audit_filter){ .what = STR("pool.") }).n == 10);
    CHECK(list(&t, &(struct store_audit_filter){ .what = STR("pool.settle") }).n == 0);
    CHECK(list(&t, &(struct store_audit_filter){ .tenant = STR("vision") }).n == 30);
    CHECK(list(&t, &(struct store_audit_filter){ .tenant = STR("audio") }).n == 0);
    CHECK(list(&t, &(struct store_audit_filter){ .since_ms = 11000, .until_ms = 14000 }).n == 3);
    struct store_audit_filter f = { .who = STR("ben"), .what = STR("node"), .limit = 4 };
    uint64_t seen = 0, last = UINT64_MAX;
    do {
        struct store_audits page = list(&t, &f);
        for (size_t i = 0; i < page.n; i++) {
            CHECK(page.v[i].row.number < last && str_is(page.v[i].row.who, "ben"));
            last = page.v[i].row.number;
        }
        seen += page.n;
        f.before = page.next;
    } while (f.before);
    CHECK(seen == 10);
}

static void a_page_that_has_looked_at_enough_ends_and_the_next_goes_on(void)
{
    AUTO(storing_end) struct storing t;
    begin_with_rows(&t, 1);
    struct store_batch *b = store_batch_new(t.store);
    struct audit_row r = row("ana", "node.drain", "desk1", 1);
    for (int i = 0; i < 12000; i++)
        store_add_audit(b, &r);
    storing_commit(&t, b);
    struct store_audit_filter f = { .until_ms = 2, .what = STR("node.resume") };
    struct store_audits page = list(&t, &f);
    CHECK(page.n == 0 && page.next == 7002);
    f = (struct store_audit_filter){ .since_ms = 1000, .before = page.next };
    page = list(&t, &f);
    CHECK(page.n == 0 && page.next == 2002);
    f.before = page.next;
    page = list(&t, &f);
    CHECK(page.n == 1 && page.v[0].row.number == 1 && page.next == 0);
}

static void texts_are_bounded_and_utf8(void)
{
    AUTO(storing_end) struct storing t;
    begin_with_rows(&t, 1);
    AUTO(free_p) char *large = xcalloc(AUDIT_JSON_MAX + 2, 1);
    memset(large, 'x', AUDIT_JSON_MAX + 1);
    struct audit_row r = row("\xff", "node.drain", "a\0b", 1);
    r.before = (struct str){ large, AUDIT_JSON_MAX };
    r.after = (struct str){ large, AUDIT_JSON_MAX + 1 };
    r.reason = (struct str){ large, AUDIT_TEXT_MAX + 1 };
    r.subject = (struct str){ "a\0b", 3 };
    add(&t, &r);
    struct store_audits got = list(&t, &(struct store_audit_filter){ .limit = 1 });
    CHECK(got.v[0].row.before.n == AUDIT_JSON_MAX && got.v[0].row.subject.n == 3);
    CHECK_STR(got.v[0].row.after.p, "{\"omitted_bytes\":16385}");
    CHECK_STR(got.v[0].row.reason.p, "(1025 bytes)");
    CHECK_STR(got.v[0].row.who.p, "(1 bytes)");
    CHECK(verify(&t, NULL).fault == AUDIT_FAULT_NONE);
}

static void the_table_refuses_changes(void)
{
    AUTO(storing_end) struct storing t;
    begin_with_rows(&t, 3);
    sql(&t, "UPDATE audit SET who = 'eve' WHERE number = 2", "the audit is not changed");
    sql(&t, "DELETE FROM audit WHERE number = 1", "the audit is cut by keep_audit only");
    sql(&t, "INSERT INTO audit SELECT 2, 1, '', '', '', '', '', '', '', '', '', x'00'",
        "the audit only grows");
    sql(&t, "INSERT OR REPLACE INTO audit SELECT 2, 1, '', '', '', '', '', '', '', '', '', x'00'",
        "the audit only grows");
    CHECK(verify(&t, NULL).fault == AUDIT_FAULT_NONE);
}

/* What somebody with the file does, and what is found. */
static const struct harm {
    const char *sql;
    enum audit_fault fault;
    uint64_t at;
} harms[] = {
    { "UPDATE audit SET reason = 'they begged' WHERE number = 4", AUDIT_FAULT_HASH, 4 },
    { "DELETE FROM audit WHERE number = 4", AUDIT_FAULT_GAP, 4 },
    { "DELETE FROM audit WHERE number = 1", AUDIT_FAULT_GAP, 1 },
    { "DELETE FROM audit WHERE number >= 6", AUDIT_FAULT_HEAD, 6 },
    { "UPDATE audit SET number = -number WHERE number IN (3, 4);"
      "UPDATE audit SET number = 7 + number WHERE number IN (-3, -4)",
      AUDIT_FAULT_HASH, 3 },
    { "INSERT INTO audit SELECT 8, t_ms, who, via, address, what, subject, tenant, before, after, "
      "reason, hash FROM audit WHERE number = 7",
      AUDIT_FAULT_OUTSIDE, 8 },
    { "INSERT INTO audit SELECT 0, t_ms, who, via, address, what, subject, tenant, before, after, "
      "reason, hash FROM audit WHERE number = 7",
      AUDIT_FAULT_OUTSIDE, 0 },
    { "INSERT INTO meta (key, value) SELECT 'audit_cut', '2 ' || lower(hex(hash)) FROM audit WHERE "
      "number = 2;"
      "DELETE FROM audit WHERE number <= 2",
      AUDIT_FAULT_CUT, 3 },
    { "DELETE FROM meta WHERE key = 'audit_head'", AUDIT_FAULT_OUTSIDE, 1 },
    { "DELETE FROM audit", AUDIT_FAULT_HEAD, 1 },
};

static void whatever_is_changed_in_the_file_is_found(void)
{
    for (size_t i = 0; i < ARRAY_LEN(harms); i++) {
        AUTO(storing_end) struct storing t;
        begin_with_rows(&t, 7);
        sql(&t, "DROP TRIGGER audit_grows; DROP TRIGGER audit_stays; DROP TRIGGER audit_goes",
            NULL);
        sql(&t, harms[i].sql, NULL);
        struct audit_chain c = verify(&t, NULL);
        CHECK_AT(i, c.fault == harms[i].fault && c.fault_at == harms[i].at);
        /* What follows is written all the same, and does not heal it. */
        struct audit_row r = row("ana", "node.resume", "desk1", 9000);
        add(&t, &r);
        CHECK_AT(i, verify(&t, NULL).fault != AUDIT_FAULT_NONE);
    }
}

static void a_chain_that_was_written_anew_is_found_by_a_noted_head(void)
{
    AUTO(storing_end) struct storing t;
    struct store_audit_ends ends;
    struct err e = { 0 };
    begin_with_rows(&t, 5);
    CHECK(store_audit_ends(t.store, &ends, &e) == 0);
    sql(&t, "DROP TRIGGER audit_goes; DELETE FROM audit; DELETE FROM meta WHERE key = 'audit_head'",
        NULL);
    for (int i = 0; i < 6; i++) {
        struct audit_row r = row("eve", "node.drain", "desk1", 1);
        add(&t, &r);
    }
    CHECK(verify(&t, NULL).fault == AUDIT_FAULT_NONE);
    CHECK(verify(&t, &ends.head).fault == AUDIT_FAULT_NOTED);
}

static void cut(struct storing *t, int64_t before_ms, uint64_t *out_rows)
{
    struct store_audit_old old;
    struct err e = { 0 };
    char link[AUDIT_LINK_TEXT];
    CHECK(store_audit_old(t->store, before_ms, &old, &e) == 0);
    *out_rows = old.rows;
    if (!old.rows)
        return;
    struct store_batch *b = store_batch_new(t->store);
    struct audit_row r = row("system", "audit.cut", audit_link_format(&old.last, link), before_ms);
    store_cut_audit(b, old.last.number);
    store_add_audit(b, &r);
    storing_commit(t, b);
}

static void a_cut_removes_the_oldest_and_the_rest_verifies(void)
{
    AUTO(storing_end) struct storing t;
    uint64_t rows;
    begin_with_rows(&t, 9);
    cut(&t, 1000, &rows);
    CHECK(rows == 0);
    cut(&t, 4500, &rows);
    CHECK(rows == 4);
    struct audit_chain c = verify(&t, NULL);
    CHECK(c.fault == AUDIT_FAULT_NONE && c.from.number == 4 && c.rows == 6);
    cut(&t, 100000, &rows); /* all, the last cut's row too */
    CHECK(rows == 6);
    c = verify(&t, NULL);
    CHECK(c.fault == AUDIT_FAULT_NONE && c.from.number == 10 && c.rows == 1);
    store_cut_audit(store_batch_new(t.store), 1); /* thrown away with the store */
    struct store_batch *b = store_batch_new(t.store);
    store_cut_audit(b, 4); /* a row that is not there cuts nothing, and stops nobody */
    storing_commit(&t, b);
    CHECK(verify(&t, NULL).fault == AUDIT_FAULT_NONE);
}

static void a_row_in_front_of_a_clock_that_was_set_back_keeps_those_behind(void)
{
    AUTO(storing_end) struct storing t;
    uint64_t rows;
    begin_with_rows(&t, 3);
    struct audit_row late = row("ana", "node.drain", "x", 90000), early = row("ana", "x", "x", 5);
    add(&t, &late);
    add(&t, &early);
    cut(&t, 50000, &rows);
    CHECK(rows == 3);
    CHECK(verify(&t, NULL).fault == AUDIT_FAULT_NONE);
}

static void a_check_that_is_overtaken_by_a_cut_begins_again(void)
{
    AUTO(storing_end) struct storing t;
    struct store_audit_check c;
    struct err e = { 0 };
    uint64_t rows;
    begin_with_rows(&t, 9);
    CHECK(store_audit_check_begin(t.store, NULL, &c, &e) == 0);
    CHECK(store_audit_check(t.store, &c, 2, &e) == 0 && !c.done);
    cut(&t, 6500, &rows);
    while (!c.done)
        CHECK(store_audit_check(t.store, &c, 2, &e) == 0);
    CHECK(c.chain.fault == AUDIT_FAULT_NONE && c.chain.from.number == 6);
}

static const struct test tests[] = {
    { "rows are numbered and chained, over a restart too", rows_are_numbered_and_chained },
    { "a batch that is thrown away leaves no trace", a_batch_that_is_thrown_away_leaves_no_trace },
    { "filters narrow, and pages go on", filters_narrow_and_pages_go_on },
    { "a page that has looked at enough ends, and the next goes on",
      a_page_that_has_looked_at_enough_ends_and_the_next_goes_on },
    { "texts are bounded and UTF-8", texts_are_bounded_and_utf8 },
    { "the table refuses changes", the_table_refuses_changes },
    { "whatever is changed in the file is found", whatever_is_changed_in_the_file_is_found },
    { "a chain that was written anew is found by a noted head",
      a_chain_that_was_written_anew_is_found_by_a_noted_head },
    { "a cut removes the oldest, and the rest verifies",
      a_cut_removes_the_oldest_and_the_rest_verifies },
    { "a row in front of a clock that was set back keeps those behind",
      a_row_in_front_of_a_clock_that_was_set_back_keeps_those_behind },
    { "a check that is overtaken by a cut begins again",
      a_check_that_is_overtaken_by_a_cut_begins_again },
};
TEST_CASES(tests)
