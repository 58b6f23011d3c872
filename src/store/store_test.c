#include "store/store.h"

#include "tests/lib/storing.h"

static void what_was_committed_can_be_read(void)
{
    AUTO(storing_end) struct storing t;
    storing_begin(&t);
    storing_open(&t);
    struct store_job j = storing_job(7, "vision", "ana", "train", JOB_QUEUED), got;
    struct err e = { 0 };
    j.fixed.array = 7;
    j.fixed.array_index = 3;
    j.now.message = STR("waits\nfor GPUs");
    j.now.exit_code = -1;
    struct store_batch *b = store_batch_new(t.store);
    CHECK(store_batch_empty(b));
    storing_add(b, &j);
    CHECK(!store_batch_empty(b) && store_last_job(t.store) == 7);
    CHECK(store_job_get(t.store, &storing_all, 7, &t.arena, &got, &e) < 0);
    CHECK(e.code == ERR_NOT_FOUND);
    storing_commit(&t, b);
    for (int round = 0; round < 2; round++) {
        CHECK(store_job_get(t.store, &storing_all, 7, &t.arena, &got, &e) == 0);
        CHECK(str_is(got.fixed.tenant, "vision") && str_is(got.fixed.user, "ana"));
        CHECK(str_is(got.fixed.name, "train") && got.fixed.uid == 1000);
        CHECK(got.fixed.submitted_ms == 5007 && got.fixed.replicas == 1);
        CHECK(got.fixed.gpu_milli == 1000 && got.fixed.array == 7 && got.fixed.array_index == 3);
        CHECK(str_eq(got.fixed.spec, j.fixed.spec));
        CHECK(got.now.state == JOB_QUEUED && got.now.priority == PRIO_NORMAL);
        CHECK(got.now.state_ms == 6007 && got.now.exit_code == -1);
        CHECK(str_is(got.now.message, "waits\nfor GPUs") && got.now.where.n == 0);
        CHECK(store_last_job(t.store) == 7);
        storing_reopen(&t); /* and once more from the file */
    }
}

static const struct test tests[] = {
    { "what was committed can be read, also after a restart", what_was_committed_can_be_read },
};
TEST_MAIN(tests)
