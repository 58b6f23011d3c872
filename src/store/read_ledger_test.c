#include "store/usage.h"

#include "base/buf.h"
#include "tests/lib/storing.h"

static void add_text(void *ctx, const struct ledger_row *r)
{
    buf_printf(ctx, "%lld%s%.*s:%lld,%lld ", (long long)r->day, r->tenant.n ? "/" : "",
               STR_ARG(r->tenant), (long long)r->sums.entitled + (long long)r->machines.total,
               (long long)r->sums.wanted + (long long)r->machines.away);
}

static void check(struct storing *t, const struct store_scope *who, struct store_days days,
                  const char *want)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct err e = { 0 };
    CHECK(store_ledger(t->store, who, days, add_text, &b, &e) == 0);
    CHECK_STR(buf_str(&b).p, want);
}

static void put(struct storing *t, int64_t day, const char *tenant, int64_t first, int64_t last)
{
    struct store_batch *b = store_batch_new(t->store);
    struct ledger_row r = { .day = day, .tenant = str_of(tenant) };
    if (*tenant)
        r.sums = (struct ledger_sums){ .entitled = first, .wanted = last };
    else
        r.machines = (struct ledger_machines){ .total = first, .away = last };
    store_put_ledger(b, &r);
    storing_commit(t, b);
}

static void days_are_replaced_and_come_in_order_to_who_may_see_them(void)
{
    AUTO(storing_end) struct storing t;
    struct err e = { 0 };
    int64_t day = 0;
    storing_begin(&t);
    storing_open(&t);
    CHECK(store_ledger_last_day(t.store, &day, &e) == 0 && day == INT64_MIN);
    put(&t, 2, "", 20, 2);
    put(&t, 2, "vision", 7, 3);
    put(&t, 1, "vision", 1, 1);
    put(&t, 1, "audio", 5, 0);
    put(&t, 1, "", 10, 1);
    put(&t, 1, "vision", 6, 4); /* again */
    put(&t, -3, "", 9, 9);
    CHECK(store_ledger_last_day(t.store, &day, &e) == 0 && day == 2);
    struct str vision = STR("vision");
    struct store_scope who = { .tenant = &vision, .n = 1 }, nobody = { 0 };
    check(&t, &storing_all, (struct store_days){ -3, 3 },
          "-3:9,9 1:10,1 1/audio:5,0 1/vision:6,4 2:20,2 2/vision:7,3 ");
    check(&t, &who, (struct store_days){ 1, 2 }, "1:10,1 1/vision:6,4 ");
    check(&t, &nobody, (struct store_days){ 2, 9 }, "2:20,2 ");
    check(&t, &storing_all, (struct store_days){ 2, 2 }, "");
}

static const struct test tests[] = {
    { "days are replaced, and come in order to who may see them",
      days_are_replaced_and_come_in_order_to_who_may_see_them },
};
TEST_CASES(tests)
