#include "core/ledger.h"

#include "base/date.h"
#include "tests/lib/small.h"

/* ---- reading ---- */

struct wanted_row {
    int64_t day;
    const char *tenant;
    struct ledger_row row;
    bool found;
};

static void find_row(void *ctx, const struct ledger_row *r)
{
    struct wanted_row *w = ctx;
    if (r->day != w->day || !str_is(r->tenant, w->tenant))
        return;
    CHECK(!w->found);
    w->row = *r;
    w->found = true;
}

static struct ledger_row row_at(const struct small *s, int64_t day, const char *tenant)
{
    struct wanted_row w = { .day = day, .tenant = tenant };
    core_ledger(s->c, (struct ledger_span){ INT64_MIN, s->now_ms }, find_row, &w);
    return w.row;
}

/* In GPU-hours. */
static double hours(int64_t milli_ms)
{
    return (double)milli_ms / 3.6e9;
}

static bool about(double x, double y)
{
    return x - y < 1e-5 && y - x < 1e-5;
}

static void check_tenant(const struct small *s, const char *tenant, double entitled, double got,
                         double lent, double borrowed)
{
    struct ledger_sums t = row_at(s, 0, tenant).sums;
    if (!about(hours(t.entitled), entitled) || !about(hours(t.got), got) ||
        !about(hours(t.lent), lent) || !about(hours(t.borrowed), borrowed))
        test_fail(__FILE__, __LINE__, "%s: entitled %g, got %g, lent %g, borrowed %g", tenant,
                  hours(t.entitled), hours(t.got), hours(t.lent), hours(t.borrowed));
}

static void check_machines(const struct small *s, double got, double idle, double away)
{
    struct ledger_machines m = row_at(s, 0, "").machines;
    CHECK(m.total == m.got + m.idle + m.away);
    if (!about(hours(m.got), got) || !about(hours(m.idle), idle) || !about(hours(m.away), away))
        test_fail(__FILE__, __LINE__, "got %g, idle %g, away %g", hours(m.got), hours(m.idle),
                  hours(m.away));
}

static struct event guaranteed(const char *name, const char *parent, uint32_t weight, uint64_t gpus)
{
    struct event ev = tenant_event(name, parent, weight);
    ev.tenant.guarantee_milli = gpus * 1000;
    return ev;
}

static void run(struct small *s, const char *tenant, uint16_t gpus)
{
    uint64_t id = small_gpus(s, tenant, gpus);
    CHECK_INT(small_pass(s), 1);
    small_job(s, id, JOB_EV_STARTED);
}

static void after(struct small *s, double h)
{
    s->now_ms += (int64_t)(h * (double)HOUR_MS);
}

/* ---- entitled ---- */

static void capacity_is_divided_by_weight_wanted_or_not(void)
{
    AUTO(small_free) struct small s = small_new();
    small_apply(&s, tenant_event("a", "", 1));
    small_apply(&s, tenant_event("b", "", 3));
    small_node(&s, "n", 8);
    after(&s, 2);
    check_tenant(&s, "a", 4, 0, 0, 0);
    check_tenant(&s, "b", 12, 0, 0, 0);
    check_machines(&s, 0, 16, 0);
}

static void guarantees_come_first_and_shrink_with_the_capacity(void)
{
    AUTO(small_free) struct small s = small_new();
    small_apply(&s, guaranteed("a", "", 1, 4));
    small_apply(&s, guaranteed("b", "", 1, 0));
    small_node(&s, "n", 4);
    small_node(&s, "m", 6);
    after(&s, 1); /* 4, and half of 6 */
    check_tenant(&s, "a", 7, 0, 0, 0);
    check_tenant(&s, "b", 3, 0, 0, 0);
    small_node_state(&s, "m", NODE_DOWN);
    small_apply(&s, guaranteed("b", "", 1, 12));
    after(&s, 1); /* 4 and 12 were promised, of 4: a quarter and three */
    check_tenant(&s, "a", 8, 0, 0, 0);
    check_tenant(&s, "b", 6, 0, 0, 0);
    check_machines(&s, 0, 14, 6);
}

static void a_guarantee_is_in_reference_gpus(void)
{
    AUTO(small_free) struct small s = small_new();
    small_apply(&s, (struct event){ .kind = EVENT_MODEL, .model = { STR("m"), 2000 } });
    small_apply(&s, guaranteed("a", "", 1, 4)); /* two of these */
    small_apply(&s, tenant_event("b", "", 1));
    small_node(&s, "n", 8);
    after(&s, 1);
    check_tenant(&s, "a", 5, 0, 0, 0);
    check_tenant(&s, "b", 3, 0, 0, 0);
}

static void users_of_a_tenant_stand_beside_the_tenants_below_it(void)
{
    AUTO(small_free) struct small s = small_new();
    small_apply(&s, tenant_event("lab", "", 1));
    small_apply(&s, tenant_event("x", "lab", 3));
    small_apply(&s, tenant_event("other", "", 1));
    small_node(&s, "n", 8);
    after(&s, 1); /* it has no users of its own: all of its part is for the one below */
    check_tenant(&s, "lab", 0, 0, 0, 0);
    check_tenant(&s, "x", 4, 0, 0, 0);
    struct event ev = { .kind = EVENT_USER, .user = { STR("lab"), STR("ann"), 1000 } };
    small_apply(&s, ev);
    after(&s, 1); /* 4 as 1 to 3 */
    check_tenant(&s, "lab", 1, 0, 0, 0);
    check_tenant(&s, "x", 7, 0, 0, 0);
    ev.user.weight_milli = 3000;
    small_apply(&s, ev);
    after(&s, 1); /* 4 as 3 to 3 */
    check_tenant(&s, "lab", 3, 0, 0, 0);
    check_tenant(&s, "x", 9, 0, 0, 0);
    check_tenant(&s, "other", 12, 0, 0, 0);
}

static void thirds_of_a_gpu_are_given_to_the_last_thousandth(void)
{
    AUTO(small_free) struct small s = small_new();
    small_apply(&s, tenant_event("a", "", 1));
    small_apply(&s, tenant_event("b", "", 1));
    small_apply(&s, tenant_event("c", "", 1));
    small_node(&s, "n", 1);
    s.now_ms = 1;
    CHECK_INT(row_at(&s, 0, "a").sums.entitled + row_at(&s, 0, "b").sums.entitled +
                  row_at(&s, 0, "c").sums.entitled,
              1000);
}

/* ---- lent and borrowed ---- */

static void what_one_borrows_the_others_lend_in_proportion(void)
{
    AUTO(small_free) struct small s = small_new();
    small_apply(&s, tenant_event("a", "", 1));
    small_apply(&s, tenant_event("b", "", 1));
    small_apply(&s, tenant_event("c", "", 2));
    small_node(&s, "n", 8);
    run(&s, "a", 5); /* entitled to 2: three are borrowed, of the 2 and 4 that are left */
    after(&s, 2);
    check_tenant(&s, "a", 4, 10, 0, 6);
    check_tenant(&s, "b", 4, 0, 2, 0);
    check_tenant(&s, "c", 8, 0, 4, 0);
    run(&s, "b", 2);
    after(&s, 1); /* now all three are c's */
    check_tenant(&s, "a", 6, 15, 0, 9);
    check_tenant(&s, "b", 6, 2, 2, 0);
    check_tenant(&s, "c", 12, 0, 7, 0);
    check_machines(&s, 17, 7, 0);
}

static void what_a_draining_machine_still_runs_is_got_and_the_rest_of_it_away(void)
{
    AUTO(small_free) struct small s = small_new();
    small_tenant(&s, "a");
    small_tenant(&s, "b");
    small_node(&s, "n", 4);
    run(&s, "a", 3);
    small_node_state(&s, "n", NODE_DRAIN);
    after(&s, 2); /* a capacity of three, half of them b's: all of that is lent */
    check_machines(&s, 6, 0, 2);
    check_tenant(&s, "a", 3, 6, 0, 3);
    check_tenant(&s, "b", 3, 0, 3, 0);
    small_job(&s, 1, JOB_EV_EXITED_OK);
    after(&s, 1);
    check_machines(&s, 6, 0, 6);
    check_tenant(&s, "a", 3, 6, 0, 3);
}

/* ---- frozen and wanted ---- */

static void only_what_was_taken_back_and_wants_to_go_on_is_frozen(void)
{
    AUTO(small_free) struct small s = small_new();
    small_tenant(&s, "a");
    small_node(&s, "n", 2);
    run(&s, "a", 2);
    small_apply(&s, (struct event){ .kind = EVENT_TAKE, .take = { { 1 }, { 0 }, 0 } });
    after(&s, 1); /* it is being frozen, and holds them */
    CHECK_INT(row_at(&s, 0, "a").sums.frozen, 0);
    small_node_state(&s, "n", NODE_DRAIN);
    small_job(&s, 1, JOB_EV_FROZE);
    after(&s, 1);
    CHECK(about(hours(row_at(&s, 0, "a").sums.frozen), 2));
    CHECK(about(hours(row_at(&s, 0, "a").sums.wanted), 2));
    small_job(&s, 1, JOB_EV_FREEZE); /* its user wants it so */
    after(&s, 1);
    CHECK(about(hours(row_at(&s, 0, "a").sums.frozen), 2));
    CHECK(about(hours(row_at(&s, 0, "a").sums.wanted), 2));
    small_job(&s, 1, JOB_EV_CANCEL);
    small_gpus(&s, "a", 1); /* waits */
    after(&s, 3);
    CHECK(about(hours(row_at(&s, 0, "a").sums.frozen), 2));
    CHECK(about(hours(row_at(&s, 0, "a").sums.wanted), 5));
}

/* ---- days ---- */

static void a_stretch_is_cut_at_midnights(void)
{
    AUTO(small_free) struct small s = small_new();
    s.now_ms = DAY_MS - HOUR_MS;
    small_tenant(&s, "a");
    small_node(&s, "n", 2);
    run(&s, "a", 1);
    s.now_ms = 2 * DAY_MS + 3 * HOUR_MS;
    CHECK(about(hours(row_at(&s, 0, "a").sums.got), 1));
    CHECK(about(hours(row_at(&s, 1, "a").sums.got), 24));
    CHECK(about(hours(row_at(&s, 1, "").machines.idle), 24));
    CHECK(about(hours(row_at(&s, 2, "a").sums.got), 3));
    small_job(&s, 1, JOB_EV_EXITED_OK);
    after(&s, 1);
    CHECK(about(hours(row_at(&s, 2, "a").sums.got), 3));
    CHECK(about(hours(row_at(&s, 2, "").machines.total), 8));
    core_ledger_forget(s.c, 2);
    CHECK_INT(row_at(&s, 1, "").machines.total, 0);
    CHECK(about(hours(row_at(&s, 2, "").machines.total), 8));
}

static void looking_into_the_future_changes_nothing(void)
{
    AUTO(small_free) struct small s = small_new();
    small_tenant(&s, "a");
    small_node(&s, "n", 1);
    after(&s, 10);
    check_machines(&s, 0, 10, 0);
    s.now_ms = HOUR_MS; /* the clock was set back */
    run(&s, "a", 1);
    after(&s, 1);
    check_machines(&s, 1, 1, 0);
}

static void a_very_long_silence_costs_no_more_than_its_latest_days(void)
{
    AUTO(small_free) struct small s = small_new();
    small_node(&s, "n", 1);
    s.now_ms = TIME_MAX_MS;
    small_tenant(&s, "a");
    int64_t last = floor_div(TIME_MAX_MS, DAY_MS);
    CHECK(about(hours(row_at(&s, last - LEDGER_DAYS_MAX + 1, "").machines.idle), 24));
    CHECK_INT(row_at(&s, last - LEDGER_DAYS_MAX, "").machines.idle, 0);
}

/* ---- a journal's beginning ---- */

static int try_row(struct small *s, struct ledger_row row, struct err *e)
{
    struct event ev = { .kind = EVENT_LEDGER, .ledger = row };
    return small_try(s, ev, e);
}

static void a_row_of_the_machines_says_all_there_was(void)
{
    AUTO(small_free) struct small s = small_new();
    struct err e;
    small_tenant(&s, "a");
    small_node(&s, "n", 1);
    after(&s, 5);
    struct ledger_row all = { .machines = { .total = 7, .idle = 7 } };
    struct ledger_row a = { .tenant = STR("a"), .sums = { .entitled = 7 } };
    CHECK(try_row(&s, all, &e) == 0 && try_row(&s, a, &e) == 0);
    CHECK_INT(row_at(&s, 0, "").machines.total, 7);
    CHECK_INT(row_at(&s, 0, "a").sums.entitled, 7);
    s.now_ms += 2;
    CHECK_INT(row_at(&s, 0, "").machines.idle, 2007);
    CHECK_INT(row_at(&s, 0, "a").sums.entitled, 2007);
}

static void a_row_that_cannot_be_is_refused(void)
{
    AUTO(small_free) struct small s = small_new();
    struct err e;
    small_tenant(&s, "a");
    CHECK(try_row(&s, (struct ledger_row){ .tenant = STR("b") }, &e) < 0);
    CHECK_INT(e.code, ERR_NOT_FOUND);
    CHECK(try_row(&s, (struct ledger_row){ .machines.total = -1 }, &e) < 0);
    CHECK_INT(e.code, ERR_INVALID);
    CHECK(try_row(&s, (struct ledger_row){ .day = INT64_MAX }, &e) < 0);
    CHECK(try_row(&s, (struct ledger_row){ .sums.wanted = INT64_MAX }, &e) < 0);
}

static const struct test tests[] = {
    { "capacity is divided by weight, wanted or not", capacity_is_divided_by_weight_wanted_or_not },
    { "guarantees come first, and shrink with the capacity",
      guarantees_come_first_and_shrink_with_the_capacity },
    { "a guarantee is in reference GPUs", a_guarantee_is_in_reference_gpus },
    { "users of a tenant stand beside the tenants below it",
      users_of_a_tenant_stand_beside_the_tenants_below_it },
    { "thirds of a GPU are given to the last thousandth",
      thirds_of_a_gpu_are_given_to_the_last_thousandth },
    { "what one borrows the others lend in proportion",
      what_one_borrows_the_others_lend_in_proportion },
    { "what a draining machine still runs is got, and the rest of it away",
      what_a_draining_machine_still_runs_is_got_and_the_rest_of_it_away },
    { "only what was taken back and wants to go on is frozen",
      only_what_was_taken_back_and_wants_to_go_on_is_frozen },
    { "a stretch is cut at midnights", a_stretch_is_cut_at_midnights },
    { "looking into the future changes nothing", looking_into_the_future_changes_nothing },
    { "a very long silence costs no more than its latest days",
      a_very_long_silence_costs_no_more_than_its_latest_days },
    { "a row of the machines says all there was", a_row_of_the_machines_says_all_there_was },
    { "a row that cannot be is refused", a_row_that_cannot_be_is_refused },
};
TEST_CASES(tests)
