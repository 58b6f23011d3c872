#include "engine/engine.h"

#include "tests/lib/test.h"

static void task_ids_read_back(void)
{
    char text[64];
    struct task_id t;
    struct err e;
    CHECK_STR(task_format((struct task_id){ 17, 2, 3 }, text), "17.2.3");
    CHECK(task_parse(STR("17.2.3"), &t, &e) == 0 && t.job == 17 && t.run == 2 && t.replica == 3);
    static const char *const bad[] = { "",        "1",      "1.2",  "1.2.x",
                                       "1.2.3.4", "-1.1.1", "1..2", "1.2.99999" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_AT(i, task_parse(str_of(bad[i]), &t, &e) < 0 && t.job == 17);
}

static void what_an_engine_cannot_do_is_refused_by_name(void)
{
    static const struct engine_ops ops = { .name = "test" };
    bool caps[ENGINE_CAP_COUNT] = { 0 };
    struct engine en = { .ops = &ops, .caps = caps };
    struct err e;
    struct spec s = { .image = STR("host"), .request.replicas = 1 };
    CHECK(engine_check(&en, &s, &e) == 0);
    s.request.gpu_milli = 500;
    CHECK(engine_check(&en, &s, &e) < 0 && strstr(e.msg, "gpu_share") && strstr(e.msg, "test"));
    caps[CAP_GPU_SHARE] = true;
    CHECK(engine_check(&en, &s, &e) == 0);
    s.devices = STR("rdma/hca=1");
    CHECK(engine_check(&en, &s, &e) < 0 && strstr(e.msg, "'resources.devices'"));
    caps[CAP_DEVICES] = true;
    CHECK(engine_check(&en, &s, &e) == 0);
    s.image = STR("python:3");
    CHECK(engine_check(&en, &s, &e) < 0 && strstr(e.msg, "'image'"));
    s.image = STR("host");
    s.request.replicas = 2;
    CHECK(engine_check(&en, &s, &e) < 0 && strstr(e.msg, "'replicas'"));
}

static void people_are_not_put_on_the_machines_own_network(void)
{
    static const struct engine_ops ops = { .name = "test" };
    bool caps[ENGINE_CAP_COUNT] = { 0 };
    struct engine en = { .ops = &ops, .caps = caps };
    struct err e;
    struct spec s = { .image = STR("host"), .request.replicas = 1, .network = NETWORK_TENANT };
    CHECK(engine_check(&en, &s, &e) == 0); /* there is one user only */
    caps[CAP_MULTI_USER] = true;
    CHECK(engine_check(&en, &s, &e) < 0 && strstr(e.msg, "'network'"));
    CHECK(strstr(e.hint, "--network none"));
    s.network = NETWORK_NONE;
    CHECK(engine_check(&en, &s, &e) == 0);
    s.network = NETWORK_TENANT;
    caps[CAP_NETWORK] = true;
    CHECK(engine_check(&en, &s, &e) == 0);
}

static void every_value_has_its_name(void)
{
    for (int i = 0; i < ENGINE_CAP_COUNT; i++)
        CHECK_AT(i, engine_cap_name((enum engine_cap)i)[0] != '?');
    for (int i = 0; i < ENGINE_EVENT_COUNT; i++)
        CHECK_AT(i, engine_event_name((enum engine_event_kind)i)[0] != '?');
    for (int i = 0; i < TASK_END_COUNT; i++) {
        enum task_end back;
        CHECK_AT(i, task_end_parse(str_of(task_end_name((enum task_end)i)), &back));
        CHECK_AT(i, (int)back == i && task_end_text(back)[0] != '?');
    }
}

static const struct test tests[] = {
    { "task ids read back, and what is none is refused", task_ids_read_back },
    { "what an engine cannot do is refused by name", what_an_engine_cannot_do_is_refused_by_name },
    { "people are not put on the machine's own network",
      people_are_not_put_on_the_machines_own_network },
    { "every value has its name", every_value_has_its_name },
};
TEST_CASES(tests)
