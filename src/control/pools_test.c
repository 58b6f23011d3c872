#include "control/lending.h"
#include "store/pools.h"

#include "tests/lib/controlling.h"

#define HOUR_MS INT64_C(3600000)
#define MIN_MS INT64_C(60000)
#define NIGHT "Mon-Sun 20:00-08:00"
#define EVENING_MS (INT64_C(1794528000000) + 21 * HOUR_MS) /* 2026-11-13 21:00 UTC */
#define JOB(freeze)                                                                                \
    "{\"command\":[\"x\"],\"tenant\":\"vision\",\"resources\":{\"gpus\":1},"                       \
    "\"env\":{\"SIM_RUN_MS\":\"100000000\",\"SIM_SAVE_MS\":\"1000\"},\"freeze\":{" freeze "}}"
#define SAVES "\"mode\":\"signal\",\"grace\":\"10s\""

static struct controlling *lab(void)
{
    struct controlling *t = xcalloc(1, sizeof *t);
    static const struct sim_node nodes[] = {
        { .name = "desk1", .model = "A100", .gpus = 1, .cpu_milli = 8000, .mem_mib = 65536 },
        { .name = "desk2", .model = "A100", .gpus = 1, .cpu_milli = 8000, .mem_mib = 65536 },
    };
    controlling_begin(t, &(struct sim_config){ .node = nodes, .nodes = 2 });
    controlling_wait(t, EVENING_MS - t->now_ms);
    return t;
}

static void lab_free_p(struct controlling **t)
{
    controlling_end(*t);
    free(*t);
}

static void count(void *ctx)
{
    ++*(int *)ctx;
}

/* NULL: as it is.  "" when it was done, or why not. */
static const char *put(struct controlling *t, const char *name, const char *window,
                       const char *nodes)
{
    struct str w = str_of(window ? window : ""), n = str_of(nodes ? nodes : "");
    struct control_pool_change ch = { .name = str_of(name),
                                      .by = STR("op"),
                                      .window = window ? &w : NULL,
                                      .nodes = nodes ? &n : NULL };
    t->refused.msg[0] = '\0';
    if (control_pool_put(t->c, &ch, (struct control_done){ count, &t->answered }, &t->refused) == 0)
        controlling_settle(t);
    return t->refused.msg;
}

static const char *except(struct controlling *t, const char *name, struct pool_except x)
{
    struct control_pool_except ex = { .name = str_of(name), .by = STR("op"), .except = x };
    ex.regular = x.until_ms == 0;
    t->refused.msg[0] = '\0';
    if (control_pool_except(t->c, &ex, (struct control_done){ count, &t->answered }, &t->refused) ==
        0)
        controlling_settle(t);
    return t->refused.msg;
}

static struct node_view node(struct controlling *t, const char *name)
{
    struct node_view v;
    for (uint32_t i = 0; core_node(control_core(t->c), (node_id){ i }, &v); i++)
        if (strcmp(v.name, name) == 0)
            return v;
    return (struct node_view){ .pool = "?" };
}

static const char *now_text(struct controlling *t, const char *name)
{
    AUTO(buf_free) struct buf b = BUF(CALENDAR_TEXT_MAX);
    struct control_pool p;
    if (!control_pool_find(t->c, str_of(name), &p))
        return "none";
    calendar_format(p.now, &b);
    return controlling_text(t, buf_str(&b));
}

static void a_pool_is_made_changed_and_removed_and_outlives_a_crash(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    CHECK_STR(put(t, "desks", NIGHT, "desk[1-2],desk9"), "");
    CHECK_INT(t->answered, 1);
    CHECK_STR(node(t, "desk1").pool, "desks");
    CHECK(node(t, "desk1").open && node(t, "desk1").closes_ms == EVENING_MS + 11 * HOUR_MS);
    CHECK_STR(put(t, "desks", NULL, "desk2"), "");
    CHECK_STR(node(t, "desk1").pool, "");
    CHECK_STR(now_text(t, "desks"), "zone=UTC0; " NIGHT);
    controlling_kill(t);
    controlling_boot(t);
    CHECK_STR(node(t, "desk2").pool, "desks");
    CHECK_STR(now_text(t, "desks"), "zone=UTC0; " NIGHT);
    CHECK_STR(controlling_journal_differs(t), "");
    CHECK(control_pool_delete(t->c, STR("desks"), STR("op"), (struct control_done){ 0 },
                              &t->refused) == 0);
    controlling_settle(t);
    CHECK_STR(node(t, "desk2").pool, "");
    CHECK_STR(now_text(t, "desks"), "none");
    controlling_kill(t);
    controlling_boot(t);
    CHECK_STR(now_text(t, "desks"), "none");
    CHECK_STR(controlling_journal_differs(t), "");
}

static void a_pool_of_which_only_the_row_is_there_is_made_whole(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    struct store_pool row = { .name = STR("desks"),
                              .calendar = STR("zone=UTC0; " NIGHT),
                              .nodes = STR("desk1") };
    struct store_batch *b = store_batch_new(t->s.store);
    store_put_pool(b, &row);
    storing_commit(&t->s, b);
    controlling_kill(t);
    controlling_boot(t);
    CHECK_STR(node(t, "desk1").pool, "desks");
    CHECK_STR(controlling_journal_differs(t), "");
}

static void what_is_wrong_is_refused_and_changes_nothing(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    CHECK_STR(put(t, "desks", NIGHT, "desk1"), "");
    CHECK(strstr(put(t, "other", "", "desk1"), "'desk1' is in pool 'desks' already"));
    CHECK_STR(now_text(t, "other"), "none");
    CHECK(strstr(put(t, "desks", "Mon 25:00-26:00", NULL), "window: calendar, part 1"));
    CHECK(strstr(put(t, "desks", NULL, "desk[1"), "nodes: "));
    CHECK(strstr(put(t, "a b", NULL, NULL), "cannot be a pool's name"));
    CHECK_STR(now_text(t, "desks"), "zone=UTC0; " NIGHT);
    CHECK(strstr(except(t, "desk", (struct pool_except){ false, t->now_ms, t->now_ms + HOUR_MS }),
                 "there is no pool"));
    CHECK(control_pool_delete(t->c, STR("desk"), STR("op"), (struct control_done){ 0 },
                              &t->refused) < 0);
}

static void the_settings_file_owns_its_pools_but_not_their_exceptions(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    static const char *const one[] = { "desk1" };
    const struct control_pool_def of_file = {
        .name = STR("desks"), .window = STR("zone=UTC0; " NIGHT), .node = one, .nodes = 1
    };
    CHECK_STR(put(t, "desks", "", "desk2"), ""); /* the file has it from the next start on */
    CHECK_STR(put(t, "more", "", "desk1"), "");
    t->pool = &of_file;
    t->pools = 1;
    controlling_kill(t);
    controlling_boot(t);
    CHECK_STR(node(t, "desk1").pool, "desks");
    CHECK_STR(node(t, "desk2").pool, "");
    CHECK(strstr(put(t, "desks", "", NULL), "is the settings file's"));
    CHECK(strstr(t->refused.hint, "pools close"));
    CHECK(control_pool_delete(t->c, STR("desks"), STR("op"), (struct control_done){ 0 },
                              &t->refused) < 0);
    struct pool_except shut = { false, t->now_ms, t->now_ms + HOUR_MS };
    CHECK_STR(except(t, "desks", shut), "");
    CHECK(!node(t, "desk1").open && node(t, "desk1").opens_ms == t->now_ms + HOUR_MS);
    controlling_kill(t);
    controlling_boot(t);
    CHECK(!node(t, "desk1").open);
    CHECK_STR(except(t, "desks", (struct pool_except){ 0 }), "");
    CHECK(node(t, "desk1").open);
    t->pools = 0;
    controlling_kill(t);
    controlling_boot(t);
    CHECK_STR(now_text(t, "desks"), "none");
    CHECK_STR(node(t, "desk1").pool, "more"); /* what people made is there still */
}

static void a_job_that_can_be_frozen_leaves_before_a_pool_closes(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    CHECK_STR(put(t, "desks", NIGHT, "desk[1-2]"), "");
    uint64_t saves = controlling_submit(t, JOB(SAVES));
    controlling_settle(t);
    CHECK_STR(controlling_state(t, saves), "running");
    uint64_t stays = controlling_submit(t, JOB("\"mode\":\"none\""));
    controlling_settle(t);
    CHECK_STR(controlling_state(t, stays), "queued"); /* it has no limit */
    struct pool_except tonight = { false, t->now_ms + HOUR_MS, t->now_ms + 3 * HOUR_MS };
    CHECK_STR(except(t, "desks", tonight), "");
    controlling_wait(t, HOUR_MS - 31000);
    CHECK_STR(controlling_state(t, saves), "running");
    controlling_wait(t, 1000);
    CHECK_STR(controlling_state(t, saves), "freezing");
    CHECK_STR(controlling_text(t, controlling_job(t, saves).now.message),
              "taken back: its machine is given back; it goes on by itself");
    controlling_kill(t); /* it is known why */
    controlling_boot(t);
    controlling_wait(t, 5000);
    CHECK_STR(controlling_state(t, saves), "frozen");
    CHECK_STR(controlling_text(t, controlling_job(t, saves).now.message),
              "taken back: its machine is given back; it goes on by itself");
    controlling_wait(t, 2 * HOUR_MS);
    CHECK_STR(controlling_state(t, saves), "frozen");
    controlling_wait(t, MIN_MS);
    CHECK_STR(controlling_state(t, saves), "running");
    CHECK_STR(controlling_journal_differs(t), "");
}

static void a_freeze_that_may_take_long_begins_early(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    CHECK_STR(put(t, "desks", NIGHT, "desk[1-2]"), "");
    uint64_t deaf = controlling_submit(
        t, "{\"command\":[\"x\"],\"tenant\":\"vision\",\"resources\":{\"gpus\":1},"
           "\"env\":{\"SIM_RUN_MS\":\"100000000\",\"SIM_SAVE_MS\":\"9000000\"},"
           "\"freeze\":{\"mode\":\"signal\",\"grace\":\"1h\"}}");
    controlling_settle(t);
    CHECK_STR(controlling_state(t, deaf), "running");
    struct leave l;
    CHECK(core_leave(control_core(t->c), (job_id){ deaf }, LEAVE_BY_WINDOW, &l) &&
          l.how == LEAVE_FROZEN);
    CHECK(l.at_ms == EVENING_MS + 11 * HOUR_MS - 245000); /* twice what it costs, at most */
}

static void a_machine_moves_with_what_runs_on_it(void)
{
    AUTO(lab_free_p) struct controlling *t = lab();
    uint64_t saves = controlling_submit(t, JOB(SAVES));
    uint64_t stays = controlling_submit(t, JOB("\"mode\":\"none\""));
    controlling_settle(t);
    CHECK_STR(controlling_state(t, stays), "running");
    CHECK_STR(put(t, "desks", "Mon-Sun 08:00-20:00", "desk[1-2]"), ""); /* closed now */
    CHECK_STR(controlling_state(t, saves), "freezing");
    controlling_wait(t, 5000);
    CHECK_STR(controlling_state(t, saves), "frozen");
    CHECK_STR(controlling_state(t, stays), "running");
    CHECK_INT(core_totals(control_core(t->c)).overstays, 1);
    struct leave l;
    CHECK(core_leave(control_core(t->c), (job_id){ stays }, LEAVE_BY_WINDOW, &l) &&
          l.how == LEAVE_STAYS);
    CHECK_STR(controlling_journal_differs(t), "");
    controlling_kill(t);
    controlling_boot(t);
    CHECK_STR(controlling_state(t, stays), "running");
    CHECK_STR(put(t, "desks", NULL, ""), "");
    controlling_settle(t);
    CHECK_STR(controlling_state(t, saves), "running");
    CHECK_STR(controlling_journal_differs(t), "");
}

static const struct test tests[] = {
    { "a pool is made, changed and removed, and outlives a crash",
      a_pool_is_made_changed_and_removed_and_outlives_a_crash },
    { "a pool of which only the row is there is made whole",
      a_pool_of_which_only_the_row_is_there_is_made_whole },
    { "what is wrong is refused and changes nothing",
      what_is_wrong_is_refused_and_changes_nothing },
    { "the settings file owns its pools, but not their exceptions",
      the_settings_file_owns_its_pools_but_not_their_exceptions },
    { "a job that can be frozen leaves before a pool closes",
      a_job_that_can_be_frozen_leaves_before_a_pool_closes },
    { "a freeze that may take long begins early", a_freeze_that_may_take_long_begins_early },
    { "a machine moves with what runs on it", a_machine_moves_with_what_runs_on_it },
};
TEST_CASES(tests)
