#include "cli/why.h"

#include <stdlib.h>
#include <time.h>

#include "tests/lib/test.h"

static void reads(const char *json, const char *text)
{
    AUTO(buf_free) struct buf b = BUF(1u << 16);
    struct err e;
    AUTO(json_free_p) struct json_doc *doc = json_read(str_of(json), &e);
    setenv("TZ", "UTC", 1);
    tzset();
    CHECK(doc != NULL);
    why_print(json_root(doc), &b);
    CHECK_STR(buf_str(&b).p, text);
}

static void a_job_that_waits_says_why_until_when_and_what_helps(void)
{
    reads("{\"job\":17,\"state\":\"queued\",\"waited_ms\":300000,"
          "\"reasons\":[{\"code\":\"gpus_busy\",\"text\":\"needs 2 GPUs\"},{\"code\":\"kept\"}],"
          "\"before\":{\"own\":3,\"users\":1},"
          "\"starts\":{\"p50_ms\":1,\"p90_ms\":2,\"p50_in_ms\":720000,\"p90_in_ms\":5400000},"
          "\"helps\":[{\"code\":\"model\",\"text\":\"take any GPU model\"}]}",
          "job 17 is queued and has waited 5m:\n"
          "  - needs 2 GPUs\n"
          "  - kept\n"
          "When room comes it is first the turn of 3 jobs of its user and of 1 other user.\n"
          "It will start in about 12m, in nine of ten cases within 1h30m.\n"
          "It would start now if you\n"
          "  - take any GPU model\n");
}

static void a_forecast_that_has_passed_is_said_to_have_passed(void)
{
    reads("{\"job\":17,\"state\":\"queued\",\"waited_ms\":7200000,"
          "\"reasons\":[{\"code\":\"gpus_busy\",\"text\":\"needs 2 GPUs\"}],"
          "\"starts\":{\"p50_ms\":1,\"p90_ms\":2,\"p50_in_ms\":2400000,\"p90_in_ms\":7200000,"
          "\"foreseen_ms\":1772366400000}}",
          "job 17 is queued and has waited 2h:\n"
          "  - needs 2 GPUs\n"
          "It was expected to start at about 2026-03-01 12:00, which has passed.\n"
          "It will start in about 40m, in nine of ten cases within 2h.\n");
}

static void times_of_a_sentence_are_those_of_the_clock_on_the_wall(void)
{
    AUTO(buf_free) struct buf b = BUF(1u << 16);
    struct err e;
    AUTO(json_free_p)
    struct json_doc *doc = json_read(STR("{\"job\":17,\"state\":\"queued\",\"reasons\":[{\"text\":"
                                         "\"from 2026-03-01T12:30:00Z on; 2026Z\"}]}"),
                                     &e);
    setenv("TZ", "CET-1", 1);
    tzset();
    CHECK(doc != NULL);
    why_print(json_root(doc), &b);
    CHECK_STR(buf_str(&b).p, "job 17 is queued:\n  - from 2026-03-01T13:30:00 on; 2026Z\n");
}

static void one_that_does_not_wait_says_only_that(void)
{
    reads("{\"job\":17,\"state\":\"running\",\"waited_ms\":0,\"reasons\":[],\"helps\":[]}",
          "job 17 is running\n");
    reads("{\"job\":17,\"state\":\"failed\",\"waited_ms\":0,\"reasons\":[],\"helps\":[],"
          "\"message\":\"exit code 3\\u001b[2J\"}",
          "job 17 is failed:\n  - exit code 3?[2J\n");
}

static void a_time_that_is_past_is_told_in_the_past(void)
{
    reads("{\"job\":17,\"state\":\"queued\",\"at_ms\":1772368200000,\"waited_ms\":60000,"
          "\"reasons\":[{\"code\":\"gpus_busy\",\"text\":\"needs 1 GPU\"}],"
          "\"before\":{\"own\":0,\"users\":2},"
          "\"starts\":{\"p50_ms\":1,\"p90_ms\":2,\"p50_in_ms\":0,\"p90_in_ms\":60000},"
          "\"helps\":[{\"code\":\"gpus\",\"text\":\"ask for 1 GPU instead of 2\"}],"
          "\"instead\":{\"jobs\":[{\"id\":12,\"name\":\"train\",\"user\":\"anna\","
          "\"tenant\":\"vision\",\"gpu_milli\":2000}],\"others\":3}}",
          "job 17 was queued at 2026-03-01T12:30:00 and had waited 1m:\n"
          "  - needs 1 GPU\n"
          "When room came it was first the turn of 2 other users.\n"
          "It was expected to start in about 1s, in nine of ten cases within 1m.\n"
          "It would have started then if you had said:\n"
          "  - ask for 1 GPU instead of 2\n"
          "On the machines that could run it were\n"
          "  - job 12 train of anna (vision), 2 GPUs\n"
          "  - 3 other jobs\n");
    reads("{\"job\":17,\"state\":\"running\",\"at_ms\":1772368200000,\"waited_ms\":0,"
          "\"reasons\":[],\"helps\":[],\"since_ms\":1772368140000,\"nodes\":[\"n0\",\"n1\"]}",
          "job 17 was running at 2026-03-01T12:30:00, since 2026-03-01T12:29:00, on n0, n1\n");
}

static const struct test tests[] = {
    { "a job that waits says why, until when and what helps",
      a_job_that_waits_says_why_until_when_and_what_helps },
    { "a forecast that has passed is said to have passed",
      a_forecast_that_has_passed_is_said_to_have_passed },
    { "times of a sentence are those of the clock on the wall",
      times_of_a_sentence_are_those_of_the_clock_on_the_wall },
    { "one that does not wait says only that", one_that_does_not_wait_says_only_that },
    { "a time that is past is told in the past", a_time_that_is_past_is_told_in_the_past },
};
TEST_CASES(tests)
