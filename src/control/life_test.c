#include "control/life.h"

#include "base/buf.h"
#include "store/life.h"
#include "tests/lib/controlling.h"

#define LONG(fields) "{\"command\":[\"sleep\",\"3600\"],\"resources\":{\"gpus\":4}" fields "}"
#define BY_SIGNAL ",\"freeze\":{\"mode\":\"signal\",\"signal\":\"USR1\",\"grace\":\"60s\"}"

/* "submitted/room placed1 …": what, with its reason, who asked, and the run */
static void check_life(struct controlling *t, uint64_t job, const char *want)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct store_steps got;
    struct err e = { 0 };
    controlling_settle(t);
    CHECK(store_job_steps(t->s.store, &storing_all, &(struct store_life){ .job = job }, &t->s.arena,
                          &got, &e) == 0);
    for (size_t i = 0; i < got.n; i++) {
        const struct store_step *s = &got.v[i];
        buf_printf(&b, "%s%.*s%s%.*s%s%.*s", i ? " " : "", STR_ARG(s->what), s->reason.n ? "/" : "",
                   STR_ARG(s->reason), s->who.n ? "@" : "", STR_ARG(s->who));
        if (s->where.n)
            buf_printf(&b, "#%u", s->run);
        CHECK_INT(s->number, i + 1);
    }
    CHECK_STR(buf_str(&b).p, want);
}

static void a_job_tells_its_life_from_submit_to_end(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t first =
        controlling_submit(&t, "{\"command\":[\"sleep\",\"5\"],\"resources\":{\"gpus\":4}}");
    controlling_settle(&t);
    uint64_t next = controlling_submit(&t, LONG(""));
    controlling_settle(&t);
    check_life(&t, next, "submitted/room");
    controlling_wait(&t, 10000);
    check_life(&t, first, "submitted placed#1 started ended");
    check_life(&t, next, "submitted/room placed#1 started");
    controlling_verb(&t, next, VERB_CANCEL);
    controlling_wait(&t, 20000);
    check_life(&t, next, "submitted/room placed#1 started stopping@ana ended");
    controlling_end(&t);
}

static void whoever_asked_stands_beside_what_they_asked_for(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = controlling_submit(&t, LONG(BY_SIGNAL ",\"env\":{\"SIM_SAVE_MS\":\"0\"}"));
    controlling_settle(&t);
    CHECK(controlling_verb(&t, id, VERB_FREEZE) == 0);
    check_life(&t, id, "submitted placed#1 started freezing@ana frozen/frozen");
    CHECK(controlling_verb(&t, id, VERB_THAW) == 0);
    check_life(
        &t, id,
        "submitted placed#1 started freezing@ana frozen/frozen thawing@ana thawing#2 thawed");
    controlling_end(&t);
}

static void a_restart_tells_nothing_twice(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t first = controlling_submit(&t, LONG(""));
    controlling_settle(&t);
    uint64_t next = controlling_submit(&t, LONG(",\"held\":true"));
    controlling_settle(&t);
    controlling_kill(&t);
    controlling_boot(&t);
    check_life(&t, first, "submitted placed#1 started");
    check_life(&t, next, "submitted/held");
    CHECK(controlling_verb(&t, next, VERB_RELEASE) == 0);
    check_life(&t, next, "submitted/held released/room@ana");
    controlling_end(&t);
}

static void every_move_has_a_name(void)
{
    for (int from = 0; from < JOB_STATE_COUNT; from++)
        for (int to = 0; to < JOB_STATE_COUNT; to++)
            CHECK(life_step_of((enum job_state)from, (enum job_state)to) < LIFE_STEP_COUNT);
    CHECK_STR(life_step_name(STEP_ENDED), "ended");
}

static const struct test tests[] = {
    { "a job tells its life from submit to end", a_job_tells_its_life_from_submit_to_end },
    { "whoever asked stands beside what they asked for",
      whoever_asked_stands_beside_what_they_asked_for },
    { "a restart tells nothing twice", a_restart_tells_nothing_twice },
    { "every move has a name", every_move_has_a_name },
};
TEST_CASES(tests)
