#include "store/notice.h"

#include "tests/lib/storing.h"

static struct store_notice notice(const char *id, const char *user, int64_t made_ms)
{
    return (struct store_notice){ .id = str_of(id),
                                  .user = str_of(user),
                                  .way = 1,
                                  .event = 2,
                                  .made_ms = made_ms,
                                  .due_ms = made_ms + 5,
                                  .subject = STR("Job 1 failed"),
                                  .data = STR("{}") };
}

static void put(struct storing *t, const struct store_notice *n)
{
    struct store_batch *b = store_batch_new(t->store);
    store_put_notice(b, n);
    storing_commit(t, b);
}

static void what_waits_is_there_after_a_restart(void)
{
    AUTO(storing_end) struct storing t;
    struct store_notices all;
    struct err e;
    bool known = false;
    storing_begin(&t);
    storing_open(&t);
    struct store_notice a = notice("a", "ana", 20), b = notice("b", "ben", 10);
    put(&t, &a);
    put(&t, &b);
    storing_reopen(&t);
    CHECK(store_notices_waiting(t.store, 10, &t.arena, &all, &e) == 0 && all.n == 2);
    CHECK(str_is(all.v[0].id, "b") && str_is(all.v[1].user, "ana") && all.v[1].due_ms == 25);
    CHECK(all.v[0].way == 1 && all.v[0].event == 2 && str_is(all.v[0].data, "{}"));
    a.state = STORE_NOTICE_SENT;
    a.tries = 3;
    a.why = STR("it hung");
    put(&t, &a);
    CHECK(store_notices_waiting(t.store, 10, &t.arena, &all, &e) == 0 && all.n == 1);
    CHECK(store_notices_of(t.store, STR("ana"), 10, &t.arena, &all, &e) == 0 && all.n == 1);
    CHECK(all.v[0].state == STORE_NOTICE_SENT && all.v[0].tries == 3 &&
          str_is(all.v[0].why, "it hung"));
    CHECK(store_notice_known(t.store, STR("a"), &known, &e) == 0 && known);
    CHECK(store_notice_known(t.store, STR("c"), &known, &e) == 0 && !known);
}

static void of_what_is_over_a_user_has_the_last_few(void)
{
    AUTO(storing_end) struct storing t;
    struct store_notices all;
    struct err e;
    char id[16];
    storing_begin(&t);
    storing_open(&t);
    struct store_batch *b = store_batch_new(t.store);
    for (int i = 0; i < (int)NOTICES_OVER_KEPT + 50; i++) {
        snprintf(id, sizeof id, "n%d", i);
        struct store_notice n = notice(id, "ana", 100 + i);
        n.state = i == 3 ? STORE_NOTICE_WAITING : STORE_NOTICE_SENT;
        store_put_notice(b, &n);
    }
    struct store_notice other = notice("x", "ben", 1);
    other.state = STORE_NOTICE_SENT;
    store_put_notice(b, &other);
    storing_commit(&t, b);
    CHECK(store_notices_of(t.store, STR("ana"), 1000, &t.arena, &all, &e) == 0);
    CHECK(all.n >= NOTICES_OVER_KEPT && all.n <= NOTICES_OVER_KEPT + 2);
    CHECK(str_is(all.v[0].id, "n249") && str_is(all.v[all.n - 1].id, "n3")); /* it waits still */
    CHECK(store_notices_of(t.store, STR("ben"), 10, &t.arena, &all, &e) == 0 && all.n == 1);
    b = store_batch_new(t.store);
    store_delete_notices(b, STR("ana"));
    storing_commit(&t, b);
    CHECK(store_notices_of(t.store, STR("ana"), 10, &t.arena, &all, &e) == 0 && all.n == 0);
    CHECK(store_notices_of(t.store, STR("ben"), 10, &t.arena, &all, &e) == 0 && all.n == 1);
}

static const struct test tests[] = {
    { "what waits is there after a restart", what_waits_is_there_after_a_restart },
    { "of what is over a user has the last few", of_what_is_over_a_user_has_the_last_few },
};
TEST_CASES(tests)
