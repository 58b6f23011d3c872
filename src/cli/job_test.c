#include "cli/job.h"

#include "tests/lib/test.h"

static void a_reference_is_an_id_a_range_or_an_element(void)
{
    static const struct {
        const char *text;
        struct job_ref want;
    } good[] = {
        { "17", { .first = 17, .last = 17 } },
        { "3-7", { .first = 3, .last = 7 } },
        { "17_3", { .first = 17, .last = 17, .is_array = true, .index_from = 3, .index_to = 3 } },
        { "17_[0-9]", { .first = 17, .last = 17, .is_array = true, .index_to = 9 } },
        { "17_*", { .first = 17, .last = 17, .is_array = true, .all = true } },
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct job_ref r = { 0 };
        struct err e;
        CHECK(job_ref_parse(good[i].text, &r, &e) == 0);
        CHECK(r.first == good[i].want.first && r.last == good[i].want.last);
        CHECK(r.is_array == good[i].want.is_array && r.all == good[i].want.all);
        CHECK(r.index_from == good[i].want.index_from && r.index_to == good[i].want.index_to);
    }
}

static void anything_else_is_refused(void)
{
    static const char *const bad[] = { "",
                                       "0",
                                       "x",
                                       "-1",
                                       "7-3",
                                       "3-",
                                       "17_",
                                       "17_x",
                                       "17_[3",
                                       "3-5_1",
                                       "17_[]",
                                       "1-100000",
                                       "99999999999999999999" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct job_ref r = { .first = 5 };
        struct err e;
        CHECK(job_ref_parse(bad[i], &r, &e) == -1);
        CHECK(e.code == ERR_INVALID || e.code == ERR_TOO_LARGE);
        CHECK_INT(r.first, 5);
    }
}

static void read_into(const char *json, struct json_doc **doc, struct job *out)
{
    struct err e;
    *doc = json_read(str_of(json), &e);
    CHECK(*doc);
    job_read(json_root(*doc), out);
}

static void a_job_is_read_with_its_unknowns(void)
{
    AUTO(json_free_p) struct json_doc *doc = NULL;
    struct job j;
    read_into("{\"id\":17,\"name\":\"x\",\"state\":\"queued\",\"reason\":null,\"started_ms\":null,"
              "\"exit_code\":null,\"where\":null,\"array\":null,\"array_index\":null}",
              &doc, &j);
    CHECK(j.id == 17 && j.state == JOB_IS_QUEUED && j.started_ms == 0 && j.exit_code == -1);
    CHECK(j.where == NULL && j.array_index == -1 && j.reason.n == 0);
    CHECK_INT(job_elapsed_ms(&j, 1000), 0);
}

static void a_state_of_a_newer_server_is_unknown_not_wrong(void)
{
    AUTO(json_free_p) struct json_doc *doc = NULL;
    struct job j;
    read_into("{\"state\":\"dreaming\"}", &doc, &j);
    CHECK_INT(j.state, JOB_IS_UNKNOWN);
    CHECK_STR(job_slurm_state(&j), "UNKNOWN");
}

static void where_names_machines_and_gpus(void)
{
    AUTO(json_free_p) struct json_doc *doc = NULL;
    AUTO(buf_free) struct buf b = BUF(200);
    struct job j;
    read_into("{\"where\":[{\"node\":\"desk1\",\"gpus\":[0,3]},{\"node\":\"desk2\",\"gpus\":[]}]}",
              &doc, &j);
    job_add_where(&j, &b);
    CHECK_STR(b.p, "desk1:0,3 desk2");
}

static void an_element_of_an_array_shows_its_index(void)
{
    char out[48];
    CHECK_STR(job_id_text(&(struct job){ .id = 20, .array = 17, .array_index = 3 }, out), "17_3");
    CHECK_STR(job_id_text(&(struct job){ .id = 20, .array_index = -1 }, out), "20");
}

static void how_it_ended_is_said_in_slurms_words(void)
{
    struct job j = { .state = JOB_IS_FAILED, .end = STR("time_limit") };
    CHECK_STR(job_slurm_state(&j), "TIMEOUT");
    j.end = STR("out_of_memory");
    CHECK_STR(job_slurm_state(&j), "OUT_OF_MEMORY");
    j.end = STR("exited");
    CHECK_STR(job_slurm_state(&j), "FAILED");
    j.state = JOB_IS_CANCELLED;
    CHECK_STR(job_slurm_state(&j), "CANCELLED");
}

static void the_exit_code_is_what_a_shell_would_say(void)
{
    CHECK_INT(job_shell_code(&(struct job){ .exit_code = 3 }), 3);
    CHECK_INT(job_shell_code(&(struct job){ .exit_code = -1, .exit_signal = 9 }), 137);
    CHECK_INT(job_shell_code(&(struct job){ .exit_code = -1, .state = JOB_IS_CANCELLED }), 1);
    CHECK_INT(job_shell_code(&(struct job){ .exit_code = -1, .state = JOB_IS_SUCCEEDED }), 0);
}

static const struct test tests[] = {
    { "a reference is an id, a range or an element", a_reference_is_an_id_a_range_or_an_element },
    { "anything else is refused", anything_else_is_refused },
    { "a job is read with its unknowns", a_job_is_read_with_its_unknowns },
    { "a state of a newer server is unknown, not wrong",
      a_state_of_a_newer_server_is_unknown_not_wrong },
    { "where names machines and GPUs", where_names_machines_and_gpus },
    { "an element of an array shows its index", an_element_of_an_array_shows_its_index },
    { "how it ended is said in Slurm's words", how_it_ended_is_said_in_slurms_words },
    { "the exit code is what a shell would say", the_exit_code_is_what_a_shell_would_say },
};
TEST_CASES(tests)
