#include "store/read.h"

#include "base/buf.h"
#include "store/directory.h"
#include "store/kept.h"
#include "store/pools.h"
#include "tests/lib/storing.h"

/* ---- the journal ---- */

static int add_line(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    struct buf *out = ctx;
    (void)e;
    buf_printf(out, "%lld:%.*s;", (long long)(line.n ? t_ms : 0), STR_ARG(line));
    return 0;
}

static void expect_journal(struct storing *t, const char *last, const char *all, uint64_t lines)
{
    AUTO(buf_free) struct buf got_last = BUF(10000), got_all = BUF(10000);
    struct err e = { 0 };
    buf_addz(&got_last, "");
    buf_addz(&got_all, "");
    CHECK(store_journal(t->store, add_line, &got_last, &e) == 0);
    CHECK(store_journal_all(t->store, add_line, &got_all, &e) == 0);
    CHECK(str_is(buf_str(&got_last), last));
    CHECK(str_is(buf_str(&got_all), all));
    CHECK(store_journal_lines(t->store) == lines);
}

static void the_journal_is_read_by_segments(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    expect_journal(&t, "", "", 0);
    struct store_batch *b = store_batch_new(t.store);
    store_add_journal(b, 1, STR("a"));
    store_add_journal(b, 2, STR("b"));
    storing_commit(&t, b);
    expect_journal(&t, "1:a;2:b;", "1:a;2:b;", 2);
    b = store_batch_new(t.store);
    store_add_journal(b, 3, STR("c"));
    store_new_segment(b, 4, 2);
    store_add_journal(b, 5, STR("d"));
    storing_commit(&t, b);
    expect_journal(&t, "5:d;", "1:a;2:b;3:c;0:;5:d;", 1);
    storing_reopen(&t);
    expect_journal(&t, "5:d;", "1:a;2:b;3:c;0:;5:d;", 1);
    b = store_batch_new(t.store);
    store_new_segment(b, 6, 1); /* keeps the one with d, drops the first */
    storing_commit(&t, b);
    expect_journal(&t, "", "5:d;", 0);
    storing_reopen(&t);
    expect_journal(&t, "", "5:d;", 0);
    b = store_batch_new(t.store);
    store_new_segment(b, 7, 0);
    store_new_segment(b, 7, 0);
    store_add_journal(b, 8, STR("e"));
    storing_commit(&t, b);
    expect_journal(&t, "8:e;", "8:e;", 1);
    storing_reopen(&t);
    expect_journal(&t, "8:e;", "8:e;", 1);
}

/* Pages of so many lines, from the segment of this time on. */
static void expect_pages(struct storing *t, int64_t since_ms, uint32_t lines, const char *want)
{
    AUTO(buf_free) struct buf got = BUF(10000);
    struct store_journal_place at = { 0 };
    struct err e = { 0 };
    int pages = 0;
    buf_addz(&got, "");
    CHECK(store_journal_from(t->store, since_ms, &at, &e) == 0);
    for (; at.next <= at.last && pages < 100; pages++)
        CHECK(store_journal_page(t->store, &at, lines, add_line, &got, &e) == 0);
    CHECK(pages < 100);
    CHECK_STR(buf_str(&got).p, want);
}

static void the_journal_is_read_in_pages(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    expect_pages(&t, 0, 2, "");
    struct store_batch *b = store_batch_new(t.store);
    for (int i = 1; i <= 3; i++)
        store_add_journal(b, i, STR("a"));
    store_new_segment(b, 4, 2);
    store_add_journal(b, 5, STR("b"));
    store_add_journal(b, 6, STR("b"));
    storing_commit(&t, b);
    expect_pages(&t, 0, 1, "0:;1:a;2:a;3:a;0:;5:b;6:b;");
    expect_pages(&t, 0, 2, "0:;1:a;2:a;3:a;0:;5:b;6:b;");
    expect_pages(&t, 0, 100, "0:;1:a;2:a;3:a;0:;5:b;6:b;");
    expect_pages(&t, 5, 2, "0:;5:b;6:b;");
}

/* A reader whose next line has gone meanwhile is told so. */
static void a_journal_cut_while_it_is_read_is_refused(void)
{
    AUTO(storing_end) struct storing t;
    AUTO(buf_free) struct buf got = BUF(10000);
    struct store_journal_place at = { 0 };
    struct err e = { 0 };
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    for (int i = 1; i <= 3000; i++)
        store_add_journal(b, i, STR("a"));
    storing_commit(&t, b);
    CHECK(store_journal_from(t.store, 0, &at, &e) == 0);
    CHECK(store_journal_page(t.store, &at, 10, add_line, &got, &e) == 0);
    b = store_batch_new(t.store);
    store_new_segment(b, 4000, 0);
    store_trim(b, &(struct store_trim){ 0 });
    storing_commit(&t, b);
    CHECK(store_journal_page(t.store, &at, 10, add_line, &got, &e) < 0);
    CHECK_INT(e.code, ERR_CONFLICT);
}

static int stop_at_second(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    (void)t_ms;
    (void)line;
    return ++*(int *)ctx == 2 ? err_set(e, ERR_QUOTA, "enough") : 0;
}

static void a_walk_ends_when_its_reader_fails(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    for (int i = 0; i < 5; i++)
        store_add_journal(b, i, STR("x"));
    storing_commit(&t, b);
    struct err e = { 0 };
    int n = 0;
    CHECK(store_journal(t.store, stop_at_second, &n, &e) < 0 && n == 2 && e.code == ERR_QUOTA);
    n = 10;
    CHECK(store_journal(t.store, stop_at_second, &n, &e) == 0 &&
          n == 15); /* from the start again */
}

/* ---- events ---- */

/* The numbers that a scope sees after `after`, as text. */
static const char *events(struct storing *t, const struct store_scope *who, uint64_t after,
                          uint32_t limit)
{
    struct err e = { 0 };
    struct store_events ev = { 0 };
    struct store_after from = { after, limit };
    struct buf out = BUF(1000);
    CHECK(store_events_after(t->store, who, &from, &t->arena, &ev, &e) == 0);
    buf_addz(&out, "");
    for (size_t i = 0; i < ev.n; i++)
        buf_printf(&out, "%llu ", (unsigned long long)ev.v[i].number);
    const char *text = arena_strndup(&t->arena, out.p, out.n);
    buf_free(&out);
    return text;
}

static void events_are_seen_by_tenant_and_in_order(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    static const char *const tenants[] = { "vision", "audio", "vision", "text", "", "audio" };
    struct store_batch *b = store_batch_new(t.store);
    for (size_t i = 0; i < ARRAY_LEN(tenants); i++)
        CHECK(store_add_event(b, (int64_t)i, "job", str_of(tenants[i]), 40 + i, STR("{\"x\":1}")) ==
              i + 1);
    CHECK_STR(events(&t, &storing_all, 0, 0), "");
    storing_commit(&t, b);
    struct str two[] = { STR("audio"), STR("vision"), STR("audio") }; /* one of them twice */
    struct store_scope nobody = { 0 }, audio = { .tenant = two, .n = 1 },
                       both = { .tenant = two, .n = 3 };
    CHECK_STR(events(&t, &storing_all, 0, 0), "1 2 3 4 5 6 ");
    CHECK_STR(events(&t, &storing_all, 4, 0), "5 6 ");
    CHECK_STR(events(&t, &storing_all, 6, 0), "");
    CHECK_STR(events(&t, &storing_all, UINT64_MAX, 0), "");
    CHECK_STR(events(&t, &storing_all, 1, 2), "2 3 ");
    CHECK_STR(events(&t, &nobody, 0, 0), "");
    CHECK_STR(events(&t, &audio, 0, 0), "2 6 ");
    CHECK_STR(events(&t, &both, 0, 0), "1 2 3 6 ");
    CHECK_STR(events(&t, &both, 1, 2), "2 3 ");
    struct store_events ev;
    struct store_after from = { 1, 1 };
    struct err e = { 0 };
    CHECK(store_events_after(t.store, &storing_all, &from, &t.arena, &ev, &e) == 0 && ev.n == 1);
    CHECK(ev.v[0].job == 41 && ev.v[0].t_ms == 1 && str_is(ev.v[0].kind, "job"));
    CHECK(str_is(ev.v[0].tenant, "audio") && str_is(ev.v[0].body, "{\"x\":1}"));
}

/* The second batch is durable first: its event must wait for the one before it. */
static void an_event_waits_for_those_before_it(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *first = store_batch_new(t.store), *second = store_batch_new(t.store);
    store_add_event(first, 1, "job", STR("a"), 1, STR("{}"));
    store_add_event(second, 1, "job", STR("a"), 1, STR("{}"));
    storing_commit(&t, second);
    CHECK_STR(events(&t, &storing_all, 0, 0), "");
    storing_commit(&t, first);
    CHECK_STR(events(&t, &storing_all, 0, 0), "1 2 ");
}

static void pruned_events_never_lend_their_numbers(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    for (int i = 0; i < 10; i++)
        store_add_event(b, 1, "job", STR("a"), 1, STR("{}"));
    store_trim(b, &(struct store_trim){ .keep_events = 3 });
    storing_commit(&t, b);
    CHECK_STR(events(&t, &storing_all, 0, 0), "8 9 10 ");
    b = store_batch_new(t.store);
    store_trim(b, &(struct store_trim){ 0 }); /* one is kept even so */
    storing_commit(&t, b);
    CHECK_STR(events(&t, &storing_all, 0, 0), "10 ");
    storing_reopen(&t);
    b = store_batch_new(t.store);
    CHECK(store_add_event(b, 1, "job", STR("a"), 1, STR("{}")) == 11);
    store_trim(b, &(struct store_trim){ .keep_events = UINT64_MAX });
    storing_commit(&t, b);
    CHECK_STR(events(&t, &storing_all, 0, 0), "10 11 ");
}

/* ---- the small tables ---- */

static void accounts_are_added_and_replaced(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_account *v = NULL, ben = { STR("ben"), STR("/home/ben"), 7, 8, true, 9 },
                         ana = { STR("ana"), STR("/home/ana"), 1, 2, false, 3 };
    size_t n = 99;
    struct err e = { 0 };
    CHECK(store_accounts(t.store, &t.arena, &v, &n, &e) == 0 && n == 0);
    struct store_batch *b = store_batch_new(t.store);
    store_put_account(b, &ben);
    store_put_account(b, &ana);
    ana.home = STR("/other/ana");
    store_put_account(b, &ana);
    storing_commit(&t, b);
    CHECK(store_accounts(t.store, &t.arena, &v, &n, &e) == 0 && n == 2);
    CHECK(str_is(v[0].name, "ana") && str_is(v[0].home, "/other/ana") && v[0].uid == 1);
    CHECK(v[0].gid == 2 && !v[0].ours && v[0].created_ms == 3);
    CHECK(str_is(v[1].name, "ben") && v[1].uid == 7 && v[1].gid == 8 && v[1].ours);
}

static void entries_are_put_replaced_and_deleted_by_kind_and_name(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_entry *v = NULL, ana = { STR("ana"), STR("{}") }, ben = { STR("ben"), STR("{}") };
    size_t n = 99;
    struct err e = { 0 };
    struct store_batch *b = store_batch_new(t.store);
    store_put_entry(b, DIRECTORY_PERSON, &ben);
    store_put_entry(b, DIRECTORY_PERSON, &ana);
    store_put_entry(b, DIRECTORY_TENANT, &ana);
    ana.body = STR("{\"role\":\"admin\"}");
    store_put_entry(b, DIRECTORY_PERSON, &ana);
    storing_commit(&t, b);
    CHECK(store_entries(t.store, DIRECTORY_PERSON, &t.arena, &v, &n, &e) == 0 && n == 2);
    CHECK(str_is(v[0].name, "ana") && str_eq(v[0].body, ana.body) && str_is(v[1].name, "ben"));
    b = store_batch_new(t.store);
    store_delete_entry(b, DIRECTORY_PERSON, STR("ana"));
    store_delete_entry(b, DIRECTORY_PERSON, STR("ana"));
    storing_commit(&t, b);
    CHECK(store_entries(t.store, DIRECTORY_PERSON, &t.arena, &v, &n, &e) == 0 && n == 1);
    CHECK(store_entries(t.store, DIRECTORY_TENANT, &t.arena, &v, &n, &e) == 0 && n == 1);
    CHECK(store_entries(t.store, DIRECTORY_CLIENT, &t.arena, &v, &n, &e) == 0 && n == 0);
}

static void pools_are_put_replaced_and_deleted(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_pool *v = NULL, desks = { .name = STR("desks"), .nodes = STR("pc[1-3]") };
    const struct store_pool ours = { .name = STR("annex"),
                                     .exceptions = STR("closed 2026-11-21"),
                                     .of_settings = true };
    size_t n = 99;
    struct err e = { 0 };
    CHECK(store_pools(t.store, &t.arena, &v, &n, &e) == 0 && n == 0);
    struct store_batch *b = store_batch_new(t.store);
    store_put_pool(b, &desks);
    store_put_pool(b, &ours);
    desks.calendar = STR("zone=UTC0; Mon 20:00-24:00");
    store_put_pool(b, &desks);
    storing_commit(&t, b);
    storing_reopen(&t);
    CHECK(store_pools(t.store, &t.arena, &v, &n, &e) == 0 && n == 2);
    CHECK(str_is(v[0].name, "annex") && v[0].of_settings && v[0].calendar.n == 0);
    CHECK(str_is(v[0].exceptions, "closed 2026-11-21"));
    CHECK(str_is(v[1].calendar, "zone=UTC0; Mon 20:00-24:00") && str_is(v[1].nodes, "pc[1-3]"));
    b = store_batch_new(t.store);
    store_delete_pool(b, STR("desks"));
    store_delete_pool(b, STR("desks"));
    storing_commit(&t, b);
    CHECK(store_pools(t.store, &t.arena, &v, &n, &e) == 0 && n == 1);
}

static void an_answer_stays_the_first(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct str got = STR("untouched");
    struct err e = { 0 };
    struct store_batch *b = store_batch_new(t.store);
    store_put_answer(b, STR("ana"), STR("k1"), 100, STR("{\"id\":1}"));
    store_put_answer(b, STR("ana"), STR("k1"), 200, STR("{\"id\":2}"));
    store_put_answer(b, STR("ben"), STR("k1"), 300, STR("{\"id\":3}"));
    storing_commit(&t, b);
    CHECK(store_answer(t.store, STR("ana"), STR("k1"), &t.arena, &got, &e) == 0);
    CHECK(str_is(got, "{\"id\":1}"));
    CHECK(store_answer(t.store, STR("ana"), STR("k2"), &t.arena, &got, &e) < 0);
    CHECK(e.code == ERR_NOT_FOUND && str_is(got, "{\"id\":1}"));
    b = store_batch_new(t.store);
    store_trim(b, &(struct store_trim){ .keep_events = 9, .answers_before_ms = 300 });
    storing_commit(&t, b);
    CHECK(store_answer(t.store, STR("ana"), STR("k1"), &t.arena, &got, &e) < 0);
    CHECK(store_answer(t.store, STR("ben"), STR("k1"), &t.arena, &got, &e) == 0);
}

static void meta_values_are_kept(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct str got = STR("untouched");
    struct err e = { 0 };
    CHECK(store_meta(t.store, "cluster", &t.arena, &got, &e) < 0 && e.code == ERR_NOT_FOUND);
    CHECK(str_is(got, "untouched"));
    struct store_batch *b = store_batch_new(t.store);
    store_set_meta(b, "cluster", STR("one"));
    store_set_meta(b, "cluster", STR("lab; DROP TABLE job;--'"));
    store_set_meta(b, "empty", STR(""));
    storing_commit(&t, b);
    storing_reopen(&t);
    CHECK(store_meta(t.store, "cluster", &t.arena, &got, &e) == 0);
    CHECK(str_is(got, "lab; DROP TABLE job;--'"));
    CHECK(store_meta(t.store, "empty", &t.arena, &got, &e) == 0 && got.n == 0);
}

static const struct test tests[] = {
    { "the journal is read by segments", the_journal_is_read_by_segments },
    { "the journal is read in pages", the_journal_is_read_in_pages },
    { "a journal cut while it is read is refused", a_journal_cut_while_it_is_read_is_refused },
    { "a walk ends when its reader fails", a_walk_ends_when_its_reader_fails },
    { "events are seen by tenant, in order", events_are_seen_by_tenant_and_in_order },
    { "an event waits for those before it", an_event_waits_for_those_before_it },
    { "pruned events never lend their numbers", pruned_events_never_lend_their_numbers },
    { "accounts are added and replaced", accounts_are_added_and_replaced },
    { "entries are put, replaced and deleted by kind and name",
      entries_are_put_replaced_and_deleted_by_kind_and_name },
    { "pools are put, replaced and deleted", pools_are_put_replaced_and_deleted },
    { "an answer stays the first", an_answer_stays_the_first },
    { "meta values are kept", meta_values_are_kept },
};
TEST_CASES(tests)
