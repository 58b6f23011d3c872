/* Work that others made: it becomes a job, is placed, found again, told why it waits, and ends. */
#include "control/state.h"
#include "tests/lib/controlling.h"

struct word {
    char ref[64], text[512];
    int told;
    bool final;
};

/* The simulated engine says nothing to those who made it; this hears it instead. */
static void hear(void *self, struct str ref, const struct engine_word *w)
{
    struct word *heard = self;
    snprintf(heard->ref, sizeof heard->ref, "%.*s", STR_ARG(ref));
    snprintf(heard->text, sizeof heard->text, "%.*s", STR_ARG(w->text));
    heard->final = w->final;
    heard->told++;
}

static uint64_t observe(struct controlling *t, const char *ref, uint32_t replicas, uint16_t gpus,
                        bool placed)
{
    static const char *const none[] = { NULL };
    static const char *const pod[] = { "pod", NULL };
    uint64_t job = 99;
    struct spec s = { .name = STR("theirs"),
                      .image = STR("host"),
                      .argv = pod,
                      .n_args = 1,
                      .env = none,
                      .priority = PRIO_NORMAL,
                      .freeze = FREEZE_NONE,
                      .freeze_signal = 15,
                      .grace_ms = 1000,
                      .network = NETWORK_NONE,
                      .observed = str_of(ref) };
    s.request =
        (struct request){ .replicas = replicas, .gpus = gpus, .cpu_milli = 1, .mem_mib = 1 };
    struct engine_event ev = { .kind = ENGINE_OBSERVED };
    ev.observed = (struct engine_observed){ .spec = &s,
                                            .tenant = STR("vision"),
                                            .user = STR("kubernetes"),
                                            .placed = placed,
                                            .out_job = &job };
    control_engine_event(t->c, &ev);
    controlling_settle(t);
    return job;
}

static void vanish(struct controlling *t, const char *ref)
{
    struct engine_event ev = { .kind = ENGINE_VANISHED };
    ev.vanished = str_of(ref);
    control_engine_event(t->c, &ev);
    controlling_settle(t);
}

static void what_others_made_becomes_a_job_and_is_placed(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = observe(&t, "pod/a", 2, 1, false);
    CHECK_INT(id, 1);
    controlling_wait(&t, 1000);
    CHECK_STR(controlling_state(&t, id), "running");
    CHECK_INT(observe(&t, "pod/a", 2, 1, false), id); /* told again it is the same */
    CHECK_INT(observe(&t, "pod/b", 1, 1, false), 2);
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void it_is_found_again_after_a_kill(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    CHECK_INT(observe(&t, "pod/runs", 4, 1, false), 1);
    CHECK_INT(observe(&t, "pod/waits", 1, 1, false), 2);
    controlling_wait(&t, 1000);
    controlling_kill(&t);
    controlling_boot(&t);
    CHECK_INT(observe(&t, "pod/runs", 4, 1, true), 1);
    CHECK_INT(observe(&t, "pod/waits", 1, 1, false), 2);
    CHECK_STR(controlling_state(&t, 2), "queued");
    controlling_end(&t);
}

static void what_has_a_place_is_taken_up_only_by_a_job_that_is_known(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    CHECK_INT(observe(&t, "pod/strange", 1, 1, true), 0);
    CHECK_INT(observe(&t, "pod/strange", 1, 1, false), 1);
    controlling_end(&t);
}

static void what_vanishes_while_it_waits_is_over(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    CHECK_INT(observe(&t, "pod/runs", 4, 1, false), 1);
    CHECK_INT(observe(&t, "pod/waits", 1, 1, false), 2);
    vanish(&t, "pod/waits");
    vanish(&t, "pod/nobody");
    CHECK_STR(controlling_state(&t, 2), "cancelled");
    CHECK_INT(observe(&t, "pod/waits", 1, 1, false), 3); /* of the same name, but anew */
    controlling_wait(&t, 1000);
    vanish(&t, "pod/runs"); /* its tasks end one by one: the engine tells */
    CHECK_STR(controlling_state(&t, 1), "running");
    controlling_end(&t);
}

static void a_failed_part_does_not_end_the_others(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = observe(&t, "gang/x", 2, 1, false);
    controlling_wait(&t, 1000);
    struct engine_event ev = { .kind = ENGINE_ENDED, .task = { id, 1, 0 } };
    ev.ended.why = END_EXITED;
    ev.ended.code = 1;
    control_engine_event(t.c, &ev);
    controlling_wait(&t, 1000);
    CHECK_STR(controlling_state(&t, id), "running");
    ev.task.replica = 1;
    ev.ended.code = 0;
    control_engine_event(t.c, &ev);
    controlling_wait(&t, 1000);
    CHECK_STR(controlling_state(&t, id), "failed");
    controlling_end(&t);
}

static void a_part_that_went_does_not_end_the_others_when_the_engine_is_back(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = observe(&t, "gang/x", 2, 1, false);
    controlling_wait(&t, 1000);
    struct engine_event ev = { .kind = ENGINE_ENDED, .task = { id, 1, 0 } };
    ev.ended.why = END_LOST;
    ev.ended.signal = 9;
    control_engine_event(t.c, &ev);
    controlling_settle(&t);
    engine_sim_away(&t.sim, true);
    controlling_settle(&t);
    engine_sim_away(&t.sim, false);
    controlling_wait(&t, 20000);
    CHECK_STR(controlling_state(&t, id), "running");
    CHECK_INT(engine_sim_counts(&t.sim).alive, 2);
    controlling_end(&t);
}

static void what_is_refused_is_told_why(void)
{
    struct controlling t;
    struct word heard = { .told = 0 };
    controlling_begin(&t, NULL);
    struct engine_ops ops = *t.c->engine.ops;
    void *sim = t.c->engine.self;
    ops.tell = hear;
    t.c->engine.ops = &ops;
    t.c->engine.self = &heard;
    CHECK_INT(observe(&t, "pod/huge", 1, 9, false), 0);
    CHECK_INT(heard.told, 1);
    CHECK_STR(heard.ref, "pod/huge");
    CHECK(strstr(heard.text, "9 on one machine; the largest has 4"));
    t.c->engine.ops = t.sim.ops;
    t.c->engine.self = sim;
    controlling_end(&t);
}

static void a_job_the_store_lost_is_written_down_before_we_are_ready(void)
{
    struct controlling t;
    AUTO(arena_free) struct arena a = { 0 };
    struct spec s;
    struct err e = { 0 };
    controlling_begin(&t, NULL);
    AUTO(json_free_p)
    struct json_doc *d =
        json_read(STR("{\"command\":[\"x\"],\"env\":{\"SIM_RUN_MS\":\"1000\"}}"), &e);
    CHECK(d && spec_read_kept(json_root(d), &a, &s, &e) == 0);
    struct str node = STR("desk1");
    struct engine_event ev = { .kind = ENGINE_KEPT, .task = { 7, 2, 0 } };
    bool left = false;
    ev.kept = (struct engine_kept){ .spec = &s,
                                    .tenant = STR("vision"),
                                    .user = STR("ana"),
                                    .node = &node,
                                    .nodes = 1,
                                    .out_left = &left };
    control_engine_event(t.c, &ev);
    CHECK(!control_ready(t.c, &e) && strstr(e.msg, "written down"));
    controlling_settle(&t);
    CHECK(control_ready(t.c, NULL));
    CHECK_STR(controlling_state(&t, 7), "running");
    controlling_end(&t);
}

static void users_cannot_submit_it(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct spec s;
    struct err e;
    AUTO(json_free_p)
    struct json_doc *d = json_read(STR("{\"command\":[\"x\"],\"observed\":\"pod/a\"}"), &e);
    CHECK(spec_read(json_root(d), &a, &s, NULL, &e) < 0 && strstr(e.msg, "observed"));
    CHECK(spec_read_kept(json_root(d), &a, &s, &e) == 0 && str_is(s.observed, "pod/a"));
}

static const struct test tests[] = {
    { "what others made becomes a job, once, and is placed",
      what_others_made_becomes_a_job_and_is_placed },
    { "it is found again after a kill", it_is_found_again_after_a_kill },
    { "what has a place is taken up only by a job that is known",
      what_has_a_place_is_taken_up_only_by_a_job_that_is_known },
    { "what vanishes while it waits is over", what_vanishes_while_it_waits_is_over },
    { "a failed part does not end the others", a_failed_part_does_not_end_the_others },
    { "a part that went does not end the others when the engine is back",
      a_part_that_went_does_not_end_the_others_when_the_engine_is_back },
    { "what is refused is told why", what_is_refused_is_told_why },
    { "a job that the store has lost is written down before we are ready",
      a_job_the_store_lost_is_written_down_before_we_are_ready },
    { "users cannot submit it", users_cannot_submit_it },
};
TEST_CASES(tests)
