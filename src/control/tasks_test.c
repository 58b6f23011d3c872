#include "tests/lib/controlling.h"

#define JOB(fields, words) "{\"command\":[\"x\"]" fields ",\"env\":{" words "}}"

static void check_end(struct controlling *t, uint64_t id, const char *state, const char *end,
                      const char *message)
{
    struct store_job j = controlling_job(t, id);
    CHECK_STR(job_state_name(j.now.state), state);
    CHECK_STR(controlling_text(t, j.now.end), end);
    CHECK_STR(controlling_text(t, j.now.message), message);
    CHECK_STR(controlling_journal_differs(t), "");
}

static void every_end_has_its_sentence(void)
{
    static const struct {
        const char *spec, *state, *end, *message;
        int code, signal;
    } rows[] = {
        { JOB("", "\"SIM_EXIT\":\"3\""), "failed", "exited", "exit code 3", 3, 0 },
        { JOB("", "\"SIM_SIGNAL\":\"11\""), "failed", "exited", "killed by signal 11", 0, 11 },
        { JOB("", "\"SIM_OOM_MS\":\"5\""), "failed", "out_of_memory",
          "it used more memory than it asked for", 0, 9 },
        { JOB(",\"max_time\":\"5s\"", "\"SIM_RUN_MS\":\"9000\""), "failed", "time_limit",
          "its time was over", 0, 15 },
        { JOB(",\"max_time\":\"5s\",\"retries\":3", "\"SIM_RUN_MS\":\"9000\""), "failed",
          "time_limit", "its time was over", 0, 15 },
        { JOB("", "\"SIM_LOST_MS\":\"5\""), "failed", "lost",
          "its machine or its supervisor went away under it", 0, 9 },
        { JOB("", "\"SIM_START_FAILS\":\"1\""), "failed", "start_failed",
          "the simulated start failed", 127, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct controlling t;
        controlling_begin(&t, NULL);
        uint64_t id = controlling_submit(&t, rows[i].spec);
        controlling_wait(&t, 60000);
        check_end(&t, id, rows[i].state, rows[i].end, rows[i].message);
        struct store_job j = controlling_job(&t, id);
        CHECK_INT(j.now.exit_code, rows[i].code);
        CHECK_INT(j.now.exit_signal, rows[i].signal);
        CHECK_INT(j.now.run, 1);
        bool began = strcmp(rows[i].end, "start_failed") != 0;
        CHECK_INT(j.now.started_ms != 0, began);
        CHECK_INT(engine_sim_counts(&t.sim).starts, began);
        controlling_end(&t);
    }
}

static void a_job_that_fails_is_tried_again_as_often_as_asked(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, JOB(",\"retries\":2", "\"SIM_EXIT\":\"1\""));
    controlling_wait(&t, 1500);
    struct store_job j = controlling_job(&t, id);
    CHECK_STR(job_state_name(j.now.state), "running");
    CHECK_INT(j.now.run, 2);
    CHECK_INT(j.now.fails, 1);
    CHECK_STR(controlling_text(&t, j.now.end), "");
    controlling_wait(&t, 60000);
    check_end(&t, id, "failed", "exited", "exit code 1");
    CHECK_INT(controlling_job(&t, id).now.run, 3);
    CHECK_INT(engine_sim_counts(&t.sim).starts, 3);
    controlling_end(&t);
}

static void a_start_that_fails_is_tried_again_and_forgotten_when_it_ran(void)
{
    struct controlling t;
    controlling_begin(&t, &(struct sim_config){ .seed = 3, .fail_permille = 500 });
    size_t failed_first = 0;
    for (int i = 0; i < 12; i++)
        controlling_submit(&t, JOB(",\"retries\":20", "\"SIM_RUN_MS\":\"10\",\"SIM_EXIT\":\"4\""));
    controlling_wait(&t, 600000);
    for (uint64_t id = 1; id <= 12; id++) {
        struct store_job j = controlling_job(&t, id);
        bool last_failed = str_is(j.now.end, "start_failed");
        CHECK_STR(job_state_name(j.now.state), "failed");
        CHECK_INT(j.now.run, 21);
        CHECK_STR(controlling_text(&t, j.now.message),
                  last_failed ? "the simulated start failed" : "exit code 4");
        CHECK_INT(j.now.exit_code, last_failed ? 127 : 4);
        failed_first += !last_failed;
    }
    CHECK(failed_first > 0 && failed_first < 12);
    controlling_end(&t);
}

static void a_lost_job_runs_again_only_when_it_may(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t may = controlling_submit(&t, JOB(",\"requeue\":true", "\"SIM_RUN_MS\":\"5000\""));
    uint64_t not = controlling_submit(&t, JOB("", "\"SIM_RUN_MS\":\"5000\""));
    controlling_wait(&t, 100);
    engine_sim_lose(&t.sim, (struct task_id){ may, 1, 0 });
    engine_sim_lose(&t.sim, (struct task_id){ not, 1, 0 });
    controlling_settle(&t);
    struct store_job j = controlling_job(&t, may);
    CHECK_STR(job_state_name(j.now.state), "running");
    CHECK_INT(j.now.run, 2);
    CHECK_INT(j.now.fails, 0);
    check_end(&t, not, "failed", "lost", "its machine or its supervisor went away under it");
    controlling_wait(&t, 5000);
    check_end(&t, may, "succeeded", "exited", "");
    controlling_end(&t);
}

static void a_paused_or_freezing_job_that_is_lost_runs_again_when_it_may(void)
{
    static const char *const rows[] = {
        JOB(",\"requeue\":true", "\"SIM_RUN_MS\":\"5000\""),
        JOB(",\"requeue\":true,\"freeze\":{\"mode\":\"signal\",\"signal\":\"USR1\"}",
            "\"SIM_RUN_MS\":\"5000\",\"SIM_SAVE_MS\":\"4000\""),
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct controlling t;
        controlling_begin(&t, NULL);
        uint64_t id = controlling_submit(&t, rows[i]);
        controlling_settle(&t);
        CHECK_AT(i, controlling_verb(&t, id, VERB_FREEZE) == 0);
        CHECK_STR(controlling_state(&t, id), i ? "freezing" : "paused");
        engine_sim_lose(&t.sim, (struct task_id){ id, 1, 0 });
        controlling_settle(&t);
        CHECK_STR(controlling_state(&t, id), "running");
        CHECK_INT(controlling_job(&t, id).now.run, 2);
        controlling_end(&t);
    }
}

/* ---- time ---- */

static int64_t limit_of(struct controlling *t, uint64_t job, uint32_t run)
{
    struct sim_task_view v;
    CHECK(engine_sim_look(&t->sim, (struct task_id){ job, run, 0 }, &v));
    return v.max_time_ms;
}

static void frozen_time_does_not_count_and_what_ran_does(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(
        &t, JOB(",\"max_time\":\"100s\",\"freeze\":{\"mode\":\"signal\",\"signal\":\"USR1\"}",
                "\"SIM_RUN_MS\":\"90000\",\"SIM_SAVE_MS\":\"0\""));
    controlling_settle(&t);
    CHECK_INT(limit_of(&t, id, 1), 100000);
    controlling_wait(&t, 60000);
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    CHECK_STR(controlling_state(&t, id), "frozen");
    CHECK_INT(controlling_job(&t, id).now.ran_ms, 60000);
    controlling_wait(&t, 3600000);
    controlling_kill(&t);
    controlling_boot(&t);
    CHECK(controlling_verb(&t, id, VERB_THAW) == 0);
    CHECK_INT(limit_of(&t, id, 2), 40000);
    controlling_wait(&t, 90000);
    check_end(&t, id, "failed", "time_limit", "its time was over");
    controlling_end(&t);
}

static void who_starts_anew_has_the_whole_time_again(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, JOB(",\"max_time\":\"100s\",\"retries\":1",
                                             "\"SIM_RUN_MS\":\"60000\",\"SIM_EXIT\":\"1\""));
    controlling_wait(&t, 60000);
    CHECK_INT(controlling_job(&t, id).now.run, 2);
    CHECK_INT(limit_of(&t, id, 2), 100000);
    controlling_end(&t);
}

/* ---- gangs ---- */

static void when_one_of_a_gang_fails_all_end_and_its_end_is_the_jobs(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, JOB(",\"replicas\":3",
                                             "\"SIM_RUN_MS\":\"60000\",\"SIM_RUN_MS_1\":\"5000\","
                                             "\"SIM_EXIT_1\":\"7\",\"SIM_TERM_MS_2\":\"300\""));
    controlling_wait(&t, 1000);
    CHECK_STR(controlling_state(&t, id), "running");
    CHECK_INT(engine_sim_counts(&t.sim).alive, 3);
    controlling_wait(&t, 4100);
    CHECK_INT(engine_sim_counts(&t.sim).alive, 1); /* takes its time to end */
    CHECK_STR(controlling_state(&t, id), "running");
    controlling_wait(&t, 1000);
    check_end(&t, id, "failed", "exited", "replica 1: exit code 7");
    CHECK_INT(controlling_job(&t, id).now.exit_code, 7);
    CHECK_INT(engine_sim_counts(&t.sim).ended, 0);
    controlling_end(&t);
}

static void a_gang_succeeds_when_all_do(void)
{
    struct controlling t;
    controlling_begin(&t, &(struct sim_config){ .start_least_ms = 10, .start_most_ms = 900 });
    uint64_t id = controlling_submit(
        &t, JOB(",\"replicas\":4,\"resources\":{\"gpus\":1}", "\"SIM_RUN_MS_2\":\"0\""));
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, id), "starting");
    controlling_wait(&t, 900);
    CHECK_STR(controlling_state(&t, id), "running"); /* though one has ended already */
    controlling_wait(&t, 3000);
    check_end(&t, id, "succeeded", "exited", "");
    CHECK_INT(engine_sim_counts(&t.sim).starts, 4);
    CHECK_INT(engine_sim_counts(&t.sim).overbooked, 0);
    controlling_end(&t);
}

static void when_one_of_a_gang_cannot_start_nothing_goes_on(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(
        &t, JOB(",\"replicas\":3", "\"SIM_RUN_MS\":\"600000\",\"SIM_START_FAILS_2\":\"1\","
                                   "\"SIM_START_MS_2\":\"50\""));
    controlling_wait(&t, 20000);
    check_end(&t, id, "failed", "start_failed", "the simulated start failed");
    CHECK_INT(engine_sim_counts(&t.sim).alive + engine_sim_counts(&t.sim).ended, 0);
    CHECK_INT(controlling_job(&t, id).now.started_ms, 0); /* it never ran whole */
    controlling_end(&t);
}

static void a_gang_is_paused_when_each_stands_or_has_ended(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(
        &t, JOB(",\"replicas\":3", "\"SIM_RUN_MS\":\"60000\",\"SIM_RUN_MS_0\":\"1020\","
                                   "\"SIM_PAUSE_MS_0\":\"500\",\"SIM_PAUSE_MS_1\":\"10\""));
    controlling_wait(&t, 1000);
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    controlling_wait(&t, 19);
    CHECK_STR(controlling_state(&t, id), "freezing");
    controlling_wait(&t, 1); /* the first ends well before it stands */
    CHECK_STR(controlling_state(&t, id), "paused");
    CHECK(controlling_verb(&t, id, VERB_THAW) == 0);
    CHECK_STR(controlling_state(&t, id), "running");
    controlling_wait(&t, 60000);
    check_end(&t, id, "succeeded", "exited", "");
    controlling_end(&t);
}

static void when_one_of_a_gang_fails_while_it_is_paused_all_end(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, JOB(",\"replicas\":2",
                                             "\"SIM_RUN_MS\":\"60000\",\"SIM_RUN_MS_0\":\"1020\","
                                             "\"SIM_EXIT_0\":\"2\",\"SIM_PAUSE_MS_0\":\"500\""));
    controlling_wait(&t, 1000);
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    controlling_wait(&t, 20000);
    check_end(&t, id, "failed", "exited", "replica 0: exit code 2");
    controlling_end(&t);
}

static void a_gang_is_frozen_when_all_have_saved_themselves(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    static const char spec[] =
        JOB(",\"replicas\":2,\"freeze\":{\"mode\":\"signal\",\"signal\":\"USR1\"}",
            "\"SIM_RUN_MS\":\"60000\",\"SIM_SAVE_MS_0\":\"10\",\"SIM_SAVE_MS_1\":\"800\"");
    uint64_t id = controlling_submit(&t, spec);
    controlling_settle(&t);
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    controlling_wait(&t, 100);
    CHECK_STR(controlling_state(&t, id), "freezing"); /* one has saved itself; the other is let */
    controlling_wait(&t, 700);
    CHECK_STR(controlling_state(&t, id), "frozen");
    controlling_end(&t);
}

static void a_start_that_is_tried_again_says_why_and_how_often(void)
{
    struct controlling t;
    struct engine_event ev = { .kind = ENGINE_FAILED, .task = { 1, 1, 0 } };
    const char *why = "image 'x': the registry 'r' does not answer; trying again (1 of 12)";
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, JOB("", "\"SIM_START_MS\":\"600000\""));
    controlling_settle(&t);
    err_set(&ev.failed, ERR_UNAVAILABLE, "image 'x': the registry 'r' does not answer");
    control_engine_event(t.c, &ev);
    controlling_settle(&t);
    CHECK_STR(controlling_text(&t, controlling_job(&t, id).now.message), why);
    controlling_wait(&t, 1000);
    ev = (struct engine_event){ .kind = ENGINE_PROGRESS, .task = { 1, 1, 0 } };
    ev.progress.text = STR("fetching image 'x'"); /* that it has begun anew is no news */
    control_engine_event(t.c, &ev);
    controlling_settle(&t);
    CHECK_STR(controlling_text(&t, controlling_job(&t, id).now.message), why);
    ev.progress.done = 1;
    ev.progress.total = 4;
    control_engine_event(t.c, &ev);
    controlling_settle(&t);
    CHECK_STR(controlling_text(&t, controlling_job(&t, id).now.message),
              "fetching image 'x' (25 %)");
    controlling_end(&t);
}

static void a_gang_whose_members_all_fail_has_used_one_try(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(
        &t, JOB(",\"replicas\":15,\"resources\":{\"cpus\":0.1}", "\"SIM_START_MS\":\"600000\""));
    controlling_settle(&t);
    for (uint32_t i = 0; i < 15; i++) {
        struct engine_event ev = { .kind = ENGINE_FAILED, .task = { id, 1, i } };
        err_set(&ev.failed, ERR_UNAVAILABLE, "the disk is full");
        control_engine_event(t.c, &ev);
    }
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, id), "starting");
    CHECK_STR(controlling_text(&t, controlling_job(&t, id).now.message),
              "the disk is full; trying again (1 of 12)");
    controlling_end(&t);
}

static void words_of_the_start_are_shown_while_it_lasts(void)
{
    struct controlling t;
    struct engine_event ev = { .kind = ENGINE_PROGRESS, .task = { 1, 1, 0 } };
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, JOB("", "\"SIM_START_MS\":\"5000\",\"SIM_EXIT\":\"3\""));
    controlling_settle(&t);
    ev.progress.text = STR("fetching the image");
    ev.progress.done = 1;
    ev.progress.total = 4;
    control_engine_event(t.c, &ev);
    controlling_settle(&t);
    CHECK_STR(controlling_text(&t, controlling_job(&t, id).now.message),
              "fetching the image (25 %)");
    controlling_wait(&t, 5000);
    CHECK_STR(controlling_text(&t, controlling_job(&t, id).now.message), "");
    control_engine_event(t.c, &ev); /* late: nobody cares */
    controlling_wait(&t, 5000);
    check_end(&t, id, "failed", "exited", "exit code 3");
    controlling_end(&t);
}

static void start_stranger(struct controlling *t)
{
    static const char *const argv[] = { "sleep", "10s", NULL };
    static const char *const none[] = { NULL };
    struct spec s = { .image = STR("host"), .argv = argv, .n_args = 2 };
    struct slot slot = { 0 };
    struct err e;
    struct engine_start start = {
        .task = { 77, 1, 0 }, .spec = &s, .slots = &slot, .n_slots = 1, .env = none
    };
    CHECK(t->sim.ops->start(t->sim.self, &start, &e) == 0);
}

static void beside_a_stranger_nothing_starts(void)
{
    struct controlling t;
    struct err e = { 0 };
    controlling_begin(&t, NULL);
    start_stranger(&t);
    controlling_wait(&t, 5000);
    CHECK(!control_ready(t.c, &e) && strstr(e.msg, "1 tasks run") && strstr(e.hint, "--forget"));
    uint64_t id = controlling_submit(&t, JOB("", "\"SIM_RUN_MS\":\"1000\""));
    controlling_wait(&t, 2000);
    CHECK_STR(controlling_state(&t, id), "queued");
    CHECK_INT(engine_sim_counts(&t.sim).alive, 1);
    controlling_wait(&t, 20000); /* it ends, and is forgotten */
    CHECK_INT(engine_sim_counts(&t.sim).alive + engine_sim_counts(&t.sim).ended, 0);
    CHECK(control_ready(t.c, &e));
    CHECK_STR(controlling_state(&t, id), "succeeded");
    controlling_end(&t);
}

static void strangers_are_ended_when_that_is_wanted(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    t.forget_tasks = true;
    controlling_kill(&t);
    controlling_boot(&t);
    start_stranger(&t);
    controlling_wait(&t, 1000);
    struct sim_counts n = engine_sim_counts(&t.sim);
    CHECK_INT(n.starts, 1);
    CHECK_INT(n.alive + n.ended, 0);
    controlling_end(&t);
}

static const struct test tests[] = {
    { "every end has its sentence, slug and code", every_end_has_its_sentence },
    { "a job that fails is tried again as often as asked",
      a_job_that_fails_is_tried_again_as_often_as_asked },
    { "that an earlier start failed is forgotten when a later one ran",
      a_start_that_fails_is_tried_again_and_forgotten_when_it_ran },
    { "a lost job runs again only when it may", a_lost_job_runs_again_only_when_it_may },
    { "a paused or freezing job that is lost runs again when it may",
      a_paused_or_freezing_job_that_is_lost_runs_again_when_it_may },
    { "frozen time does not count, and what ran before does",
      frozen_time_does_not_count_and_what_ran_does },
    { "who starts anew has the whole time again", who_starts_anew_has_the_whole_time_again },
    { "when one of a gang fails all end, and its end is the job's",
      when_one_of_a_gang_fails_all_end_and_its_end_is_the_jobs },
    { "a gang succeeds when all do", a_gang_succeeds_when_all_do },
    { "when one of a gang cannot start nothing goes on",
      when_one_of_a_gang_cannot_start_nothing_goes_on },
    { "a gang is paused when each stands or has ended",
      a_gang_is_paused_when_each_stands_or_has_ended },
    { "when one of a gang fails while it is being paused all end",
      when_one_of_a_gang_fails_while_it_is_paused_all_end },
    { "a gang is frozen when all have saved themselves",
      a_gang_is_frozen_when_all_have_saved_themselves },
    { "a gang whose members all fail has used one try",
      a_gang_whose_members_all_fail_has_used_one_try },
    { "a start that is tried again says why and how often",
      a_start_that_is_tried_again_says_why_and_how_often },
    { "words of a start are shown while it lasts", words_of_the_start_are_shown_while_it_lasts },
    { "beside a stranger nothing starts", beside_a_stranger_nothing_starts },
    { "strangers are ended when that is wanted", strangers_are_ended_when_that_is_wanted },
};
TEST_CASES(tests)
