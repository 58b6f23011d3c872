#include "cli/board.h"

#include "tests/lib/test.h"

static const char nodes_text[] =
    "[{\"name\":\"desk1\",\"state\":\"up\",\"model\":\"A100\",\"simulated\":true,\"cpu_milli\":"
    "4000,"
    "\"cpu_free_milli\":2000,\"mem_mib\":1024,\"mem_free_mib\":1024,\"gpus\":["
    "{\"index\":0,\"free_milli\":500,\"jobs\":[{\"id\":7,\"user\":\"ana\",\"name\":\"x\",\"milli\":"
    "500}]},"
    "{\"index\":1,\"free_milli\":1000,\"jobs\":[]}]}]";

static struct job job_of(uint64_t id, enum job_word state, uint64_t milli, const char *user)
{
    return (struct job){ .id = id,
                         .state = state,
                         .gpu_milli = milli,
                         .user = str_of(user),
                         .replicas = 1,
                         .array_index = -1,
                         .started_ms = (int64_t)id * 1000,
                         .submitted_ms = 1 };
}

static void build(enum board_sort sort, struct arena *a, struct board *out)
{
    static struct job v[3];
    struct err e;
    struct jobs jobs = { .v = v, .n = 3 };
    v[0] = job_of(9, JOB_IS_QUEUED, 4000, "ana");
    v[1] = job_of(8, JOB_IS_RUNNING, 1000, "bob");
    v[2] = job_of(7, JOB_IS_RUNNING, 500, "ana");
    AUTO(json_free_p) struct json_doc *doc = json_read(STR(nodes_text), &e);
    struct board_want w = {
        .nodes = json_root(doc), .jobs = &jobs, .sort = sort, .columns = 80, .now_ms = 60000
    };
    board_build(&w, a, out);
}

static void machines_come_first_with_who_has_their_gpus(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct board b;
    build(SORT_STATE, &a, &b);
    CHECK(strstr(b.line[0].text, "desk1") && strstr(b.line[0].text, "A100 (simulated)"));
    CHECK(strstr(b.line[1].text, "████░░░░") && strstr(b.line[1].text, "7 ana x (0.5)"));
    CHECK(strstr(b.line[2].text, "free"));
    CHECK_INT(b.first_job, 5);
    CHECK_INT(b.n, 8);
}

static void jobs_are_in_the_order_asked_for(void)
{
    static const uint64_t want[SORT_COUNT][3] = { [SORT_STATE] = { 7, 8, 9 },
                                                  [SORT_GPUS] = { 9, 8, 7 },
                                                  [SORT_TIME] = { 7, 8, 9 },
                                                  [SORT_USER] = { 7, 9, 8 } };
    for (int s = 0; s < SORT_COUNT; s++) {
        AUTO(arena_free) struct arena a = { 0 };
        struct board b;
        build((enum board_sort)s, &a, &b);
        for (size_t i = 0; i < 3; i++)
            CHECK_INT(b.line[b.first_job + i].job, want[s][i]);
    }
}

static void without_a_server_there_are_only_titles(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct jobs none = { 0 };
    struct board b;
    board_build(&(struct board_want){ .jobs = &none, .columns = 80 }, &a, &b);
    CHECK_INT(b.n, 2);
    CHECK_INT(b.first_job, 2);
}

static const struct test tests[] = {
    { "machines come first, with who has their GPUs", machines_come_first_with_who_has_their_gpus },
    { "jobs are in the order asked for", jobs_are_in_the_order_asked_for },
    { "without a server there are only titles", without_a_server_there_are_only_titles },
};
TEST_CASES(tests)
