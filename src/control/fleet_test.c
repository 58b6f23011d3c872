/* Machines that have more or less than they had. */
#include "control/control.h"
#include "core/core.h"
#include "tests/lib/controlling.h"

#define ASK(resources) "{\"command\":[\"sleep\",\"3600\"],\"resources\":{" resources "}}"

static uint64_t submit(struct controlling *t, const char *json)
{
    uint64_t id = controlling_submit(t, json);
    controlling_settle(t);
    return id;
}

/* What the engine would say. */
static void tell(struct controlling *t, uint32_t gpus, uint32_t cpu_milli)
{
    struct event_node n = { .name = STR("desk1"),
                            .model = STR("A100"),
                            .gpus = gpus,
                            .gpu_mem_mib = 40960,
                            .cpu_milli = cpu_milli,
                            .mem_mib = 65536 };
    struct engine_event ev = { .kind = ENGINE_NODE, .t_ms = t->now_ms };
    ev.machine.node = &n;
    ev.machine.state = NODE_UP;
    control_engine_event(t->c, &ev);
    controlling_settle(t);
}

static struct node_view seen(struct controlling *t)
{
    struct node_view v = { 0 };
    CHECK(core_node(control_core(t->c), (node_id){ 0 }, &v));
    return v;
}

static void a_change_is_a_line_of_the_journal(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = submit(&t, ASK("\"gpus\":1,\"cpus\":2"));
    CHECK_STR(controlling_state(&t, id), "running");
    uint64_t lines = store_journal_lines(t.s.store);
    for (uint32_t i = 0; i < 50; i++)
        tell(&t, 4, 8000 + i);
    CHECK_INT(seen(&t).cpu_milli, 8049);
    CHECK_INT(seen(&t).state, NODE_UP);
    CHECK_INT(seen(&t).cpu_free_milli, 6049);
    uint64_t more = store_journal_lines(t.s.store) - lines;
    CHECK(more >= 50 && more <= 150); /* it was not begun anew: a change and a pass each */
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_kill(&t);
    controlling_boot(&t);
    CHECK_STR(controlling_state(&t, id), "running");
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void one_that_has_too_little_waits_for_its_jobs(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = submit(&t, ASK("\"gpus\":4,\"cpus\":2"));
    CHECK_STR(controlling_state(&t, id), "running");
    tell(&t, 2, 16000);
    CHECK_INT(seen(&t).gpus, 4);
    CHECK_INT(seen(&t).state, NODE_DOWN); /* nothing new starts on what is not there */
    uint64_t next = submit(&t, ASK("\"gpus\":1"));
    CHECK_STR(controlling_state(&t, next), "queued");
    CHECK(controlling_verb(&t, id, VERB_CANCEL) == 0);
    controlling_settle(&t);
    CHECK_INT(seen(&t).gpus, 2);
    CHECK_INT(seen(&t).state, NODE_UP);
    CHECK_STR(controlling_state(&t, next), "running");
    CHECK_STR(controlling_journal_differs(&t), "");
    controlling_end(&t);
}

static void one_that_has_it_again_was_never_changed(void)
{
    struct controlling t;
    controlling_begin(&t, NULL);
    uint64_t id = submit(&t, ASK("\"gpus\":4,\"cpus\":2"));
    tell(&t, 2, 16000);
    tell(&t, 4, 16000);
    CHECK_STR(controlling_state(&t, id), "running");
    CHECK_INT(seen(&t).gpus, 4);
    CHECK_INT(seen(&t).state, NODE_UP);
    CHECK(controlling_verb(&t, id, VERB_CANCEL) == 0);
    controlling_settle(&t);
    CHECK_INT(seen(&t).gpus, 4);
    controlling_end(&t);
}

static const struct test tests[] = {
    { "a change is a line of the journal", a_change_is_a_line_of_the_journal },
    { "one that has too little waits for its jobs", one_that_has_too_little_waits_for_its_jobs },
    { "one that has it again was never changed", one_that_has_it_again_was_never_changed },
};
TEST_CASES(tests)
