#include "engine/local/request.h"

#include <signal.h>

#include "base/json.h"
#include "tests/lib/test.h"

static const char *const uuids[] = { "GPU-a", "GPU-b" };
static const struct request_site site = { .log_bytes = 67108864,
                                          .scratch_mib = 10240,
                                          .pids_max = 4096,
                                          .gpu_uuid = uuids,
                                          .gpus = 2 };

static void a_start_says_all_that_the_keeper_needs(void)
{
    static const char *const argv[] = { "python", "train \"x\".py", NULL };
    static const char *const own[] = { "A=1", NULL }, *const more[] = { "RANK=1", NULL };
    static const struct spec_volume volume = { { "/data", 5 }, { "/d", 2 }, true };
    static const uint32_t groups[] = { 1000, 44 };
    const struct slot slots[] = { { .gpu_mask = 1, .milli = 1000 },
                                  { .gpu_mask = 6, .milli = 500 } };
    AUTO(buf_free) struct buf out = BUF(1 << 20);
    struct spec s = { .image = STR("host"),
                      .workdir = STR("/home/ana/x"),
                      .argv = argv,
                      .n_args = 2,
                      .env = own,
                      .n_env = 1,
                      .volume = &volume,
                      .n_volumes = 1,
                      .network = NETWORK_NONE,
                      .grace_ms = 10000,
                      .request = { .cpu_milli = 4000, .mem_mib = 8192, .replicas = 2 } };
    struct engine_start start = { .task = { 17, 1, 1 },
                                  .spec = &s,
                                  .user = { STR("ana"), STR("/home/ana"), 1000, 1000, groups, 2 },
                                  .tenant = STR("vision"),
                                  .slots = slots,
                                  .n_slots = 2,
                                  .env = more,
                                  .max_time_ms = 5000 };
    request_start(&start, &site, &out);
    CHECK_STR(
        out.p,
        "{\"do\":\"start\",\"task\":\"17.1.1\",\"tenant\":\"vision\",\"user\":{\"name\":\"ana\","
        "\"uid\":1000,\"gid\":1000,\"groups\":[1000,44],\"home\":\"/home/ana\"},"
        "\"argv\":[\"python\",\"train \\\"x\\\".py\"],\"env\":[\"A=1\",\"RANK=1\"],"
        "\"workdir\":\"/home/ana/x\",\"image\":\"host\",\"network\":\"none\",\"tty\":false,"
        "\"cpu_milli\":4000,\"mem_mib\":8192,\"pids_max\":4096,\"scratch_mib\":10240,"
        "\"log_bytes\":67108864,\"max_time_ms\":5000,\"grace_ms\":10000,"
        "\"gpus\":[{\"index\":1,\"uuid\":\"GPU-b\",\"milli\":500},"
        "{\"index\":2,\"uuid\":\"\",\"milli\":500}],"
        "\"volumes\":[{\"from\":\"/data\",\"to\":\"/d\",\"ro\":true}]}\n");
}

static void what_is_not_said_is_the_sites_and_the_users(void)
{
    static const char *const argv[] = { "x", NULL }, *const none[] = { NULL };
    const struct slot slot = { 0 };
    AUTO(buf_free) struct buf out = BUF(1 << 20);
    struct spec s = { .argv = argv, .n_args = 1, .env = none, .scratch_mib = 7, .has_stdin = true };
    struct engine_start start = { .spec = &s, .slots = &slot, .n_slots = 1, .env = none };
    static const char *const folders[] = { "/data", "/scratch", NULL };
    struct request_site open = site;
    start.user.home = STR("/homes/ana");
    start.home_else = STR("/homes/else");
    open.volumes_allow = folders;
    open.volumes_deny = folders + 1;
    request_start(&start, &open, &out);
    CHECK(strstr(out.p,
                 "\"volumes_allow\":[\"/data\",\"/scratch\"],\"volumes_deny\":[\"/scratch\"]"));
    CHECK(strstr(out.p, "\"home_else\":\"/homes/else\""));
    CHECK(!strstr(out.p, "workdir")); /* the keeper knows the home */
    CHECK(strstr(out.p, "\"scratch_mib\":7,"));
    CHECK(strstr(out.p, "\"stdin\":true"));
    CHECK(strstr(out.p, "\"gpus\":[]"));
}

static void the_other_verbs_are_short(void)
{
    AUTO(buf_free) struct buf out = BUF(4096);
    struct task_id t = { 17, 2, 0 };
    request_simple(KEEPER_DO_SYNC, t, &out);
    request_simple(KEEPER_DO_PAUSE, t, &out);
    request_stop(t, 10000, END_STOPPED, &out);
    request_signal(t, SIGUSR1, &out);
    CHECK_STR(out.p,
              "{\"do\":\"sync\"}\n"
              "{\"do\":\"pause\",\"task\":\"17.2.0\"}\n"
              "{\"do\":\"stop\",\"task\":\"17.2.0\",\"grace_ms\":10000,\"why\":\"stopped\"}\n"
              "{\"do\":\"signal\",\"task\":\"17.2.0\",\"signal\":10}\n");
}

static const struct test tests[] = {
    { "a start says all that the keeper needs", a_start_says_all_that_the_keeper_needs },
    { "what is not said is the site's and the user's",
      what_is_not_said_is_the_sites_and_the_users },
    { "the other verbs are short", the_other_verbs_are_short },
};
TEST_CASES(tests)
