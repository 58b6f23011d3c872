#include "store/batch.h"

#include "tests/lib/storing.h"

static void operations_come_back_as_they_were_recorded(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    struct store_token token = { .hash = { 1, 2, 3 }, .name = STR("laptop"), .role = 7 };
    store_add_journal(b, -5, (struct str){ "a\0b", 3 });
    store_put_token(b, &token);
    store_set_meta(b, "key", (struct str){ NULL, 0 });
    struct batch_cursor c = { b->p, b->p + b->n };
    struct field f[OP_FIELDS_MAX];
    enum store_op op;
    size_t n;
    CHECK(batch_next(&c, &op, f, &n) && op == OP_ADD_JOURNAL && n == 2);
    CHECK(f[0].type == FIELD_INT && f[0].v == -5);
    CHECK(f[1].type == FIELD_TEXT && f[1].s.n == 3 && memcmp(f[1].s.p, "a\0b", 3) == 0);
    CHECK(batch_next(&c, &op, f, &n) && op == OP_PUT_TOKEN && n == 6);
    CHECK(f[0].type == FIELD_BLOB && f[0].s.n == 32 && f[0].s.p[2] == 3);
    CHECK(str_is(f[1].s, "laptop") && f[2].s.n == 0 && f[2].s.p && f[3].v == 7);
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
    struct store_token token = { .role = 1 };
    struct store_batch *b = store_batch_new(t.store);
    storing_add(b, &j);
    store_set_job(b, 1, &j.now);
    store_put_run(b, &run);
    store_end_run(b, 1, 0, 5);
    store_add_journal(b, 1, STR("x"));
    store_new_segment(b, 1, 1);
    store_add_event(b, 1, "job", STR("a"), 1, STR("{}"));
    store_prune_events(b, 0);
    store_put_account(b, &account);
    store_put_token(b, &token);
    store_delete_token(b, token.hash);
    store_put_answer(b, STR("ana"), STR("k"), 1, STR("{}"));
    store_prune_answers(b, 0);
    store_set_meta(b, "k", STR("v"));
    static const size_t want[OP_COUNT] = { 24, 14, 10, 3, 2, 2, 6, 1, 6, 6, 1, 4, 1, 2 };
    struct batch_cursor c = { b->p, b->p + b->n };
    struct field f[OP_FIELDS_MAX];
    enum store_op op;
    size_t n, seen = 0;
    for (; batch_next(&c, &op, f, &n); seen++)
        CHECK(op == (enum store_op)seen && n == want[op] && n <= OP_FIELDS_MAX);
    CHECK(seen == OP_COUNT && b->rows == OP_COUNT);
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
TEST_MAIN(tests)
