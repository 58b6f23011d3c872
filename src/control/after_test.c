/* Jobs that begin later or start after others, through the control plane. */
#include "control/after.h"

#include <stdio.h>
#include <sys/resource.h>

#include "base/date.h"
#include "tests/lib/controlling.h"

#define RUNS(ms, code, fields)                                                                     \
    "{\"command\":[\"x\"],\"resources\":{\"gpus\":1}" fields ",\"env\":{\"SIM_RUN_MS\":\"" ms      \
    "\",\"SIM_EXIT\":\"" code "\"}}"

static uint64_t after(struct controlling *t, const char *when, uint64_t job)
{
    char json[256];
    snprintf(json, sizeof json,
             "{\"command\":[\"x\"],\"resources\":{\"gpus\":1},\"after\":[\"%s:%llu\"],"
             "\"env\":{\"SIM_RUN_MS\":\"1000\"}}",
             when, (unsigned long long)job);
    return controlling_submit(t, json);
}

static uint64_t begins(struct controlling *t, int64_t at_ms)
{
    char json[256], when[32];
    snprintf(json, sizeof json,
             "{\"command\":[\"x\"],\"begin\":\"%s\",\"env\":{\"SIM_RUN_MS\":\"1000\"}}",
             date_format(at_ms, when));
    return controlling_submit(t, json);
}

static void refused(struct controlling *t, const char *when, uint64_t job, const char *says)
{
    CHECK_AT(job, after(t, when, job) == 0);
    CHECK_STR(t->refused.msg, says);
    CHECK_STR(t->refused.field, "after");
}

static const char *message(struct controlling *t, uint64_t job)
{
    return controlling_text(t, controlling_job(t, job).now.message);
}

static void a_job_begins_at_its_time(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    int64_t from = t.now_ms;
    uint64_t late = begins(&t, from + 60000), soon = begins(&t, from + 5000);
    controlling_wait(&t, 4999);
    CHECK_STR(controlling_state(&t, soon), "queued");
    controlling_wait(&t, 1);
    CHECK_STR(controlling_state(&t, soon), "running");
    CHECK_INT(controlling_job(&t, soon).now.started_ms, from + 5000);
    CHECK_STR(controlling_state(&t, late), "queued");
    controlling_wait(&t, 60000);
    CHECK_STR(controlling_state(&t, late), "succeeded");
    CHECK_INT(controlling_job(&t, late).now.started_ms, from + 60000);
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

/* The timer is a real one: 40 ms after the commit, by the clock that then stands there. */
static void a_timer_wakes_for_it(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t job = begins(&t, t.now_ms + 40);
    for (int i = 0; i < 1000 && t.answered == 0; i++) /* settling would set the timer itself */
        controlling_real(&t, 1);
    CHECK_INT(t.answered, 1);
    uint64_t passes = control_stats(t.c).passes;
    t.now_ms += 40;
    for (int i = 0; i < 100 && control_stats(t.c).passes == passes; i++)
        controlling_real(&t, 20);
    CHECK(control_stats(t.c).passes > passes);
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, job), "running");
    controlling_end(&t);
}

static void a_clock_that_is_set_moves_the_start_with_it(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    int64_t from = t.now_ms;
    uint64_t forward = begins(&t, from + 3600000);
    controlling_settle(&t);
    t.now_ms = from + 3600000; /* set forward */
    engine_sim_step(&t.sim, t.now_ms);
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, forward), "running");
    t.now_ms = from; /* and back */
    uint64_t back = begins(&t, from + 60000);
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, back), "queued");
    t.now_ms = from + 60000;
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, back), "starting"); /* the engine's own time is ahead */
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void a_job_starts_after_another(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t first = controlling_submit(&t, RUNS("5000", "0", ""));
    controlling_settle(&t);
    uint64_t then = after(&t, "ok", first);
    controlling_wait(&t, 4000);
    CHECK_STR(controlling_state(&t, then), "queued");
    controlling_wait(&t, 1000);
    CHECK_STR(controlling_state(&t, first), "succeeded");
    CHECK_STR(controlling_state(&t, then), "running");
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void what_can_never_start_is_cancelled_and_says_why(void)
{
    struct controlling t;
    char text[128];
    controlling_begin(&t, NULL);
    uint64_t first = controlling_submit(&t, RUNS("5000", "3", ""));
    uint64_t ended = controlling_submit(&t, RUNS("5000", "0", ""));
    controlling_settle(&t);
    uint64_t second = after(&t, "ok", first), bad = after(&t, "bad", ended);
    controlling_settle(&t);
    uint64_t third = after(&t, "ok", second), clean = after(&t, "bad", first);
    controlling_settle(&t);
    CHECK(controlling_verb(&t, second, VERB_HOLD) == 0);
    controlling_wait(&t, 5000);
    CHECK_STR(controlling_state(&t, second), "cancelled");
    snprintf(text, sizeof text, "it was to start after job %d had succeeded, which failed",
             (int)first);
    CHECK_STR(message(&t, second), text);
    CHECK_STR(controlling_text(&t, controlling_job(&t, second).now.end), "after_unmet");
    CHECK_STR(controlling_state(&t, third), "cancelled");
    snprintf(text, sizeof text, "it was to start after job %d had succeeded, which was cancelled",
             (int)second);
    CHECK_STR(message(&t, third), text);
    snprintf(text, sizeof text, "it was to start after job %d had failed, which succeeded",
             (int)ended);
    CHECK_STR(message(&t, bad), text);
    CHECK_STR(controlling_state(&t, clean), "running");
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

/* Each cancels the next: in a row, not one inside the other, which a small stack would not hold. */
static void a_long_chain_falls(void)
{
    struct controlling t;
    struct rlimit was, small = { .rlim_cur = 256u << 10 };
    controlling_begin(&t, NULL);
    uint64_t first = controlling_submit(&t, RUNS("1000", "1", ",\"held\":true")), last = first;
    controlling_settle(&t);
    for (int i = 0; i < 2000; i++) {
        last = after(&t, "ok", last);
        if (i % 100 == 0)
            controlling_settle(&t);
        else
            controlling_round(&t);
        struct err e;
        CHECK(store_flush(t.s.store, STORING_WAIT_MS, &e) == 0);
    }
    CHECK(getrlimit(RLIMIT_STACK, &was) == 0);
    small.rlim_max = was.rlim_max;
    CHECK(setrlimit(RLIMIT_STACK, &small) == 0);
    CHECK(controlling_verb(&t, first, VERB_CANCEL) == 0);
    CHECK(setrlimit(RLIMIT_STACK, &was) == 0);
    CHECK_STR(controlling_state(&t, last), "cancelled");
    CHECK_INT(control_stats(t.c).living, 0);
    controlling_end(&t);
}

static void what_has_ended_is_judged_at_once(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t good = controlling_submit(&t, RUNS("1000", "0", ""));
    uint64_t bad = controlling_submit(&t, RUNS("1000", "1", ""));
    controlling_wait(&t, 1000);
    refused(&t, "ok", bad,
            "field 'after': job 2 has failed: a job that starts after its success could never "
            "start");
    CHECK(t.refused.code == ERR_CONFLICT);
    refused(&t, "bad", good,
            "field 'after': job 1 has succeeded: a job that starts after its failure could never "
            "start");
    refused(&t, "any", 99, "field 'after': there is no job 99");
    CHECK(t.refused.code == ERR_INVALID);
    uint64_t a = after(&t, "ok", good), b = after(&t, "any", bad), c = after(&t, "bad", bad);
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, a), "running");
    CHECK_STR(controlling_state(&t, b), "running");
    CHECK_STR(controlling_state(&t, c), "running");
    controlling_end(&t);
}

/* Its row says that it runs still; the core has forgotten it. */
static void what_has_ended_and_is_not_on_the_disk_yet_is_known(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t good = controlling_submit(&t, RUNS("1000", "0", ""));
    uint64_t bad = controlling_submit(&t, RUNS("1000", "1", ""));
    controlling_settle(&t);
    t.now_ms += 1000;
    engine_sim_step(&t.sim, t.now_ms);
    CHECK_STR(controlling_state(&t, bad), "running"); /* in the store */
    refused(&t, "ok", bad,
            "field 'after': job 2 has failed: a job that starts after its success could never "
            "start");
    uint64_t job = after(&t, "ok", good);
    CHECK(job > 0);
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, job), "running");
    controlling_end(&t);
}

static void others_jobs_are_not_there(void)
{
    struct controlling t;
    struct err e;
    AUTO(arena_free) struct arena a = { 0 };
    const struct spec_after of = { .job = 1, .when = AFTER_ANY };
    const struct str other = STR("other");
    const struct store_scope theirs = { .tenant = &other, .n = 1 };
    const struct spec s = { .after = &of, .n_after = 1 };
    struct after_look look = { .sees = &theirs, .arena = &a, .left = AFTER_LOOKS_MAX };
    struct afters out;
    controlling_begin(&t, NULL);
    controlling_submit(&t, RUNS("1000", "0", ""));
    controlling_settle(&t);
    CHECK(after_resolve(t.c, &look, &s, &out, &e) < 0);
    CHECK_STR(e.msg, "field 'after': there is no job 1");
    look.sees = NULL;
    CHECK(after_resolve(t.c, &look, &s, &out, &e) < 0);
    look.sees = &storing_all;
    CHECK(after_resolve(t.c, &look, &s, &out, &e) == 0 && out.n == 1);
    look.left = 0;
    CHECK(after_resolve(t.c, &look, &s, &out, &e) < 0);
    CHECK(e.code == ERR_TOO_LARGE);
    controlling_end(&t);
}

static void an_arrays_number_is_all_of_it(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t array = controlling_submit(&t, RUNS("1000", "0", ",\"array\":\"0-7\""));
    controlling_settle(&t);
    uint64_t all = after(&t, "ok", array), one = after(&t, "ok", array + 1);
    controlling_wait(&t, 1000); /* four of eight */
    CHECK_STR(controlling_state(&t, array), "succeeded");
    CHECK_STR(controlling_state(&t, all), "queued");
    uint64_t late = after(&t, "any", array);
    controlling_wait(&t, 1000);
    CHECK_STR(controlling_state(&t, array + 7), "succeeded");
    CHECK_STR(controlling_state(&t, all), "running");
    CHECK_STR(controlling_state(&t, one), "running");
    CHECK_STR(controlling_state(&t, late), "running");
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void one_failure_spoils_an_array(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t array = controlling_submit(&t, RUNS("1000", "0", ",\"array\":\"0-7\""));
    controlling_settle(&t);
    uint64_t all = after(&t, "ok", array);
    controlling_settle(&t);
    CHECK(controlling_verb(&t, array + 6, VERB_CANCEL) == 0);
    CHECK_STR(controlling_state(&t, all), "cancelled");
    CHECK_STR(message(&t, all), "it was to start after array 1 had succeeded, of which job 7 was "
                                "cancelled");
    refused(&t, "ok", array,
            "field 'after': a job of array 1 has been cancelled: a job that starts after its "
            "success could never start");
    uint64_t bad = after(&t, "bad", array);
    controlling_settle(&t);
    CHECK_STR(controlling_state(&t, bad), "queued"); /* some run still */
    controlling_wait(&t, 2000);
    CHECK_STR(controlling_state(&t, bad), "running");
    controlling_end(&t);
}

/* ---- and after a crash ---- */

static void what_it_waits_for_is_known_after_a_crash(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t first = controlling_submit(&t, RUNS("5000", "0", ""));
    controlling_settle(&t);
    uint64_t then = after(&t, "ok", first), timed = begins(&t, t.now_ms + 20000);
    controlling_round(&t); /* on the disk */
    controlling_kill(&t);
    CHECK_INT(t.answered, 1);
    controlling_boot(&t);
    CHECK_STR(controlling_state(&t, then), "queued");
    controlling_wait(&t, 5000);
    CHECK_STR(controlling_state(&t, then), "running");
    CHECK_STR(controlling_state(&t, timed), "queued");
    controlling_wait(&t, 15000);
    CHECK_STR(controlling_state(&t, timed), "running");
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void what_happens_while_nobody_looks_is_seen_at_the_start(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t good = controlling_submit(&t, RUNS("5000", "0", ""));
    uint64_t bad = controlling_submit(&t, RUNS("5000", "2", ""));
    controlling_settle(&t);
    uint64_t then = after(&t, "ok", good), never = after(&t, "ok", bad);
    uint64_t timed = begins(&t, t.now_ms + 5000);
    controlling_settle(&t);
    controlling_kill(&t);
    t.now_ms += 6000;
    engine_sim_step(&t.sim, t.now_ms);
    controlling_boot(&t);
    CHECK_STR(controlling_state(&t, then), "running");
    CHECK_STR(controlling_state(&t, timed), "running");
    CHECK_STR(controlling_state(&t, never), "cancelled");
    CHECK_STR(message(&t, never), "it was to start after job 2 had succeeded, which failed");
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static const struct test tests[] = {
    { "a job begins at its time", a_job_begins_at_its_time },
    { "a timer wakes for it", a_timer_wakes_for_it },
    { "a clock that is set moves the start with it", a_clock_that_is_set_moves_the_start_with_it },
    { "a job starts after another", a_job_starts_after_another },
    { "what can never start is cancelled and says why",
      what_can_never_start_is_cancelled_and_says_why },
    { "a long chain falls", a_long_chain_falls },
    { "what has ended is judged at once", what_has_ended_is_judged_at_once },
    { "what has ended and is not on the disk yet is known",
      what_has_ended_and_is_not_on_the_disk_yet_is_known },
    { "others' jobs are not there", others_jobs_are_not_there },
    { "an array's number is all of it", an_arrays_number_is_all_of_it },
    { "one failure spoils an array", one_failure_spoils_an_array },
    { "what it waits for is known after a crash", what_it_waits_for_is_known_after_a_crash },
    { "what happens while nobody looks is seen at the start",
      what_happens_while_nobody_looks_is_seen_at_the_start },
};
TEST_CASES(tests)
