/* What a control plane does after it was killed, or after its engine was away, one moment at a time.
 * The random walks are in recover_prop.c. */
#include "tests/lib/controlling.h"

#define LONG(fields, words)                                                                        \
    "{\"command\":[\"sleep\",\"3600\"],\"resources\":{\"gpus\":1}" fields ",\"env\":{" words "}}"
#define ASK(resources, fields)                                                                     \
    "{\"command\":[\"sleep\",\"3600\"],\"resources\":{" resources "}" fields "}"
#define BY_SIGNAL ",\"freeze\":{\"mode\":\"signal\",\"signal\":\"USR1\",\"grace\":\"60s\"}"

/* What was asked last is on the disk, but the engine never heard of it. */
static void die_before_acting(struct controlling *t)
{
    controlling_round(t);
    controlling_kill(t);
}

static void ask(struct controlling *t, uint64_t job, enum control_verb v)
{
    struct err e;
    CHECK(control_verb(t->c, job, v, STR("ana"), (struct control_done){ 0 }, &e) == 0);
}

static uint64_t running(struct controlling *t, const char *json)
{
    uint64_t id = controlling_submit(t, json);
    controlling_settle(t);
    CHECK_STR(controlling_state(t, id), "running");
    return id;
}

static bool runs_now(struct controlling *t, uint64_t job, uint32_t run)
{
    struct sim_task_view v;
    return engine_sim_look(&t->sim, (struct task_id){ job, run, 0 }, &v) && v.running;
}

static void what_was_not_answered_may_be_gone(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    controlling_submit(&t, LONG("", ""));
    controlling_kill(&t);
    controlling_boot(&t);
    CHECK_INT(t.answered, 0);
    CHECK_INT(store_last_job(t.s.store), 0);
    CHECK_INT(control_stats(t.c).living, 0);
    controlling_end(&t);
}

static void a_placed_job_is_started_once(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, LONG("", ""));
    die_before_acting(&t);
    CHECK_STR(controlling_state(&t, id), "starting");
    CHECK_INT(engine_sim_counts(&t.sim).starts, 0);
    controlling_boot(&t);
    CHECK_STR(controlling_state(&t, id), "running");
    CHECK_INT(engine_sim_counts(&t.sim).starts, 1);
    CHECK_INT(controlling_job(&t, id).now.run, 1);
    controlling_end(&t);
}

static void a_running_job_goes_on(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = running(&t, LONG(",\"requeue\":true", ""));
    controlling_wait(&t, 1000);
    controlling_kill(&t);
    t.now_ms += 5000;
    engine_sim_step(&t.sim, t.now_ms);
    controlling_boot(&t);
    CHECK_STR(controlling_state(&t, id), "running");
    controlling_wait(&t, 3594000);
    struct store_job j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "succeeded");
    CHECK_INT(j.now.ran_ms, 3600000);
    CHECK_INT(engine_sim_counts(&t.sim).starts, 1);
    controlling_end(&t);
}

static void a_job_that_ended_meanwhile_has_ended(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = running(&t, "{\"command\":[\"x\"],\"env\":{\"SIM_EXIT\":\"4\"}}");
    controlling_kill(&t);
    t.now_ms += 5000;
    engine_sim_step(&t.sim, t.now_ms);
    controlling_boot(&t);
    struct store_job j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "failed");
    CHECK_INT(j.now.exit_code, 4);
    CHECK_INT(engine_sim_counts(&t.sim).ended, 0);
    controlling_end(&t);
}

/* Another machine under the same name, which knows nothing of what ran. */
static void swap_machine(struct controlling *t, uint32_t gpus, uint32_t cpu_milli)
{
    const struct sim_node node = { .name = "desk1",
                                   .model = "A100",
                                   .gpus = gpus,
                                   .gpu_mem_mib = 40960,
                                   .cpu_milli = cpu_milli,
                                   .mem_mib = 65536 };
    controlling_kill(t);
    t->sim.ops->free(t->sim.self);
    t->sim = engine_sim_new(&(struct sim_config){ .node = &node, .nodes = 1, .now_ms = t->now_ms });
    controlling_boot(t);
}

static void a_task_the_engine_lost_is_lost(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = running(&t, LONG("", ""));
    uint64_t again = running(&t, LONG(",\"requeue\":true", ""));
    swap_machine(&t, 4, 16000);
    struct store_job j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "failed");
    CHECK_STR(controlling_text(&t, j.now.end), "lost");
    CHECK_STR(controlling_state(&t, again), "running");
    CHECK_INT(controlling_job(&t, again).now.run, 2);
    controlling_end(&t);
}

static void a_machine_that_changed_gets_its_new_figures_and_keeps_the_jobs(void)
{
    struct controlling t;
    struct node_view n;
    controlling_begin(&t, NULL);
    uint64_t held = controlling_submit(&t, LONG(",\"held\":true", ""));
    uint64_t lost = running(&t, LONG("", ""));
    swap_machine(&t, 2, 64000);
    CHECK_STR(controlling_state(&t, lost), "failed"); /* so nothing holds the old figures */
    controlling_settle(&t);
    CHECK(core_node(control_core(t.c), (node_id){ 0 }, &n));
    CHECK_INT(n.gpus, 2);
    CHECK_INT(n.cpu_milli, 64000);
    CHECK_STR(controlling_journal_differs(&t), "");
    CHECK(controlling_verb(&t, held, VERB_RELEASE) == 0);
    CHECK_STR(controlling_state(&t, held), "running");
    controlling_kill(&t);
    controlling_boot(&t);
    CHECK(core_node(control_core(t.c), (node_id){ 0 }, &n));
    CHECK_INT(n.gpus, 2);
    CHECK_STR(controlling_state(&t, held), "running");
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static struct explanation why(struct controlling *t, uint64_t id)
{
    struct explanation x = { 0 };
    struct err e;
    CHECK(core_explain(control_core(t->c), (job_id){ id }, t->now_ms, &x, &e) == 0);
    return x;
}

static enum reason short_reason(struct controlling *t, uint64_t id)
{
    struct job_view v = { 0 };
    CHECK(core_job(control_core(t->c), (job_id){ id }, &v));
    return v.why;
}

static void a_machine_that_shrank_keeps_what_it_took_and_says_why_it_waits(void)
{
    struct controlling t;
    struct node_view n;
    controlling_begin(&t, NULL);
    uint64_t lost = running(&t, ASK("\"gpus\":4", ",\"name\":\"other\""));
    uint64_t large = controlling_submit(&t, ASK("\"gpus\":4", ""));
    uint64_t wide = controlling_submit(&t, ASK("\"gpus\":1,\"cpus\":16", ""));
    uint64_t gang = controlling_submit(&t, ASK("\"gpus\":2", ",\"replicas\":2"));
    uint64_t small = controlling_submit(&t, ASK("\"gpus\":2,\"cpus\":2", ""));
    controlling_settle(&t);
    swap_machine(&t, 2, 8000);
    controlling_settle(&t);
    for (int round = 0; round < 2; round++) {
        CHECK(core_node(control_core(t.c), (node_id){ 0 }, &n));
        CHECK_INT(n.gpus, 2);
        CHECK_INT(n.state, NODE_UP);
        CHECK_STR(controlling_state(&t, lost), "failed");
        CHECK_STR(controlling_state(&t, large), "queued");
        CHECK_STR(controlling_state(&t, wide), "queued");
        CHECK_STR(controlling_state(&t, gang), "queued");
        CHECK_STR(controlling_state(&t, small), "running");
        CHECK_INT(why(&t, large).line[0].why, WHY_TOO_LARGE);
        CHECK_STR(why(&t, large).line[0].text,
                  "it fits on no machine here any more: gpus: 4 on one machine; the largest has 2");
        CHECK(strstr(why(&t, wide).line[0].text, "cpus: 16 on one machine; the largest has 8"));
        CHECK(strstr(why(&t, gang).line[0].text, "even with nothing else running"));
        CHECK_INT(short_reason(&t, large), WHY_TOO_LARGE);
        CHECK_STR(controlling_journal_differs(&t), "");
        controlling_kill(&t); /* and the new journal makes all of it anew */
        controlling_boot(&t);
    }
    swap_machine(&t, 4, 16000); /* the GPUs are back; the small one went with its supervisor */
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, small), "failed");
    CHECK_STR(controlling_state(&t, wide), "running"); /* it needs the fewest GPUs */
    CHECK_STR(controlling_state(&t, large), "queued");
    CHECK_INT(short_reason(&t, large), WHY_ROOM);
    controlling_end(&t);
}

static void what_a_machine_has_no_more_is_not_given_out(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t again = running(&t, ASK("\"gpus\":4", ",\"requeue\":true"));
    swap_machine(&t, 2, 16000); /* its task is lost, so it queues: not for the four that were */
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, again), "queued");
    CHECK_INT(controlling_job(&t, again).now.run, 1);
    CHECK_INT(short_reason(&t, again), WHY_TOO_LARGE);
    swap_machine(&t, 0, 16000);
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, again), "queued");
    swap_machine(&t, 8, 16000);
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, again), "running");
    CHECK_INT(controlling_job(&t, again).now.run, 2);
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void a_drained_machine_that_shrank_stays_drained(void)
{
    struct controlling t;
    struct node_view n;
    struct err e;
    controlling_begin(&t, NULL);
    CHECK(control_node_state(t.c, STR("desk1"), NODE_DRAIN, (struct control_done){ 0 }, &e) == 0);
    controlling_settle(&t);
    swap_machine(&t, 2, 16000);
    controlling_settle(&t);
    CHECK(core_node(control_core(t.c), (node_id){ 0 }, &n));
    CHECK_INT(n.gpus, 2);
    CHECK_INT(n.state, NODE_DRAIN);
    controlling_end(&t);
}

static void a_long_journal_begins_anew_and_nothing_is_lost(void)
{
    struct controlling t;
    struct err e;
    controlling_begin(&t, NULL);
    uint64_t id = running(&t, LONG("", ""));
    uint64_t held = controlling_submit(&t, LONG(",\"held\":true", ""));
    for (int i = 0; i < 25100; i++) {
        CHECK(control_verb(t.c, held, VERB_RELEASE, STR("ana"), (struct control_done){ 0 }, &e) ==
              0);
        CHECK(control_verb(t.c, held, VERB_HOLD, STR("ana"), (struct control_done){ 0 }, &e) == 0);
    }
    CHECK(store_journal_lines(t.s.store) > 50000);
    controlling_settle(&t);
    CHECK(store_journal_lines(t.s.store) < 100);
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_kill(&t);
    controlling_boot(&t);
    CHECK_STR(controlling_state(&t, id), "running");
    CHECK_STR(controlling_state(&t, held), "held");
    CHECK(controlling_verb(&t, held, VERB_RELEASE) == 0);
    CHECK_STR(controlling_state(&t, held), "running");
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void a_freeze_is_asked_for_again(void)
{
    static const struct {
        const char *spec, *state;
    } rows[] = {
        { LONG("", ""), "paused" },
        { LONG(BY_SIGNAL, "\"SIM_SAVE_MS\":\"0\""), "frozen" },
        { LONG(",\"freeze\":{\"mode\":\"requeue\"}", ""), "frozen" },
        { LONG(",\"replicas\":2" BY_SIGNAL, "\"SIM_SAVE_MS\":\"0\""), "frozen" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct controlling t;
        controlling_begin(&t, NULL);
        uint64_t id = running(&t, rows[i].spec);
        ask(&t, id, VERB_FREEZE);
        die_before_acting(&t);
        CHECK_STR(controlling_state(&t, id), "freezing");
        controlling_boot(&t);
        CHECK_STR(controlling_state(&t, id), rows[i].state);
        controlling_end(&t);
    }
}

static void one_of_a_gang_that_saved_itself_meanwhile_lets_the_other_finish(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = running(&t, LONG(",\"replicas\":2" BY_SIGNAL,
                                   "\"SIM_SAVE_MS_0\":\"10\",\"SIM_SAVE_MS_1\":\"3000\""));
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    controlling_kill(&t);
    t.now_ms += 100;
    engine_sim_step(&t.sim, t.now_ms);
    controlling_boot(&t); /* hears of an exit code that is not 0 before it has read the spec */
    controlling_wait(&t, 10000);
    CHECK_STR(controlling_state(&t, id), "frozen");
    controlling_end(&t);
}

static void a_thaw_is_asked_for_again(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = running(&t, LONG("", ""));
    int64_t began = controlling_job(&t, id).now.started_ms;
    controlling_wait(&t, 1000);
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    CHECK_STR(controlling_state(&t, id), "paused");
    ask(&t, id, VERB_THAW);
    die_before_acting(&t);
    CHECK_STR(controlling_state(&t, id), "thawing");
    controlling_boot(&t);
    CHECK_STR(controlling_state(&t, id), "running");
    CHECK(runs_now(&t, id, 1));
    CHECK_INT(controlling_job(&t, id).now.started_ms, began);
    controlling_end(&t);
}

static void a_cancel_is_asked_for_again(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = running(&t, LONG("", ""));
    ask(&t, id, VERB_CANCEL);
    die_before_acting(&t);
    controlling_boot(&t);
    controlling_wait(&t, 20000);
    struct store_job j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "cancelled");
    CHECK_STR(controlling_text(&t, j.now.message), "cancelled by ana");
    CHECK_STR(controlling_text(&t, j.now.end), "cancelled");
    CHECK_INT(engine_sim_counts(&t.sim).alive, 0);
    controlling_end(&t);
}

static void a_cancelled_start_begins_nothing_any_more(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, LONG("", "\"SIM_START_MS\":\"5000\""));
    controlling_settle(&t);
    ask(&t, id, VERB_CANCEL);
    die_before_acting(&t);
    controlling_boot(&t); /* the engine tells that it is starting */
    controlling_wait(&t, 60000);
    CHECK_STR(controlling_state(&t, id), "cancelled");
    CHECK_INT(engine_sim_counts(&t.sim).starts, 0);
    CHECK_INT(engine_sim_counts(&t.sim).ended, 0);
    controlling_end(&t);
}

static void an_end_that_was_written_down_is_forgotten_by_the_engine(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = running(&t, "{\"command\":[\"sleep\",\"1\"]}");
    t.now_ms += 1000;
    engine_sim_step(&t.sim, t.now_ms);
    die_before_acting(&t);
    CHECK_STR(controlling_state(&t, id), "succeeded");
    CHECK_INT(engine_sim_counts(&t.sim).ended, 1);
    controlling_boot(&t);
    CHECK_INT(engine_sim_counts(&t.sim).ended, 0);
    controlling_end(&t);
}

/* ---- the engine was away ---- */

static void a_gang_that_was_to_end_ends_when_the_engine_is_back(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id =
        running(&t, LONG(",\"replicas\":2", "\"SIM_RUN_MS_1\":\"1000\",\"SIM_EXIT_1\":\"3\""));
    t.now_ms += 1000;
    engine_sim_step(&t.sim, t.now_ms); /* one has failed: the other is to be stopped */
    engine_sim_away(&t.sim, true);
    controlling_settle(&t);
    CHECK_INT(engine_sim_counts(&t.sim).alive, 1);
    engine_sim_away(&t.sim, false);
    controlling_wait(&t, 20000);
    struct store_job j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "failed");
    CHECK_INT(j.now.exit_code, 3);
    controlling_end(&t);
}

static void a_gang_of_which_one_failed_meanwhile_is_not_completed(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, LONG(",\"replicas\":2",
                                              "\"SIM_RUN_MS_0\":\"500\",\"SIM_EXIT_0\":\"3\","
                                              "\"SIM_START_MS_1\":\"2000\""));
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, id), "starting");
    controlling_kill(&t);
    t.now_ms += 1000;
    engine_sim_step(&t.sim, t.now_ms);
    controlling_boot(&t);
    controlling_wait(&t, 60000);
    struct store_job j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "failed");
    CHECK_INT(j.now.exit_code, 3);
    CHECK_INT(engine_sim_counts(&t.sim).starts, 1);
    controlling_end(&t);
}

static void what_was_asked_while_it_was_away_happens_when_it_is_back(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t freeze = running(&t, LONG("", "")), cancel = running(&t, LONG("", ""));
    uint64_t thaw = running(&t, LONG("", ""));
    CHECK(controlling_verb(&t, thaw, VERB_FREEZE) == 0);
    engine_sim_away(&t.sim, true);
    controlling_settle(&t);
    CHECK(controlling_verb(&t, freeze, VERB_FREEZE) == 0);
    CHECK(controlling_verb(&t, cancel, VERB_CANCEL) == 0);
    CHECK(controlling_verb(&t, thaw, VERB_THAW) == 0);
    CHECK_STR(controlling_state(&t, freeze), "freezing");
    CHECK_STR(controlling_state(&t, cancel), "stopping");
    CHECK_STR(controlling_state(&t, thaw), "thawing");
    engine_sim_away(&t.sim, false);
    controlling_wait(&t, 20000);
    CHECK_STR(controlling_state(&t, freeze), "paused");
    CHECK_STR(controlling_state(&t, cancel), "cancelled");
    CHECK_STR(controlling_state(&t, thaw), "running");
    CHECK(runs_now(&t, thaw, 1));
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static const struct test tests[] = {
    { "what was not answered may be gone", what_was_not_answered_may_be_gone },
    { "a placed job is started once", a_placed_job_is_started_once },
    { "a running job goes on", a_running_job_goes_on },
    { "a job that ended meanwhile has ended", a_job_that_ended_meanwhile_has_ended },
    { "a task that the engine does not know is lost", a_task_the_engine_lost_is_lost },
    { "a machine that changed gets its new figures and keeps the jobs",
      a_machine_that_changed_gets_its_new_figures_and_keeps_the_jobs },
    { "a machine that shrank keeps what it took and says why it waits",
      a_machine_that_shrank_keeps_what_it_took_and_says_why_it_waits },
    { "what a machine has no more is not given out", what_a_machine_has_no_more_is_not_given_out },
    { "a drained machine that shrank stays drained", a_drained_machine_that_shrank_stays_drained },
    { "a long journal begins anew, and nothing is lost",
      a_long_journal_begins_anew_and_nothing_is_lost },
    { "a freeze is asked for again, by its own way", a_freeze_is_asked_for_again },
    { "one of a gang that saved itself meanwhile lets the other finish",
      one_of_a_gang_that_saved_itself_meanwhile_lets_the_other_finish },
    { "a thaw is asked for again", a_thaw_is_asked_for_again },
    { "a cancel is asked for again", a_cancel_is_asked_for_again },
    { "a cancelled start begins nothing any more", a_cancelled_start_begins_nothing_any_more },
    { "an end that was written down is forgotten by the engine",
      an_end_that_was_written_down_is_forgotten_by_the_engine },
    { "a gang that was to end ends when the engine is back",
      a_gang_that_was_to_end_ends_when_the_engine_is_back },
    { "a gang of which one failed meanwhile is not completed",
      a_gang_of_which_one_failed_meanwhile_is_not_completed },
    { "what was asked while the engine was away happens when it is back",
      what_was_asked_while_it_was_away_happens_when_it_is_back },
};
TEST_CASES(tests)
