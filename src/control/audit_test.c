#include "control/state.h"
#include "tests/lib/controlling.h"

#define DAY_MS INT64_C(86400000)

static const struct audit_row drained = { .who = STR("root"),
                                          .via = STR("socket uid 0"),
                                          .address = STR("unix"),
                                          .what = STR("node.drain"),
                                          .subject = STR("desk1") };

static struct store_audits rows(struct controlling *t, const char *what)
{
    struct store_audits out;
    struct err e = { 0 };
    struct store_audit_filter f = { .what = str_of(what) };
    CHECK(store_audit_list(t->s.store, &f, &t->s.arena, &out, &e) == 0);
    return out;
}

static struct control_audit_state verify(struct controlling *t)
{
    t->c->auditing.day = -1;
    do
        audit_piece(t->c);
    while (t->c->auditing.checking);
    return control_audit_state(t->c);
}

static int drain(struct controlling *t, enum node_state state)
{
    struct err e;
    if (control_node_state(t->c, STR("desk1"), state, (struct control_done){ 0 }, &e) < 0)
        return -1;
    control_audit(t->c, &drained);
    return 0;
}

/* Is the core that the store makes anew in that state? */
static bool is_drained(struct controlling *t)
{
    struct node_view v;
    CHECK(core_node(t->c->core, (node_id){ 0 }, &v));
    return v.state == NODE_DRAIN;
}

static void an_entry_is_written_with_its_change(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    CHECK(drain(&t, NODE_DRAIN) == 0);
    struct turn *turn = t.c->open; /* both are in it, and nothing is on the disk */
    CHECK(turn && rows(&t, "").n == 0);
    controlling_settle(&t);
    CHECK_INT(rows(&t, "node.drain").n, 1);
    CHECK_INT(rows(&t, "").v[0].row.t_ms, t.now_ms);
    controlling_kill(&t);
    controlling_boot(&t);
    CHECK(is_drained(&t) && rows(&t, "").n == 1);
    controlling_end(&t);
}

/* A turn that never reached the disk takes both away. */
static void a_change_that_is_lost_takes_its_entry_with_it(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    CHECK(drain(&t, NODE_DRAIN) == 0);
    controlling_kill(&t);
    controlling_boot(&t);
    CHECK(!is_drained(&t) && rows(&t, "").n == 0);
    CHECK_INT(verify(&t).fault, AUDIT_FAULT_NONE);
    controlling_end(&t);
}

static void old_rows_go_by_days_and_the_rest_verifies(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    t.c->config.keep.audit_ms = 10 * DAY_MS;
    for (int i = 0; i < 8; i++) {
        CHECK(drain(&t, i % 2 ? NODE_UP : NODE_DRAIN) == 0);
        controlling_settle(&t);
        controlling_wait(&t, 2 * DAY_MS);
    }
    for (int i = 0; i < 5; i++) { /* the last of them find nothing more */
        keep_piece(t.c);
        controlling_settle(&t);
    }
    struct store_audits cuts = rows(&t, "audit.cut");
    CHECK_INT(cuts.n, 1);
    CHECK(str_is(cuts.v[0].row.who, "system") && strstr(cuts.v[0].row.after.p, "\"rows\":3,"));
    CHECK_INT(rows(&t, "node.").n, 5);
    struct control_audit_state s = verify(&t);
    CHECK(s.fault == AUDIT_FAULT_NONE && s.rows == 6 && s.checked_ms == t.now_ms);
    t.c->config.keep.audit_ms = 0;
    controlling_wait(&t, 1000 * DAY_MS);
    keep_piece(t.c);
    controlling_settle(&t);
    CHECK_INT(rows(&t, "").n, 6);
    controlling_end(&t);
}

static void it_is_verified_once_a_day(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    struct control_audit_state s = verify(&t);
    CHECK(s.checked_ms == t.now_ms && s.fault == AUDIT_FAULT_NONE);
    t.now_ms += DAY_MS / 100;
    audit_piece(t.c);
    CHECK(!t.c->auditing.checking);
    t.now_ms += DAY_MS;
    audit_piece(t.c);
    CHECK(t.c->auditing.checking);
    controlling_end(&t);
}

static const struct test tests[] = {
    { "an entry is written with its change", an_entry_is_written_with_its_change },
    { "a change that is lost takes its entry with it",
      a_change_that_is_lost_takes_its_entry_with_it },
    { "old rows go by days, and the rest verifies", old_rows_go_by_days_and_the_rest_verifies },
    { "it is verified once a day", it_is_verified_once_a_day },
};
TEST_CASES(tests)
