/* Whose the GPUs were: what the core counts, what is in the store, and what the runs come to. */
#include "base/date.h"
#include "journal/journal.h"
#include "store/usage.h"
#include "tests/lib/controlling.h"

#define JOB(gpus, fields)                                                                          \
    "{\"command\":[\"sleep\",\"999999\"],\"resources\":{\"gpus\":" gpus "}" fields "}"

static uint64_t running(struct controlling *t, const char *json)
{
    uint64_t id = controlling_submit(t, json);
    controlling_settle(t);
    CHECK_STR(controlling_state(t, id), "running");
    return id;
}

/* ---- what jobs got, by the ledger and by their runs ---- */

struct got {
    int64_t milli_ms, machines;
    bool wrong;
};

static void add_row(void *ctx, const struct ledger_row *r)
{
    struct got *g = ctx;
    const struct ledger_machines *m = &r->machines;
    g->milli_ms += r->sums.got;
    g->machines += m->got;
    g->wrong = g->wrong || m->total != m->got + m->idle + m->away || r->sums.lent < 0;
}

static int64_t ledger_got(struct controlling *t)
{
    struct got g = { 0 };
    struct err e = { 0 };
    CHECK(control_ledger(t->c, &storing_all, (struct control_days){ 0, INT64_MAX, t->now_ms },
                         add_row, &g, &e) == 0);
    CHECK(!g.wrong);
    CHECK_INT(g.milli_ms, g.machines);
    return g.milli_ms;
}

static int64_t runs_got(struct controlling *t)
{
    struct store_usages u = { 0 };
    struct err e = { 0 };
    struct store_span all = { 0, t->now_ms, t->now_ms, 0 };
    int64_t milli_ms = 0;
    CHECK(store_usage(t->s.store, &storing_all, &all, &t->s.arena, &u, &e) == 0);
    for (size_t i = 0; i < u.n; i++)
        milli_ms += (int64_t)u.v[i].gpu_ms * 1000;
    return milli_ms;
}

static void what_jobs_got_is_what_their_runs_come_to(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t one = running(&t, JOB("1", ""));
    controlling_wait(&t, 12345);
    uint64_t two = running(&t, JOB("2", ""));
    controlling_wait(&t, 777);
    CHECK(controlling_verb(&t, one, VERB_CANCEL) == 0);
    controlling_wait(&t, DAY_MS + 1);
    CHECK_INT(ledger_got(&t), runs_got(&t));
    controlling_kill(&t);
    t.now_ms += 3 * DAY_MS + 17;
    controlling_boot(&t);
    CHECK_STR(controlling_state(&t, two), "running");
    CHECK_INT(ledger_got(&t), runs_got(&t));
    CHECK(controlling_verb(&t, two, VERB_FREEZE) == 0);
    controlling_wait(&t, 5000);
    CHECK(controlling_verb(&t, two, VERB_THAW) == 0);
    controlling_wait(&t, 5000);
    CHECK(controlling_verb(&t, two, VERB_CANCEL) == 0);
    controlling_wait(&t, 60000);
    CHECK_INT(ledger_got(&t), runs_got(&t));
    CHECK(ledger_got(&t) > 8 * DAY_MS * 1000);
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

/* ---- what is in the store ---- */

static void write_row(void *journal, const struct ledger_row *row)
{
    journal_write(&(struct event){ .kind = EVENT_LEDGER, .ledger = *row }, journal);
}

static const char *day_of(struct controlling *t, int64_t day, bool stored)
{
    AUTO(buf_free) struct buf b = BUF(1u << 20);
    struct err e = { 0 };
    if (stored)
        CHECK(store_ledger(t->s.store, &storing_all, (struct store_days){ day, day + 1 }, write_row,
                           &b, &e) == 0);
    else
        core_ledger(control_core(t->c), (struct ledger_span){ day, t->now_ms }, write_row, &b);
    return controlling_text(t, buf_str(&b));
}

static void a_kill_loses_nothing_and_a_stop_writes_all(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    int64_t day = floor_div(t.now_ms, DAY_MS);
    running(&t, JOB("3", ""));
    controlling_wait(&t, 30000); /* not written for a while */
    controlling_submit(&t, JOB("4", ""));
    controlling_wait(&t, 20000);
    const char *was = day_of(&t, day, false);
    CHECK(strcmp(was, day_of(&t, day, true)) != 0);
    controlling_kill(&t);
    controlling_boot(&t);
    CHECK_STR(day_of(&t, day, false), was);
    control_stop(t.c);
    controlling_settle(&t);
    CHECK_STR(day_of(&t, day, true), day_of(&t, day, false));
    CHECK(strstr(was, "\"wanted\""));
    controlling_end(&t);
}

static void a_day_that_is_over_is_written_once_with_the_next(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    int64_t day = floor_div(t.now_ms, DAY_MS);
    running(&t, JOB("1", ""));
    t.now_ms = (day + 2) * DAY_MS + 5;
    controlling_submit(&t, JOB("1", ""));
    controlling_settle(&t);
    const char *was = day_of(&t, day + 1, true);
    CHECK(strstr(was, "\"got\":86400000000") && strstr(was, "\"total\":345600000000"));
    CHECK(*day_of(&t, day + 2, true) != '\0');
    controlling_kill(&t);
    controlling_boot(&t);
    t.now_ms += 120000;
    controlling_submit(&t, JOB("1", ""));
    controlling_settle(&t);
    CHECK_STR(day_of(&t, day + 1, true), was);
    controlling_end(&t);
}

static const struct test tests[] = {
    { "what jobs got is what their runs come to", what_jobs_got_is_what_their_runs_come_to },
    { "a kill loses nothing, and a stop writes all", a_kill_loses_nothing_and_a_stop_writes_all },
    { "a day that is over is written once, with the next",
      a_day_that_is_over_is_written_once_with_the_next },
};
TEST_CASES(tests)
