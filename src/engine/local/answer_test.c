#include "engine/local/answer.h"

#include "tests/lib/test.h"

static struct answer reads(struct arena *a, const char *line)
{
    struct answer an = { 0 };
    struct err e = { 0 };
    int rc = answer_read(str_of(line), a, &an, &e);
    CHECK_STR(e.msg, "");
    CHECK(rc == 0);
    return an;
}

static void a_hello_says_what_the_machine_can_do(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct answer an =
        reads(&a, "{\"ev\":\"hello\",\"version\":\"1\",\"mode\":\"rootless\",\"cgroup\":"
                  "\"none\",\"caps\":{\"pause\":true,\"signal\":false,\"exec\":true}}");
    CHECK_INT(an.kind, KEEPER_EV_HELLO);
    CHECK_INT(an.mode, KEEPER_MODE_ROOTLESS);
    CHECK(an.caps[CAP_PAUSE] && an.caps[CAP_EXEC] && !an.caps[CAP_SIGNAL] && !an.caps[CAP_LIMITS]);
}

static void a_pong_is_no_event(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    CHECK_INT(reads(&a, "{\"ev\":\"pong\"}").kind, KEEPER_EV_PONG);
    CHECK(reads(&a, "{\"ev\":\"hello\",\"mode\":\"root\",\"pings\":true}").pings);
    CHECK(!reads(&a, "{\"ev\":\"hello\",\"mode\":\"root\"}").pings); /* an older one */
}

static void a_machine_is_told_with_its_gpus(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct answer an = reads(
        &a, "{\"ev\":\"node\",\"name\":\"desk1\",\"cpu_milli\":16000,\"mem_mib\":65536,\"gpus\":["
            "{\"uuid\":\"GPU-a\",\"model\":\"A100\",\"mem_mib\":40960,\"link\":0},"
            "{\"uuid\":\"GPU-b\",\"model\":\"A100\",\"mem_mib\":40000,\"link\":1}],\"simulated\":"
            "true}");
    const struct event_node *n = an.event.machine.node;
    CHECK_INT(an.event.kind, ENGINE_NODE);
    CHECK(str_is(n->name, "desk1") && str_is(n->model, "A100"));
    CHECK_INT(n->gpus, 2);
    CHECK_INT(n->gpu_mem_mib, 40000); /* what every one of them has */
    CHECK_INT(n->link[1], 1);
    CHECK_STR(an.event.machine.gpu_uuid[1], "GPU-b");
    CHECK(an.event.machine.simulated && an.event.machine.state == NODE_UP);
    an = reads(&a, "{\"ev\":\"node\",\"name\":\"d\",\"cpu_milli\":1,\"mem_mib\":1}");
    CHECK_INT(an.event.machine.node->gpus, 0);
}

static void events_of_tasks_become_the_engines(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct answer an = reads(&a, "{\"ev\":\"started\",\"task\":\"17.2.3\",\"t_ms\":123,\"pid\":9}");
    CHECK_INT(an.event.kind, ENGINE_STARTED);
    CHECK(an.event.task.job == 17 && an.event.task.run == 2 && an.event.task.replica == 3);
    CHECK_INT(an.event.t_ms, 123);
    CHECK_INT(reads(&a, "{\"ev\":\"paused\",\"task\":\"1.1.0\"}").event.kind, ENGINE_PAUSED);
    CHECK_INT(reads(&a, "{\"ev\":\"resumed\",\"task\":\"1.1.0\"}").event.kind, ENGINE_RESUMED);
    CHECK_INT(reads(&a, "{\"ev\":\"ready\"}").event.kind, ENGINE_READY);
    an = reads(&a,
               "{\"ev\":\"failed\",\"task\":\"1.1.0\",\"code\":\"x\",\"msg\":\"no image\",\"hint\":"
               "\"pull it\"}");
    CHECK_INT(an.event.kind, ENGINE_FAILED);
    CHECK_STR(an.event.failed.msg, "no image");
    CHECK_STR(an.event.failed.hint, "pull it");
    an =
        reads(&a, "{\"ev\":\"ended\",\"task\":\"1.1.0\",\"t_ms\":5,\"code\":0,\"signal\":9,\"why\":"
                  "\"out_of_memory\",\"cpu_ms\":77,\"mem_peak_mib\":88}");
    CHECK_INT(an.event.ended.signal, 9);
    CHECK_INT(an.event.ended.why, END_MEMORY);
    CHECK_INT(an.event.ended.cpu_ms, 77);
    CHECK_INT(an.event.ended.mem_peak_mib, 88);
    an = reads(&a, "{\"ev\":\"ended\",\"task\":\"1.1.0\",\"code\":1,\"why\":\"out_of_processes\","
                   "\"limit\":64}");
    CHECK_INT(an.event.ended.why, END_PROCESSES);
    CHECK_INT(an.event.ended.limit, 64);
    an = reads(
        &a, "{\"ev\":\"progress\",\"task\":\"1.1.0\",\"text\":\"image\",\"done\":1,\"total\":4}");
    CHECK(str_is(an.event.progress.text, "image") && an.event.progress.total == 4);
    an = reads(&a, "{\"ev\":\"leftover\",\"pid\":4}");
    CHECK(str_is(an.text, "{\"ev\":\"leftover\",\"pid\":4}"));
}

static void what_is_wrong_is_named(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    static const struct {
        const char *line, *named;
    } rows[] = {
        { "", "" },
        { "[]", "object" },
        { "{}", "ev" },
        { "{\"ev\":\"sneezed\"}", "sneezed" },
        { "{\"ev\":\"hello\",\"mode\":\"god\"}", "god" },
        { "{\"ev\":\"started\"}", "task" },
        { "{\"ev\":\"started\",\"task\":\"17\"}", "17" },
        { "{\"ev\":\"started\",\"task\":\"1.1.0\",\"t_ms\":-1}", "t_ms" },
        { "{\"ev\":\"ended\",\"task\":\"1.1.0\",\"why\":\"bored\"}", "bored" },
        { "{\"ev\":\"ended\",\"task\":\"1.1.0\",\"code\":256}", "code" },
        { "{\"ev\":\"node\",\"name\":\"d\",\"cpu_milli\":1}", "mem_mib" },
        { "{\"ev\":\"node\",\"name\":\"d\",\"cpu_milli\":1,\"mem_mib\":1,\"gpus\":[{}]}", "GPU 0" },
        { "{\"ev\":\"node\",\"name\":\"d\",\"cpu_milli\":1,\"mem_mib\":1,\"gpus\":7}", "gpus" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct answer an;
        struct err e = { 0 };
        CHECK_AT(i, answer_read(str_of(rows[i].line), &a, &an, &e) < 0);
        CHECK_AT(i, strstr(e.msg, rows[i].named) != NULL);
    }
}

static const struct test tests[] = {
    { "a pong is no event, and only some keepers answer pings", a_pong_is_no_event },
    { "a hello says what the machine can do", a_hello_says_what_the_machine_can_do },
    { "a machine is told with its GPUs", a_machine_is_told_with_its_gpus },
    { "events of tasks become the engine's", events_of_tasks_become_the_engines },
    { "what is wrong is named", what_is_wrong_is_named },
};
TEST_CASES(tests)
