#include "keeper/request.h"

#include <stdio.h>

#include "tests/lib/test.h"

#define USER                                                                                       \
    "\"user\":{\"name\":\"ana\",\"uid\":1000,\"gid\":1001,\"groups\":[1001,44],\"home\":\"/home/"  \
    "ana\"}"
#define LEAST                                                                                      \
    "\"do\":\"start\",\"task\":\"17.1.0\",\"tenant\":\"vision\"," USER ",\"argv\":[\"ls\"]"

static int read_text(const char *text, struct arena *a, struct keeper_request *r, struct err *e)
{
    return request_read(str_of(text), a, r, e);
}

static void a_full_start_is_read(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct keeper_request r;
    struct err e;
    CHECK(read_text(
              "{" LEAST
              ",\"env\":[\"K=V\",\"EMPTY=\"],\"workdir\":\"/home/ana/x\",\"image\":\"python:3\","
              "\"network\":\"none\",\"tty\":true,\"cpu_milli\":4000,\"mem_mib\":8192,"
              "\"pids_max\":4096,\"scratch_mib\":10240,\"log_bytes\":67108864,"
              "\"max_time_ms\":5,\"grace_ms\":10000,"
              "\"gpus\":[{\"index\":3,\"uuid\":\"GPU-1\",\"milli\":500}],"
              "\"volumes\":[{\"from\":\"/data\",\"to\":\"/d\",\"ro\":true}]}",
              &a, &r, &e) == 0);
    const struct start *s = r.start;
    CHECK(r.verb == KEEPER_DO_START && s);
    CHECK_STR(s->task, "17.1.0");
    CHECK_STR(s->tenant, "vision");
    CHECK_STR(s->user.name.p, "ana");
    CHECK_STR(s->user.home.p, "/home/ana");
    CHECK(s->user.uid == 1000 && s->user.gid == 1001);
    CHECK(s->user.n_groups == 2 && s->user.groups[1] == 44);
    CHECK(s->n_argv == 1 && !s->argv[1] && s->n_env == 2 && !s->env[2]);
    CHECK_STR(s->env[1], "EMPTY=");
    CHECK_STR(s->workdir, "/home/ana/x");
    CHECK_STR(s->image, "python:3");
    CHECK(s->network == NETWORK_NONE && s->tty && s->workdir_given);
    CHECK(s->cpu_milli == 4000 && s->mem_mib == 8192 && s->pids_max == 4096);
    CHECK(s->scratch_mib == 10240 && s->log_bytes == 67108864 && s->max_time_ms == 5);
    CHECK(s->n_gpus == 1 && s->gpu[0].index == 3 && s->gpu[0].milli == 500);
    CHECK_STR(s->gpu[0].uuid, "GPU-1");
    CHECK(s->n_volumes == 1 && s->volume[0].read_only);
    CHECK_STR(s->volume[0].to, "/d");
}

static void a_short_start_has_defaults(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct keeper_request r;
    struct err e;
    CHECK(read_text("{" LEAST "}", &a, &r, &e) == 0);
    CHECK_STR(r.start->workdir, "/home/ana");
    CHECK_STR(r.start->image, "host");
    CHECK(r.start->network == NETWORK_TENANT && !r.start->tty && !r.start->workdir_given);
    CHECK(r.start->mem_mib == 0 && r.start->grace_ms == 10000 && r.start->n_gpus == 0 &&
          r.start->n_volumes == 0);
}

static void other_verbs_are_read(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct keeper_request r;
    struct err e;
    CHECK(read_text("{\"do\":\"sync\"}", &a, &r, &e) == 0 && r.verb == KEEPER_DO_SYNC);
    CHECK(read_text("{\"do\":\"stop\",\"task\":\"1.2.3\",\"grace_ms\":7,\"why\":\"time_limit\"}",
                    &a, &r, &e) == 0);
    CHECK(r.verb == KEEPER_DO_STOP && r.grace_ms == 7 && r.why == END_TIME_LIMIT);
    CHECK(read_text("{\"do\":\"signal\",\"task\":\"1.2.3\",\"signal\":10}", &a, &r, &e) == 0);
    CHECK(r.signo == 10);
    CHECK(read_text("{\"do\":\"purge\",\"task\":\"1.2.3\"}", &a, &r, &e) == 0);
    CHECK_STR(r.task, "1.2.3");
}

/* What a start must not say, and the word the message must have. */
static const struct {
    const char *more, *word;
} refused[] = {
    { "\"mem_mib\":-1", "mem_mib" },
    { "\"mem_mib\":\"8G\"", "mem_mib" },
    { "\"mem_mib\":1e300", "mem_mib" },
    { "\"cpu_milli\":18446744073709551615", "cpu_milli" },
    { "\"log_bytes\":1", "log_bytes" },
    { "\"tty\":1", "tty" },
    { "\"network\":\"host\"", "network" },
    { "\"workdir\":\"x\"", "workdir" },
    { "\"workdir\":\"/a/../b\"", "workdir" },
    { "\"workdir\":\"/a\\n\"", "workdir" },
    { "\"env\":[\"NOEQUALS\"]", "env" },
    { "\"env\":[\"=x\"]", "env" },
    { "\"env\":[\"A=\\u0000\"]", "env" },
    { "\"env\":{}", "env" },
    { "\"image\":\"\"", "image" },
    { "\"gpus\":[{\"index\":0}]", "gpus" },
    { "\"gpus\":[{\"index\":0,\"uuid\":\"a/b\"}]", "gpus" },
    { "\"gpus\":[7]", "gpus" },
    { "\"volumes\":[{\"from\":\"/\",\"to\":\"/x\"}]", "volumes" },
    { "\"volumes\":[{\"from\":\"//\",\"to\":\"/x\"}]", "volumes" },
    { "\"volumes\":[{\"from\":\"/proc/1\",\"to\":\"/x\"}]", "volumes" },
    { "\"volumes\":[{\"from\":\"//sys\",\"to\":\"/x\"}]", "volumes" },
    { "\"volumes\":[{\"from\":\"/x\",\"to\":\"/.nightshift/init\"}]", "volumes" },
    { "\"volumes\":[{\"from\":\"/x\",\"to\":\"/dev\"}]", "volumes" },
    { "\"volumes\":[{\"from\":\"/x\",\"to\":\"y\"}]", "volumes" },
    { "\"surprise\":1", "surprise" },
    { "\"mem_mib\":1,\"mem_mib\":2", "mem_mib" },
};

static void every_field_is_checked_and_named(void)
{
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        AUTO(arena_free) struct arena a = { 0 };
        struct keeper_request r = { .signo = 77 };
        struct err e = { 0 };
        char text[1024];
        snprintf(text, sizeof text, "{" LEAST ",%s}", refused[i].more);
        CHECK_AT(i, read_text(text, &a, &r, &e) < 0 && r.signo == 77);
        CHECK_AT(i, strstr(e.msg, refused[i].word));
    }
}

static const char *const refused_whole[] = {
    "",
    "[]",
    "{}",
    "{\"do\":7}",
    "{\"do\":\"dance\"}",
    "{\"do\":\"stop\"}",
    "{\"do\":\"stop\",\"task\":\"17\"}",
    "{\"do\":\"stop\",\"task\":\"../../x\"}",
    "{\"do\":\"stop\",\"task\":\"1.1.0\",\"why\":\"boredom\"}",
    "{\"do\":\"signal\",\"task\":\"1.1.0\",\"signal\":0}",
    "{\"do\":\"signal\",\"task\":\"1.1.0\",\"signal\":65}",
    "{\"do\":\"sync\",\"task\":\"1.1.0\"}",
    "{\"do\":\"start\",\"task\":\"1.1.0\",\"tenant\":\"a/b\"," USER ",\"argv\":[\"x\"]}",
    "{\"do\":\"start\",\"task\":\"1.1.0\",\"tenant\":\"a\"," USER "}",
    "{\"do\":\"start\",\"task\":\"1.1.0\",\"tenant\":\"a\"," USER ",\"argv\":[\"\"]}",
    "{\"do\":\"start\",\"task\":\"1.1.0\",\"tenant\":\"a\",\"argv\":[\"x\"]}",
    "{\"do\":\"start\",\"task\":\"1.1.0\",\"tenant\":\"a\",\"argv\":[\"x\"],\"user\":{\"name\":"
    "\"a\","
    "\"uid\":4294967295,\"gid\":1,\"home\":\"/h\"}}",
    "{\"do\":\"start\",\"task\":\"1.1.0\",\"tenant\":\"a\",\"argv\":[\"x\"],\"user\":{\"name\":"
    "\"a\","
    "\"uid\":1,\"gid\":1,\"home\":\"/\"}}",
};

static void what_makes_no_sense_is_refused(void)
{
    for (size_t i = 0; i < ARRAY_LEN(refused_whole); i++) {
        AUTO(arena_free) struct arena a = { 0 };
        struct keeper_request r;
        struct err e = { 0 };
        CHECK_AT(i, read_text(refused_whole[i], &a, &r, &e) < 0 && e.msg[0]);
    }
}

static void names_of_tasks_are_narrow(void)
{
    static const char *const good[] = { "1.1.0", "0.0.0", "18446744073709551615.4294967295.0" };
    static const char *const bad[] = {
        "",       "1",      "1.1",    "1.1.0.0",
        ".1.0",   "1..0",   "1.1.",   "1.1.x",
        "1.1.0/", "-1.1.0", "1.1. 0", "1111111111111111111111111111111111111111111111111.1.0"
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        CHECK_AT(i, task_name_valid(str_of(good[i])));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_AT(i, !task_name_valid(str_of(bad[i])));
}

static void whose_broken_request_it_is(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    CHECK_STR(request_start_task(str_of("{\"do\":\"start\",\"task\":\"1.1.0\",\"x\":1}"), &a),
              "1.1.0");
    CHECK(!request_start_task(STR("{\"do\":\"start\",\"task\":\"1\"}"), &a));
    CHECK(!request_start_task(STR("{\"do\":\"stop\",\"task\":\"1.1.0\",\"x\":1}"), &a));
    CHECK(!request_start_task(STR("[1"), &a));
}

static void ends_have_their_words(void)
{
    for (int w = 0; w < TASK_END_COUNT; w++) {
        enum task_end back;
        CHECK(task_end_parse(str_of(task_end_name((enum task_end)w)), &back) &&
              back == (enum task_end)w);
    }
    enum task_end none = END_LOST;
    CHECK(!task_end_parse(STR("no such"), &none) && none == END_LOST);
}

static const struct test tests[] = {
    { "a start with all its fields is read", a_full_start_is_read },
    { "a start with the fewest fields gets defaults", a_short_start_has_defaults },
    { "the other verbs are read", other_verbs_are_read },
    { "every field is checked, and the message names it", every_field_is_checked_and_named },
    { "what makes no sense is refused", what_makes_no_sense_is_refused },
    { "the name of a task is three numbers and nothing else", names_of_tasks_are_narrow },
    { "a request that cannot be read still says whose it is", whose_broken_request_it_is },
    { "every end has a word, and the word names it", ends_have_their_words },
};
TEST_CASES(tests)
