#include "core/job.h"

#include "base/rng.h"
#include "tests/lib/test.h"

static void no_edge_leaves_an_ended_state(void)
{
    enum job_state from, to;
    enum job_event on;
    for (size_t i = 0; job_edge(i, &from, &on, &to); i++)
        CHECK(!job_state_ended(from));
}

static void every_state_can_be_reached(void)
{
    bool seen[JOB_STATE_COUNT] = { [JOB_HELD] = true };
    enum job_state from, to;
    enum job_event on;
    for (int round = 0; round < JOB_STATE_COUNT; round++)
        for (size_t i = 0; job_edge(i, &from, &on, &to); i++)
            seen[to] = seen[to] || seen[from];
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        CHECK(seen[s]);
}

static void from_every_state_a_job_can_end(void)
{
    bool ends[JOB_STATE_COUNT];
    enum job_state from, to;
    enum job_event on;
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        ends[s] = job_state_ended((enum job_state)s);
    for (int round = 0; round < JOB_STATE_COUNT; round++)
        for (size_t i = 0; job_edge(i, &from, &on, &to); i++)
            ends[from] = ends[from] || ends[to];
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        CHECK(ends[s]);
}

static void an_event_leads_to_one_state_only(void)
{
    bool seen[JOB_STATE_COUNT][JOB_EVENT_COUNT] = { 0 };
    enum job_state from, to, next;
    enum job_event on;
    struct err e;
    for (size_t i = 0; job_edge(i, &from, &on, &to); i++) {
        CHECK(!seen[from][on]);
        seen[from][on] = true;
        CHECK(job_next(from, on, &next, &e) == 0 && next == to);
    }
}

static void every_state_that_has_not_ended_can_be_cancelled(void)
{
    enum job_state to;
    struct err e;
    for (int s = 0; s < JOB_STATE_COUNT; s++) {
        enum job_state from = (enum job_state)s;
        bool can = job_next(from, JOB_EV_CANCEL, &to, &e) == 0;
        CHECK(can == (!job_state_ended(from) && from != JOB_STOPPING));
        if (can) /* what holds machines has processes to stop first */
            CHECK(to == (job_state_holds(from) ? JOB_STOPPING : JOB_CANCELLED));
    }
}

static void only_a_placement_gives_resources(void)
{
    enum job_state from, to;
    enum job_event on;
    for (size_t i = 0; job_edge(i, &from, &on, &to); i++)
        CHECK((!job_state_holds(from) && job_state_holds(to)) == (on == JOB_EV_PLACED));
}

static void no_walk_leaves_an_ended_state(void)
{
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct rng r = { seed };
        enum job_state s = JOB_HELD;
        for (int step = 0; step < 60; step++) {
            enum job_state before = s;
            struct err e;
            enum job_event on = (enum job_event)rng_below(&r, JOB_EVENT_COUNT);
            bool moved = job_next(s, on, &s, &e) == 0;
            CHECK_AT(seed, moved || s == before);
            CHECK_AT(seed, !moved || !job_state_ended(before));
        }
    }
}

static void a_refusal_names_state_and_event_and_leaves_the_output(void)
{
    enum job_state to = JOB_FREEZING;
    struct err e = { 0 };
    CHECK(job_next(JOB_QUEUED, JOB_EV_STARTED, &to, &e) < 0);
    CHECK(to == JOB_FREEZING && e.code == ERR_CONFLICT);
    CHECK_STR(e.msg, "a queued job cannot take 'started'");
    CHECK_STR(e.hint, "");
    CHECK(job_next(JOB_SUCCEEDED, JOB_EV_PLACED, &to, &e) < 0);
    CHECK(to == JOB_FREEZING);
    CHECK_STR(e.msg, "a succeeded job cannot take 'placed'");
    CHECK_STR(e.hint, "the job has ended; submit it again to run it again");
}

static void every_state_and_event_has_a_name_of_its_own(void)
{
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        for (int t = 0; t < s; t++)
            CHECK(strcmp(job_state_name((enum job_state)s), job_state_name((enum job_state)t)));
    for (int i = 0; i < JOB_EVENT_COUNT; i++) {
        enum job_event back = JOB_EVENT_COUNT;
        CHECK(job_event_parse(str_of(job_event_name((enum job_event)i)), &back));
        CHECK_INT(back, i);
    }
    CHECK_STR(job_state_name(JOB_STATE_COUNT), "?");
    CHECK_STR(job_event_name(JOB_EVENT_COUNT), "?");
}

static void an_unknown_event_is_not_parsed(void)
{
    enum job_event ev = JOB_EV_STOP;
    CHECK(!job_event_parse(STR("explode"), &ev) && !job_event_parse(STR(""), &ev));
    CHECK(!job_event_parse(STR("held"), &ev) && !job_event_parse(STR("hol"), &ev));
    CHECK_INT(ev, JOB_EV_STOP);
}

static const struct test tests[] = {
    { "no edge leaves an ended state", no_edge_leaves_an_ended_state },
    { "every state can be reached", every_state_can_be_reached },
    { "from every state a job can end", from_every_state_a_job_can_end },
    { "an event leads to one state only", an_event_leads_to_one_state_only },
    { "every state that has not ended can be cancelled",
      every_state_that_has_not_ended_can_be_cancelled },
    { "only a placement gives resources", only_a_placement_gives_resources },
    { "no walk leaves an ended state", no_walk_leaves_an_ended_state },
    { "a refusal names state and event and leaves the output",
      a_refusal_names_state_and_event_and_leaves_the_output },
    { "every state and event has a name of its own", every_state_and_event_has_a_name_of_its_own },
    { "an unknown event is not parsed", an_unknown_event_is_not_parsed },
};
TEST_CASES(tests)
