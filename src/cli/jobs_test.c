#include "cli/jobs.h"

#include "tests/lib/test.h"

static struct job element(uint64_t array, int64_t index, enum job_word state)
{
    return (struct job){
        .id = array + (uint64_t)index, .array = array, .array_index = index, .state = state
    };
}

static void elements_in_one_state_are_one_line(void)
{
    struct job v[] = { element(17, 7, JOB_IS_QUEUED),  element(17, 6, JOB_IS_QUEUED),
                       element(17, 4, JOB_IS_QUEUED),  element(17, 3, JOB_IS_RUNNING),
                       element(10, 0, JOB_IS_RUNNING), { .id = 9, .array_index = -1 } };
    struct jobs j = { .v = v, .n = ARRAY_LEN(v) };
    AUTO(buf_free) struct buf b = BUF(100);
    CHECK_INT(jobs_array_run(&j, 0), 3);
    CHECK_INT(jobs_array_run(&j, 3), 1);
    CHECK_INT(jobs_array_run(&j, 5), 1);
    jobs_add_array_text(&j, 0, 3, &b);
    CHECK_STR(b.p, "17_[4,6-7]");
}

static void another_reason_is_another_line(void)
{
    struct job v[] = { element(1, 1, JOB_IS_QUEUED), element(1, 0, JOB_IS_QUEUED) };
    struct jobs j = { .v = v, .n = 2 };
    v[0].reason = STR("kept");
    CHECK_INT(jobs_array_run(&j, 0), 1);
}

static void a_filter_becomes_a_query(void)
{
    AUTO(buf_free) struct buf b = BUF(400);
    struct job_filter f = {
        .states = "running,queued", .user = "ana b", .name = "a&b=c", .array = 7
    };
    jobs_path(&f, 99, &b);
    CHECK_STR(b.p, "/v1/jobs?state=running,queued&user=ana%20b&name=a%26b%3Dc&array=7&limit=1000"
                   "&before=99");
}

static const struct test tests[] = {
    { "elements in one state are one line", elements_in_one_state_are_one_line },
    { "another reason is another line", another_reason_is_another_line },
    { "a filter becomes a query", a_filter_becomes_a_query },
};
TEST_CASES(tests)
