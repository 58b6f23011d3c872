/* Taking back: what a job goes through when its room is for another. */
#include "core/policy.h"
#include "tests/lib/controlling.h"

#define JOB(fields, words)                                                                         \
    "{\"command\":[\"sleep\",\"36000\"],\"resources\":{\"gpus\":1}" fields ",\"env\":{" words "}}"
#define BY(mode) ",\"freeze\":{\"mode\":\"" mode "\",\"signal\":\"USR1\",\"grace\":\"60s\"}"
#define SAVES JOB(BY("signal"), "\"SIM_SAVE_MS\":\"1000\"")
#define MINUTE JOB("", "\"SIM_RUN_MS\":\"60000\"")
#define TAKEN "taken back: it is another job's turn; it goes on by itself"

enum {
    FILL = 4, /* GPUs of the machine */
    PATIENCE_MS = 180000
};

/* ana has every GPU for long enough to be asked for one, and ben comes. */
static uint64_t contend(struct controlling *t, const struct sim_config *config, const char *ana)
{
    controlling_begin(t, config);
    for (int i = 0; i < FILL; i++)
        controlling_submit_as(t, "ana", "", ana);
    controlling_wait(t, t->policy.min_run_ms + 1);
    uint64_t bens = controlling_submit_as(t, "ben", "", MINUTE);
    controlling_settle(t);
    return bens;
}

/* The first of ana's jobs that comes into this state; 0: none did. */
static uint64_t wait_victim(struct controlling *t, enum job_state s)
{
    for (int64_t waited = 0; waited < PATIENCE_MS; waited += 500) {
        for (uint64_t id = 1; id <= FILL; id++)
            if (controlling_job(t, id).now.state == s)
                return id;
        controlling_wait(t, 500);
    }
    return 0;
}

static void wait_state(struct controlling *t, uint64_t id, enum job_state s)
{
    for (int64_t waited = 0; waited < 4 * PATIENCE_MS; waited += 500) {
        if (controlling_job(t, id).now.state == s)
            return;
        controlling_wait(t, 500);
    }
    CHECK_STR(controlling_state(t, id), job_state_name(s));
}

static const char *message(struct controlling *t, uint64_t id)
{
    return controlling_text(t, controlling_job(t, id).now.message);
}

static void a_job_is_taken_back_and_goes_on_by_itself(void)
{
    struct controlling t;
    uint64_t bens = contend(&t, NULL, SAVES);
    uint64_t id = wait_victim(&t, JOB_FREEZING);
    CHECK(id);
    CHECK_STR(message(&t, id), TAKEN);
    CHECK_STR(controlling_state(&t, bens), "queued");
    wait_state(&t, bens, JOB_RUNNING);
    CHECK_STR(controlling_state(&t, id), "frozen");
    CHECK_STR(message(&t, id), TAKEN);
    CHECK_STR(controlling_journal_differs(&t), "");
    CHECK_INT(control_stats(t.c).taken, 1);
    wait_state(&t, id, JOB_RUNNING);
    CHECK_STR(controlling_state(&t, bens), "succeeded");
    CHECK_STR(message(&t, id), "");
    CHECK_INT(controlling_job(&t, id).now.run, 2);
    CHECK_INT(controlling_job(&t, id).now.fails, 0);
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void a_job_without_a_way_to_give_its_gpu_back_is_left_alone(void)
{
    static const struct {
        const char *spec;
        bool no_signals;
    } rows[] = {
        { JOB("", ""), false },
        { JOB(BY("pause"), ""), false },
        { JOB(BY("none"), ""), false },
        { SAVES, true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct controlling t;
        struct sim_config config = { .lacks = { [CAP_SIGNAL] = rows[i].no_signals } };
        uint64_t bens = contend(&t, &config, rows[i].spec);
        controlling_wait(&t, 3600000);
        CHECK_STR(controlling_state(&t, bens), "queued");
        CHECK_AT(i, control_stats(t.c).taken == 0);
        controlling_end(&t);
    }
}

static void a_job_that_runs_again_from_the_start_says_so(void)
{
    struct controlling t;
    uint64_t bens = contend(&t, NULL, JOB(BY("requeue"), "\"SIM_TERM_MS\":\"1000\""));
    uint64_t id = wait_victim(&t, JOB_FREEZING);
    CHECK(id);
    CHECK_STR(message(&t, id), "taken back: it is another job's turn; it starts again by itself");
    wait_state(&t, bens, JOB_RUNNING);
    CHECK_STR(controlling_state(&t, id), "frozen");
    wait_state(&t, id, JOB_RUNNING);
    CHECK_STR(message(&t, id), "");
    controlling_end(&t);
}

static void a_job_that_the_engine_cannot_freeze_any_more_goes_on(void)
{
    static const bool nothing[ENGINE_CAP_COUNT] = { 0 };
    struct controlling t;
    struct job_view v;
    controlling_begin(&t, NULL);
    for (int i = 0; i < FILL; i++)
        controlling_submit(&t, SAVES);
    controlling_settle(&t);
    controlling_kill(&t);
    t.sim.caps = nothing; /* e.g. without root from now on */
    controlling_boot(&t);
    uint64_t bens = controlling_submit_as(&t, "ben", "", MINUTE);
    controlling_wait(&t, 3600000);
    CHECK_STR(controlling_state(&t, bens), "queued");
    CHECK_INT(control_stats(t.c).taken, 0);
    for (uint64_t id = 1; id <= FILL; id++) {
        CHECK_STR(controlling_state(&t, id), "running");
        CHECK_STR(message(&t, id), "");
        CHECK(core_job(control_core(t.c), (job_id){ id }, &v) && v.state == JOB_RUNNING);
    }
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

/* ---- those that do not save themselves ---- */

static void who_does_not_save_itself_is_started_again_once(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(
        &t, JOB(BY("signal"), "\"SIM_SAVE_MS\":\"100\",\"SIM_SAVE_EXIT\":\"3\""));
    for (int i = 1; i < FILL; i++)
        controlling_submit(&t, JOB("", ""));
    controlling_wait(&t, t.policy.min_run_ms + 1);
    uint64_t bens = controlling_submit_as(&t, "ben", "", MINUTE);
    wait_state(&t, id, JOB_QUEUED);
    CHECK_STR(message(&t, id), "it did not save itself when it was taken back: exit code 3; "
                               "it starts again from what it had saved before");
    CHECK_INT(controlling_job(&t, id).now.fails, 1);
    wait_state(&t, bens, JOB_SUCCEEDED);
    wait_state(&t, id, JOB_RUNNING);
    CHECK_STR(message(&t, id), "");
    controlling_wait(&t, t.policy.thaw_run_ms + 1);
    controlling_submit_as(&t, "ben", "", MINUTE);
    wait_state(&t, id, JOB_FAILED);
    CHECK_STR(message(&t, id), "it did not save itself when it was taken back: exit code 3");
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void who_takes_too_long_is_ended_and_started_again(void)
{
    struct controlling t;
    contend(&t, NULL,
            JOB(",\"freeze\":{\"mode\":\"signal\",\"signal\":\"USR1\",\"grace\":\"20ms\"}",
                "\"SIM_SAVE_MS\":\"36000000\""));
    uint64_t id = wait_victim(&t, JOB_FREEZING);
    CHECK(id);
    while (controlling_job(&t, id).now.state == JOB_FREEZING) { /* the grace is the loop's time */
        controlling_real(&t, 5);
        controlling_wait(&t, 1);
    }
    CHECK_STR(controlling_state(&t, id), "queued");
    CHECK_STR(message(&t, id), "it did not save itself in time when it was taken back; "
                               "it starts again from what it had saved before");
    controlling_end(&t);
}

static void who_finishes_while_it_is_taken_has_succeeded(void)
{
    struct controlling t;
    contend(&t, NULL, JOB(BY("signal"), "\"SIM_SAVE_MS\":\"100\",\"SIM_SAVE_EXIT\":\"0\""));
    uint64_t id = wait_victim(&t, JOB_SUCCEEDED);
    CHECK(id);
    CHECK_STR(message(&t, id), "");
    controlling_end(&t);
}

/* ---- people ---- */

static void a_person_may_keep_frozen_what_was_taken_back(void)
{
    struct controlling t;
    uint64_t bens = contend(&t, NULL, SAVES);
    uint64_t id = wait_victim(&t, JOB_FREEZING);
    CHECK(id);
    CHECK(controlling_verb(&t, id, VERB_FREEZE) < 0);
    CHECK(strstr(t.refused.msg, "being taken back") && t.refused.hint[0]);
    wait_state(&t, id, JOB_FROZEN);
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    CHECK_STR(message(&t, id), "");
    wait_state(&t, bens, JOB_SUCCEEDED);
    controlling_wait(&t, 3600000);
    CHECK_STR(controlling_state(&t, id), "frozen");
    CHECK(controlling_verb(&t, id, VERB_THAW) == 0);
    wait_state(&t, id, JOB_RUNNING);
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void cancelling_ends_what_is_being_taken(void)
{
    for (int frozen = 0; frozen < 2; frozen++) {
        struct controlling t;
        uint64_t bens = contend(&t, NULL, SAVES);
        uint64_t id = wait_victim(&t, frozen ? JOB_FROZEN : JOB_FREEZING);
        CHECK_AT(frozen, id != 0);
        CHECK_AT(frozen, controlling_verb(&t, id, VERB_CANCEL) == 0);
        wait_state(&t, id, JOB_CANCELLED);
        CHECK_STR(message(&t, id), "cancelled by ana");
        wait_state(&t, bens, JOB_RUNNING); /* the room is its own all the same */
        CHECK_STR(controlling_journal_differs(&t), "");
        controlling_end(&t);
    }
}

/* ---- crashes ---- */

static void a_job_that_is_taken_outlives_a_crash_at_every_step(void)
{
    enum step {
        DECIDED, /* nothing of the decision is on the disk */
        SAVING,  /* the job knows */
        SAVED,   /* and has ended; we were not there to hear it */
        FROZEN,
        STEPS
    };
    for (int step = DECIDED; step < STEPS; step++) {
        struct controlling t;
        uint64_t bens = contend(&t, NULL, SAVES);
        uint64_t id =
            step == DECIDED ? 0 : wait_victim(&t, step == FROZEN ? JOB_FROZEN : JOB_FREEZING);
        if (step == DECIDED) {
            t.now_ms += t.policy.review_ms;
            control_look_at_clock(t.c);
        }
        controlling_kill(&t);
        if (step == SAVED) {
            t.now_ms += 5000;
            engine_sim_step(&t.sim, t.now_ms);
        }
        controlling_boot(&t);
        if (step == SAVING) {
            CHECK_STR(controlling_state(&t, id), "freezing");
            CHECK(controlling_verb(&t, id, VERB_FREEZE) < 0); /* it is known why */
            CHECK(strstr(t.refused.msg, "being taken back"));
        }
        wait_state(&t, bens, JOB_RUNNING);
        id = wait_victim(&t, JOB_FROZEN);
        CHECK_AT(step, id != 0);
        CHECK_STR(message(&t, id), TAKEN);
        wait_state(&t, id, JOB_RUNNING);
        CHECK_INT(controlling_job(&t, id).now.run, 2);
        CHECK_STR(controlling_journal_differs(&t), "");
        controlling_end(&t);
    }
}

/* Until the journal begins anew. */
static void cut_journal(struct controlling *t)
{
    struct err e;
    struct control_done none = { 0 };
    uint64_t held = controlling_submit(t, JOB(",\"held\":true", ""));
    for (int i = 0; i < 25100; i++) {
        CHECK(control_verb(t->c, held, VERB_RELEASE, STR("ana"), none, &e) == 0);
        CHECK(control_verb(t->c, held, VERB_HOLD, STR("ana"), none, &e) == 0);
    }
    CHECK(store_journal_lines(t->s.store) > 50000);
    controlling_settle(t);
    CHECK(store_journal_lines(t->s.store) < 100);
}

static void a_journal_that_begins_anew_knows_what_is_taken_and_for_whom(void)
{
    struct controlling t;
    uint64_t bens = contend(&t, NULL, JOB(BY("signal"), "\"SIM_SAVE_MS\":\"5000\""));
    uint64_t id = wait_victim(&t, JOB_FREEZING);
    CHECK(id);
    cut_journal(&t);
    controlling_kill(&t);
    controlling_boot(&t);
    CHECK_STR(controlling_state(&t, id), "freezing");
    CHECK(controlling_verb(&t, id, VERB_FREEZE) < 0);
    CHECK(strstr(t.refused.msg, "being taken back"));
    wait_state(&t, bens, JOB_RUNNING);
    CHECK_STR(controlling_state(&t, id), "frozen");
    wait_state(&t, id, JOB_RUNNING);
    CHECK_INT(control_stats(t.c).taken, 0); /* nobody else was taken */
    controlling_wait(&t, t.policy.thaw_run_ms + 1);
    controlling_submit_as(&t, "ben", "", MINUTE);
    CHECK(wait_victim(&t, JOB_FREEZING)); /* and its terms are known still */
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

/* ---- terms ---- */

static int find_submit(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    char *out = ctx;
    const char *at = memmem(line.p, line.n, "\"priority\"", 10);
    const char *to = memmem(line.p, line.n, ",\"family\"", 9);
    (void)t_ms;
    (void)e;
    if (memmem(line.p, line.n, "\"ev\":\"submit\"", 13) && at && to)
        snprintf(out, 200, "%.*s", (int)(to - at), at);
    return 0;
}

static void what_a_freeze_costs_is_noted_at_the_submit(void)
{
#define MODE(mode, grace) JOB(",\"freeze\":{\"mode\":\"" mode "\",\"grace\":\"" grace "\"}", "")
    static const struct {
        const char *spec, *terms;
    } rows[] = {
        { MODE("signal", "60s"), ",\"thaw_cost_ms\":30000" },
        { MODE("signal", "1s"), ",\"thaw_cost_ms\":5000" },
        { MODE("signal", "2h"), ",\"thaw_cost_ms\":120000" },
        { MODE("requeue", "2h"), ",\"thaw_cost_ms\":120000,\"restarts\":true" },
        { MODE("pause", "60s"), "" },
        { MODE("none", "60s"), "" },
        { JOB(",\"max_time\":\"90s\"", ""), ",\"limit_ms\":90000" },
    };
#undef MODE
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct controlling t;
        struct err e;
        char terms[200] = "", wanted[200];
        controlling_begin(&t, NULL);
        controlling_submit(&t, rows[i].spec);
        controlling_settle(&t);
        CHECK(store_journal(t.s.store, find_submit, terms, &e) == 0);
        snprintf(wanted, sizeof wanted, "\"priority\":\"normal\"%s", rows[i].terms);
        CHECK_STR(terms, wanted);
        controlling_end(&t);
    }
}

/* One that saves itself and one that cannot, of a tenant whose time is `ends`, or whose budget it is. */
static void close_tenant(struct controlling *t, bool budget)
{
    struct err e;
    controlling_begin(t, NULL);
    uint64_t saves = controlling_submit(t, SAVES), stays = controlling_submit(t, JOB("", ""));
    controlling_settle(t);
    struct event ev = { .t_ms = t->now_ms, .kind = EVENT_TENANT };
    ev.tenant = (struct event_tenant){ .name = STR("vision"),
                                       .weight_milli = 1000,
                                       .limit = AMOUNTS_NO_LIMIT,
                                       .user_limit = AMOUNTS_NO_LIMIT,
                                       .budget_from_ms = t->now_ms,
                                       .budget_until_ms = t->now_ms + 7200000 };
    *(budget ? &ev.tenant.budget_gpu_milli_ms : &ev.tenant.until_ms) =
        budget ? INT64_C(2000) * 3600000 : t->now_ms + 3600000;
    CHECK(core_apply(control_core(t->c), &ev, &e) == 0);
    controlling_wait(t, 3600000 - 1000);
    CHECK_STR(controlling_state(t, saves), "running");
    controlling_wait(t, 1000);
    wait_state(t, saves, JOB_FROZEN);
    CHECK_STR(controlling_state(t, stays), "running");
}

static void who_is_frozen_for_its_tenant_is_told_why(void)
{
    struct controlling t;
    close_tenant(&t, false);
    CHECK_STR(message(&t, 1), "frozen: its tenant's time has ended; what it has saved is kept");
    controlling_end(&t);
    close_tenant(&t, true);
    CHECK_STR(message(&t, 1), "frozen: its tenant's GPU-hours are used up; it goes on by itself in "
                              "the next period");
    controlling_wait(&t, 3600000);
    CHECK_STR(controlling_state(&t, 1), "running"); /* nobody says another budget */
    CHECK_STR(message(&t, 1), "");
    controlling_end(&t);
}

/* What it counts against limits of notebooks and scratch space. */
static void the_kind_of_a_job_and_its_scratch_space_reach_the_core(void)
{
    static const struct {
        const char *spec;
        uint32_t notebook, disk_mib;
    } rows[] = {
        { JOB("", ""), 0, 0 }, /* this site has no default */
        { JOB(",\"kind\":\"notebook\"", ""), 1, 0 },
        { JOB(",\"kind\":\"shell\"", ""), 0, 0 },
        { "{\"command\":[\"sleep\",\"36000\"],\"resources\":{\"scratch\":\"3Gi\"}}", 0, 3072 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct controlling t;
        struct job_view v;
        controlling_begin(&t, NULL);
        uint64_t id = controlling_submit(&t, rows[i].spec);
        CHECK_AT(i, core_job(control_core(t.c), (job_id){ id }, &v));
        CHECK_AT(i,
                 v.request.notebook == rows[i].notebook && v.request.disk_mib == rows[i].disk_mib);
        controlling_end(&t);
    }
}

static const struct test tests[] = {
    { "what a freeze costs is noted at the submit", what_a_freeze_costs_is_noted_at_the_submit },
    { "a job is taken back for another user, says so, and goes on by itself",
      a_job_is_taken_back_and_goes_on_by_itself },
    { "a job without a way to give its GPU back is left alone",
      a_job_without_a_way_to_give_its_gpu_back_is_left_alone },
    { "a job that the engine cannot freeze any more goes on",
      a_job_that_the_engine_cannot_freeze_any_more_goes_on },
    { "a job that runs again from the start says so",
      a_job_that_runs_again_from_the_start_says_so },
    { "who does not save itself when it is taken back is started again, once",
      who_does_not_save_itself_is_started_again_once },
    { "who takes too long to save itself is ended and started again",
      who_takes_too_long_is_ended_and_started_again },
    { "who finishes while it is taken back has succeeded",
      who_finishes_while_it_is_taken_has_succeeded },
    { "a person may keep frozen what was taken back",
      a_person_may_keep_frozen_what_was_taken_back },
    { "cancelling ends what is being taken back", cancelling_ends_what_is_being_taken },
    { "a job that is taken back outlives a crash at every step",
      a_job_that_is_taken_outlives_a_crash_at_every_step },
    { "a journal that begins anew knows what is taken, and for whom",
      a_journal_that_begins_anew_knows_what_is_taken_and_for_whom },
    { "who is frozen for its tenant is told why", who_is_frozen_for_its_tenant_is_told_why },
    { "the kind of a job and its scratch space reach the core",
      the_kind_of_a_job_and_its_scratch_space_reach_the_core },
};
TEST_CASES(tests)
