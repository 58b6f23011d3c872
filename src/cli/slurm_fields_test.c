#include "cli/slurm_fields.h"

#include "tests/lib/test.h"

static const struct job running = {
    .id = 17,
    .name = STR("a-long-name"),
    .user = STR("ana"),
    .tenant = STR("vision"),
    .state = JOB_IS_RUNNING,
    .started_ms = 1000,
    .gpu_milli = 2000,
    .exit_code = -1,
    .array_index = -1,
    .replicas = 1,
};

static void row_is(const char *format, const struct job *j, const char *want)
{
    AUTO(buf_free) struct buf b = BUF(400);
    struct slurm_format f;
    struct err e;
    CHECK(slurm_format_letters(format, &f, &e) == 0);
    slurm_print_row(&f, &(struct slurm_row){ j, "17", 3725000 }, &b);
    CHECK_STR(b.p, want);
}

static void letters_stand_for_fields(void)
{
    row_is("%i %j %T %M", &running, "17 a-long-name RUNNING 1:02:04\n");
    row_is("%i|%b|%a|%u|", &running, "17|gpu:2|vision|ana|\n");
}

static void sizes_pad_and_cut(void)
{
    row_is("%.6i|%6i|%.4j|%t", &running, "    17|17    |a-lo|R\n");
}

static void a_job_that_waits_shows_its_reason(void)
{
    struct job j = running;
    j.state = JOB_IS_QUEUED;
    j.reason = STR("gpus_busy");
    row_is("%t %R", &j, "PD (gpus_busy)\n");
    j.reason = STR("begin");
    row_is("%r", &j, "BeginTime\n");
    j.reason = STR("after");
    row_is("%R", &j, "(Dependency)\n");
}

static void an_unknown_letter_names_the_known_ones(void)
{
    struct slurm_format f;
    struct err e;
    CHECK(slurm_format_letters("%i %Z", &f, &e) == -1);
    CHECK(strstr(e.msg, "'%Z'") && strstr(e.hint, "%i"));
    CHECK(slurm_format_letters("%", &f, &e) == -1);
}

static void names_are_sacct_s(void)
{
    AUTO(buf_free) struct buf b = BUF(400);
    struct slurm_format f;
    struct err e;
    struct job j = running;
    j.state = JOB_IS_FAILED;
    j.end = STR("out_of_memory");
    j.exit_signal = 9;
    j.ended_ms = 61000;
    CHECK(slurm_format_names("jobid%6,State%-14,exitcode,Elapsed", &f, &e) == 0);
    slurm_print_titles(&f, &b);
    slurm_print_row(&f, &(struct slurm_row){ &j, "17", 0 }, &b);
    slurm_print_bars(&f, &(struct slurm_row){ &j, "17", 0 }, &b);
    CHECK_STR(b.p, "JobID  State          ExitCode    Elapsed\n"
                   "17     OUT_OF_MEMORY       0:9   00:01:00\n"
                   "17|OUT_OF_MEMORY|0:9|00:01:00\n");
    CHECK(slurm_format_names("JobID,Nonsense", &f, &e) == -1 && strstr(e.hint, "ExitCode"));
}

static void durations_are_slurms(void)
{
    char out[32];
    CHECK_STR(slurm_duration(65000, false, out), "1:05");
    CHECK_STR(slurm_duration(3725000, false, out), "1:02:05");
    CHECK_STR(slurm_duration(90061000, false, out), "1-01:01:01");
    CHECK_STR(slurm_duration(65000, true, out), "00:01:05");
}

static void states_are_known_by_both_their_names(void)
{
    AUTO(buf_free) struct buf b = BUF(200);
    struct err e;
    CHECK(slurm_states("PD,running", &b, &e) == 0);
    CHECK_STR(b.p, "queued,held,running");
    CHECK(slurm_states("all", &b, &e) == 0);
    CHECK_STR(b.p, "all");
    CHECK(slurm_states("XX", &b, &e) == -1);
}

static const struct test tests[] = {
    { "letters stand for fields", letters_stand_for_fields },
    { "sizes pad and cut", sizes_pad_and_cut },
    { "a job that waits shows its reason", a_job_that_waits_shows_its_reason },
    { "an unknown letter names the known ones", an_unknown_letter_names_the_known_ones },
    { "names are sacct's", names_are_sacct_s },
    { "durations are Slurm's", durations_are_slurms },
    { "states are known by both their names", states_are_known_by_both_their_names },
};
TEST_CASES(tests)
