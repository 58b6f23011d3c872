#include "store/batch.h"

#include "store/audit.h"
#include "store/directory.h"
#include "store/kept.h"
#include "store/life.h"
#include "store/notice.h"
#include "store/pools.h"
#include "store/segment.h"
#include "store/usage.h"
#include "tests/lib/storing.h"

static void operations_come_back_as_they_were_recorded(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    store_add_journal(b, -5, (struct str){ "a\0b", 3 });
    store_put_entry(b, DIRECTORY_TOKEN, &(struct store_entry){ STR("0f"), STR("") });
    store_set_meta(b, "key", (struct str){ NULL, 0 });
    struct batch_cursor c = { b->p, b->p + b->n };
    struct field f[OP_FIELDS_MAX];
    enum store_op op;
    size_t n;
    CHECK(batch_next(&c, &op, f, &n) && op == OP_ADD_JOURNAL && n == 2);
    CHECK(f[0].type == FIELD_INT && f[0].v == -5);
    CHECK(f[1].type == FIELD_TEXT && f[1].s.n == 3 && memcmp(f[1].s.p, "a\0b", 3) == 0);
    CHECK(batch_next(&c, &op, f, &n) && op == OP_PUT_ENTRY && n == 3);
    CHECK(str_is(f[0].s, "token") && str_is(f[1].s, "0f") && f[2].s.n == 0 && f[2].s.p);
    CHECK(batch_next(&c, &op, f, &n) && op == OP_SET_META && n == 2 && f[1].s.p != NULL);
    CHECK(!batch_next(&c, &op, f, &n) && b->rows == 3);
    store_batch_free(b);
}

static void every_operation_has_as_many_fields_as_its_statement_asks_for(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_job j = storing_job(1, "a", "b", "c", JOB_QUEUED);
    struct store_run run = { .job = 1 };
    struct store_account account = { .name = STR("ana") };
    struct store_batch *b = store_batch_new(t.store);
    storing_add(b, &j);
    store_set_job(b, 1, &j.now);
    store_put_run(b, &run);
    store_end_run(b, 1, 0, 5);
    store_shift_runs(b, 5);
    store_add_journal(b, 1, STR("x"));
    store_new_segment(b, 1, 1);
    store_add_event(b, 1, "job", STR("a"), 1, STR("{}"));
    store_add_step(b, &(struct store_step){ .job = 1, .what = STR("waits") });
    store_step_reason(b, 1, STR("room"));
    store_put_account(b, &account);
    store_put_entry(b, DIRECTORY_PERSON, &(struct store_entry){ STR("ana"), STR("{}") });
    store_delete_entry(b, DIRECTORY_PERSON, STR("ana"));
    store_put_pool(b, &(struct store_pool){ .name = STR("p") });
    store_delete_pool(b, STR("p"));
    store_put_ledger(b, &(struct ledger_row){ .tenant = STR("a") });
    store_put_ledger(b, &(struct ledger_row){ .day = 1 });
    store_put_answer(b, STR("ana"), STR("k"), 1, STR("{}"));
    store_set_meta(b, "k", STR("v"));
    store_size_log(b, 1, 5);
    store_remove_log(b, 1, 5, LOG_AGE);
    store_trim(b, &(struct store_trim){ .keep_events = 1 });
    store_remove_job(b, 1);
    store_usage_whole_days(b, 1);
    store_add_audit(b, &(struct audit_row){ .t_ms = 1 });
    store_cut_audit(b, 1);
    store_put_notice(b, &(struct store_notice){ .id = STR("n") });
    store_delete_notices(b, STR("ana"));
    store_segment_begins(b, &(struct store_segment){ .begins = 1 });
    store_put_line(b, 1, &(struct store_seen){ .at = 5, .line = STR("x") });
    static const size_t want[OP_COUNT] = {
        [OP_ADD_JOB] = 24,       [OP_SET_JOB] = 14,       [OP_PUT_RUN] = 10,
        [OP_END_RUN] = 3,        [OP_ADD_JOURNAL] = 2,    [OP_NEW_SEGMENT] = 2,
        [OP_PRUNE_JOURNAL] = 1,  [OP_ADD_EVENT] = 6,      [OP_PRUNE_EVENTS] = 2,
        [OP_PUT_ACCOUNT] = 6,    [OP_PUT_ENTRY] = 3,      [OP_DELETE_ENTRY] = 2,
        [OP_PUT_ANSWER] = 4,     [OP_PRUNE_ANSWERS] = 2,  [OP_SET_META] = 2,
        [OP_SIZE_LOG] = 2,       [OP_WHOLE_DAYS] = 1,     [OP_REMOVE_LOG] = 3,
        [OP_REMOVE_JOB] = 1,     [OP_PRUNE_CARRIED] = 2,  [OP_PUT_POOL] = 6,
        [OP_DELETE_POOL] = 1,    [OP_ADD_AUDIT] = 13,     [OP_CUT_AUDIT] = 1,
        [OP_PUT_LEDGER] = 8,     [OP_PUT_MACHINES] = 5,   [OP_PUT_NOTICE] = 12,
        [OP_DELETE_NOTICES] = 1, [OP_ADD_STEP] = 12,      [OP_STEP_REASON] = 2,
        [OP_SHIFT_RUNS] = 1,     [OP_SEGMENT_BEGINS] = 2, [OP_PUT_LINE] = 3,
    };
    struct batch_cursor c = { b->p, b->p + b->n };
    struct field f[OP_FIELDS_MAX];
    enum store_op op;
    size_t n, seen = 0;
    uint64_t kinds = 0;
    for (; batch_next(&c, &op, f, &n); seen++) {
        CHECK(n == want[op] && n <= OP_FIELDS_MAX);
        kinds |= UINT64_C(1) << op;
    }
    CHECK(seen == OP_COUNT && b->rows == OP_COUNT && kinds == (UINT64_C(1) << OP_COUNT) - 1);
    storing_commit(&t, b); /* a field too few would be NULL, which no column takes */
}

static void a_large_batch_is_whole(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    AUTO(free_p) char *spec = xmalloc(3000000);
    memset(spec, 's', 3000000);
    struct store_job j = storing_job(1, "a", "b", "c", JOB_QUEUED), got;
    j.fixed.spec = (struct str){ spec, 3000000 };
    struct store_batch *b = store_batch_new(t.store);
    storing_add(b, &j);
    storing_commit(&t, b);
    struct err e;
    CHECK(store_job_get(t.store, &storing_all, 1, &t.arena, &got, &e) == 0);
    CHECK(str_eq(got.fixed.spec, j.fixed.spec));
}

static const struct test tests[] = {
    { "operations come back as they were recorded", operations_come_back_as_they_were_recorded },
    { "every operation has as many fields as its statement asks for",
      every_operation_has_as_many_fields_as_its_statement_asks_for },
    { "a large batch is whole", a_large_batch_is_whole },
};
TEST_CASES(tests)
