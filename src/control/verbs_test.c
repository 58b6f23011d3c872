#include "tests/lib/controlling.h"

/* A job of one GPU that runs for an hour, with more fields. */
#define LONG(fields) "{\"command\":[\"sleep\",\"3600\"],\"resources\":{\"gpus\":1}" fields "}"
#define ENV(words) ",\"env\":{" words "}"
#define BY_SIGNAL ",\"freeze\":{\"mode\":\"signal\",\"signal\":\"USR1\",\"grace\":\"60s\"}"

static struct slot slot_of(struct controlling *t, uint64_t job)
{
    struct job_view v;
    CHECK(core_job(control_core(t->c), (job_id){ job }, &v) && v.n == 1);
    return v.slots[0];
}

static bool is_paused(struct controlling *t, uint64_t job, uint32_t run)
{
    struct sim_task_view v;
    return engine_sim_look(&t->sim, (struct task_id){ job, run, 0 }, &v) && v.paused;
}

/* ---- cancel ---- */

static void check_cancelled(struct controlling *t, uint64_t job)
{
    struct store_job j = controlling_job(t, job);
    CHECK_STR(job_state_name(j.now.state), "cancelled");
    CHECK_STR(controlling_text(t, j.now.end), "cancelled");
    CHECK_STR(controlling_text(t, j.now.message), "cancelled by ana");
    CHECK_STR(controlling_journal_differs(t), "");
    CHECK_INT(engine_sim_counts(&t->sim).alive, 0);
    CHECK_INT(engine_sim_counts(&t->sim).ended, 0);
    CHECK_INT(control_stats(t->c).living, 0);
    CHECK(controlling_verb(t, job, VERB_CANCEL) < 0);
    CHECK(strstr(t->refused.msg, "has ended"));
}

static void cancelling_ends_a_job_in_every_state(void)
{
    static const struct {
        const char *spec;
        bool thaws, freezes;
        const char *from;
    } rows[] = {
        { LONG(",\"held\":true"), false, false, "held" },
        { LONG(ENV("\"SIM_START_MS\":\"5000\"")), false, false, "starting" },
        { LONG(""), false, false, "running" },
        { LONG(BY_SIGNAL ENV("\"SIM_SAVE_MS\":\"5000\"")), false, true, "freezing" },
        { LONG(""), false, true, "paused" },
        { LONG(BY_SIGNAL ENV("\"SIM_SAVE_MS\":\"0\"")), false, true, "frozen" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct controlling t;
        controlling_begin(&t, NULL);
        uint64_t id = controlling_submit(&t, rows[i].spec);
        controlling_settle(&t);
        if (rows[i].freezes)
            CHECK_AT(i, controlling_verb(&t, id, VERB_FREEZE) == 0);
        CHECK_STR(controlling_state(&t, id), rows[i].from);
        CHECK_AT(i, controlling_verb(&t, id, VERB_CANCEL) == 0);
        controlling_wait(&t, 20000);
        check_cancelled(&t, id);
        controlling_end(&t);
    }
}

static void a_waiting_job_is_cancelled_at_once(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    controlling_submit(&t, "{\"command\":[\"sleep\",\"5\"],\"resources\":{\"gpus\":4}}");
    controlling_settle(&t);
    uint64_t id = controlling_submit(&t, LONG(""));
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, id), "queued");
    CHECK(controlling_verb(&t, id, VERB_CANCEL) == 0);
    CHECK_STR(controlling_state(&t, id), "cancelled");
    controlling_wait(&t, 10000);
    CHECK_INT(engine_sim_counts(&t.sim).starts, 1);
    controlling_end(&t);
}

static void a_thawing_job_can_be_cancelled(void)
{
    struct controlling t;
    struct err e;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, LONG(""));
    controlling_settle(&t);
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    CHECK(control_verb(t.c, id, VERB_THAW, STR("ana"), (struct control_done){ 0 }, &e) == 0);
    CHECK(control_verb(t.c, id, VERB_CANCEL, STR("ana"), (struct control_done){ 0 }, &e) == 0);
    controlling_wait(&t, 20000);
    check_cancelled(&t, id);
    controlling_end(&t);
}

static void a_cancelled_job_has_its_grace_and_not_more(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(
        &t, LONG(",\"freeze\":{\"grace\":\"30s\"}" ENV("\"SIM_TERM_MS\":\"-1\"")));
    controlling_settle(&t);
    CHECK(controlling_verb(&t, id, VERB_CANCEL) == 0);
    CHECK(controlling_verb(&t, id, VERB_CANCEL) == 0); /* it is on its way: no error, no hurry */
    controlling_wait(&t, 29999);
    CHECK_STR(controlling_state(&t, id), "stopping");
    controlling_wait(&t, 1);
    check_cancelled(&t, id);
    CHECK_INT(controlling_job(&t, id).now.exit_signal, 9);
    controlling_end(&t);
}

static void a_job_that_ended_well_before_the_cancel_arrived_succeeded(void)
{
    struct controlling t;
    struct err e;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, "{\"command\":[\"sleep\",\"5\"]}");
    controlling_settle(&t);
    CHECK(control_verb(t.c, id, VERB_CANCEL, STR("ana"), (struct control_done){ 0 }, &e) == 0);
    t.now_ms += 5000; /* before the stop is on the disk */
    engine_sim_step(&t.sim, t.now_ms);
    controlling_settle(&t);
    struct store_job j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "succeeded");
    CHECK_STR(controlling_text(&t, j.now.end), "exited");
    CHECK_STR(controlling_text(&t, j.now.message), "");
    controlling_end(&t);
}

/* ---- hold ---- */

static void a_held_job_waits_until_it_is_released(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, "{\"command\":[\"sleep\",\"1\"],\"held\":true}");
    controlling_wait(&t, 60000);
    CHECK_STR(controlling_state(&t, id), "held");
    CHECK(controlling_verb(&t, id, VERB_RELEASE) == 0);
    CHECK_STR(controlling_state(&t, id), "running");
    CHECK(controlling_verb(&t, id, VERB_HOLD) < 0);
    CHECK(strstr(t.refused.msg, "running"));
    CHECK(controlling_verb(&t, id, VERB_RELEASE) < 0);
    controlling_wait(&t, 2000);
    CHECK_STR(controlling_state(&t, id), "succeeded");
    controlling_end(&t);
}

static void a_waiting_job_can_be_held(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    controlling_submit(&t, "{\"command\":[\"sleep\",\"5\"],\"resources\":{\"gpus\":4}}");
    controlling_settle(&t);
    uint64_t id = controlling_submit(&t, LONG(""));
    controlling_settle(&t);
    CHECK(controlling_verb(&t, id, VERB_HOLD) == 0);
    controlling_wait(&t, 10000);
    CHECK_STR(controlling_state(&t, id), "held");
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

/* ---- freeze ---- */

static void freezing_by_pause_keeps_the_gpu_and_thaw_goes_on(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, LONG(ENV("\"SIM_PAUSE_MS\":\"30\"")));
    controlling_settle(&t);
    struct slot at = slot_of(&t, id);
    int64_t began = controlling_job(&t, id).now.started_ms;
    controlling_wait(&t, 1000);
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    CHECK_STR(controlling_state(&t, id), "freezing");
    controlling_wait(&t, 30);
    CHECK_STR(controlling_state(&t, id), "paused");
    CHECK(is_paused(&t, id, 1));
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0); /* so it is */
    controlling_wait(&t, 7200000);
    CHECK_STR(controlling_state(&t, id), "paused");
    CHECK(controlling_verb(&t, id, VERB_THAW) == 0);
    CHECK_STR(controlling_state(&t, id), "running");
    CHECK(slot_of(&t, id).gpu_mask == at.gpu_mask);
    CHECK_INT(controlling_job(&t, id).now.run, 1);
    CHECK_INT(controlling_job(&t, id).now.started_ms, began);
    controlling_wait(&t, 3598969);
    CHECK_STR(controlling_state(&t, id), "running");
    controlling_wait(&t, 1);
    CHECK_STR(controlling_state(&t, id), "succeeded");
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void a_job_that_saves_itself_gives_its_gpu_back(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, LONG(BY_SIGNAL ENV("\"SIM_SAVE_MS\":\"2000\"")));
    controlling_settle(&t);
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    CHECK_STR(controlling_state(&t, id), "freezing");
    controlling_wait(&t, 2000);
    struct store_job j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "frozen");
    CHECK_INT(j.now.exit_code, 0);
    CHECK_STR(controlling_text(&t, j.now.end), "");
    CHECK_STR(controlling_text(&t, j.now.where), "");
    CHECK_INT(core_totals(control_core(t.c)).free.of[RES_GPU], 4000);
    controlling_wait(&t, 60000);
    CHECK_STR(controlling_state(&t, id), "frozen"); /* until somebody asks */
    CHECK(controlling_verb(&t, id, VERB_THAW) == 0);
    j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "running");
    CHECK_INT(j.now.run, 2);
    CHECK_INT(j.now.started_ms, t.now_ms);
    CHECK_INT(j.now.fails, 0);
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void how_a_job_ends_after_its_freeze_signal_decides(void)
{
    static const struct {
        const char *spec, *state, *message;
    } rows[] = {
        { LONG(BY_SIGNAL ENV("\"SIM_SAVE_MS\":\"10\",\"SIM_SAVE_EXIT\":\"0\"")), "succeeded", "" },
        { LONG(BY_SIGNAL ENV("\"SIM_SAVE_MS\":\"10\",\"SIM_SAVE_EXIT\":\"3\"")), "failed",
          "exit code 3" },
        { LONG(BY_SIGNAL), "failed", "killed by signal 10" },
        { LONG(BY_SIGNAL ",\"retries\":3" ENV("\"SIM_SAVE_MS\":\"10\",\"SIM_SAVE_EXIT\":\"3\"")),
          "failed", "exit code 3" },
        { LONG(BY_SIGNAL ENV("\"SIM_SAVE_MS\":\"9000\",\"SIM_LOST_MS\":\"100\"")), "failed",
          "its machine or its supervisor went away under it" },
        { LONG(",\"freeze\":{\"mode\":\"requeue\"}"), "frozen", "" },
        { LONG(",\"freeze\":{\"mode\":\"requeue\"}" ENV("\"SIM_TERM_EXIT\":\"0\"")), "frozen", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct controlling t;
        controlling_begin(&t, NULL);
        uint64_t id = controlling_submit(&t, rows[i].spec);
        controlling_settle(&t);
        CHECK_AT(i, controlling_verb(&t, id, VERB_FREEZE) == 0);
        controlling_wait(&t, 1000);
        struct store_job j = controlling_job(&t, id);
        CHECK_STR(job_state_name(j.now.state), rows[i].state);
        CHECK_STR(controlling_text(&t, j.now.message), rows[i].message);
        CHECK_STR(controlling_journal_differs(&t), "");
        controlling_end(&t);
    }
}

static void who_does_not_save_itself_in_time_is_ended(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(
        &t, LONG(",\"freeze\":{\"mode\":\"signal\",\"signal\":\"USR1\",\"grace\":\"20ms\"}" ENV(
                "\"SIM_SAVE_MS\":\"3600000\"")));
    controlling_settle(&t);
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    /* The grace is the loop's time: it passes by itself. */
    while (engine_sim_counts(&t.sim).alive) {
        controlling_real(&t, 5);
        controlling_wait(&t, 1);
    }
    controlling_wait(&t, 1000);
    struct store_job j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "failed");
    CHECK_STR(controlling_text(&t, j.now.message),
              "it did not save itself in time when it was frozen");
    CHECK_STR(controlling_text(&t, j.now.end), "stopped");
    controlling_end(&t);
}

static void what_cannot_be_frozen_says_why(void)
{
    struct controlling t;
    controlling_begin(&t, &(struct sim_config){ .lacks = { [CAP_PAUSE] = true } });
    uint64_t none = controlling_submit(&t, LONG(",\"freeze\":{\"mode\":\"none\"}"));
    uint64_t pause = controlling_submit(&t, LONG(""));
    uint64_t held = controlling_submit(&t, LONG(",\"held\":true"));
    controlling_settle(&t);
    CHECK(controlling_verb(&t, none, VERB_FREEZE) < 0);
    CHECK(strstr(t.refused.msg, "'none'") && t.refused.hint[0]);
    CHECK(controlling_verb(&t, pause, VERB_FREEZE) < 0);
    CHECK(strstr(t.refused.msg, "'pause'") && strstr(t.refused.hint, "engine"));
    CHECK(controlling_verb(&t, held, VERB_FREEZE) < 0);
    CHECK(strstr(t.refused.msg, "held"));
    CHECK(controlling_verb(&t, none, VERB_THAW) < 0);
    CHECK_STR(controlling_state(&t, pause), "running");
    controlling_end(&t);
}

static void a_frozen_job_that_is_thawed_waits_for_room(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, LONG(",\"freeze\":{\"mode\":\"requeue\"}"));
    controlling_settle(&t);
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    controlling_submit(&t, "{\"command\":[\"sleep\",\"60\"],\"resources\":{\"gpus\":4}}");
    controlling_settle(&t);
    CHECK(controlling_verb(&t, id, VERB_THAW) == 0);
    CHECK_STR(controlling_state(&t, id), "frozen");
    controlling_kill(&t);
    controlling_boot(&t);
    controlling_wait(&t, 60000);
    CHECK_STR(controlling_state(&t, id), "running"); /* the wish outlived the restart */
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    CHECK_STR(controlling_state(&t, id), "frozen");
    CHECK(controlling_verb(&t, id, VERB_THAW) == 0);
    CHECK(controlling_verb(&t, id, VERB_CANCEL) == 0);
    controlling_wait(&t, 20000);
    check_cancelled(&t, id);
    controlling_end(&t);
}

static void signals_go_to_what_runs_only(void)
{
    struct controlling t;
    struct err e;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, LONG(BY_SIGNAL ENV("\"SIM_SAVE_MS\":\"0\"")));
    uint64_t slow = controlling_submit(&t, LONG(ENV("\"SIM_START_MS\":\"1000\"")));
    uint64_t held = controlling_submit(&t, LONG(",\"held\":true"));
    controlling_settle(&t);
    CHECK(control_signal(t.c, held, 10, &e) < 0 && e.code == ERR_CONFLICT);
    CHECK(control_signal(t.c, slow, 10, &e) < 0 && e.code == ERR_CONFLICT);
    CHECK(control_signal(t.c, id, 10, &e) == 0);
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, id), "failed"); /* 85 means saved only when it was asked to */
    CHECK(control_signal(t.c, id, 10, &e) < 0);
    CHECK(control_signal(t.c, 999, 10, &e) < 0);
    controlling_end(&t);
}

static const struct test tests[] = {
    { "cancelling ends a job in every state", cancelling_ends_a_job_in_every_state },
    { "a waiting job is cancelled at once and never starts", a_waiting_job_is_cancelled_at_once },
    { "a thawing job can be cancelled", a_thawing_job_can_be_cancelled },
    { "a cancelled job has its grace and not more", a_cancelled_job_has_its_grace_and_not_more },
    { "a job that ended well before the cancel arrived has succeeded",
      a_job_that_ended_well_before_the_cancel_arrived_succeeded },
    { "a held job waits until it is released", a_held_job_waits_until_it_is_released },
    { "a waiting job can be held", a_waiting_job_can_be_held },
    { "freezing by pause keeps the GPU, and thaw goes on",
      freezing_by_pause_keeps_the_gpu_and_thaw_goes_on },
    { "a job that saves itself gives its GPU back", a_job_that_saves_itself_gives_its_gpu_back },
    { "how a job ends after its freeze signal decides what it is",
      how_a_job_ends_after_its_freeze_signal_decides },
    { "who does not save itself in time is ended", who_does_not_save_itself_in_time_is_ended },
    { "what cannot be frozen says why", what_cannot_be_frozen_says_why },
    { "a frozen job that is thawed waits for room", a_frozen_job_that_is_thawed_waits_for_room },
    { "signals go to what runs, and to nothing else", signals_go_to_what_runs_only },
};
TEST_CASES(tests)
