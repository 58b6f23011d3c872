#include "cli/life.h"

#include "tests/lib/test.h"

static void check(const char *json, const char *want)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct err e = { 0 };
    AUTO(json_free_p) struct json_doc *d = json_read(str_of(json), &e);
    CHECK(d != NULL);
    life_line(json_root(d), &b);
    CHECK(b.n > 21); /* the time, in the zone of whoever reads it */
    CHECK_STR(buf_str(&b).p + 21, want);
}

static void a_line_says_what_where_who_and_why(void)
{
    check("{\"t_ms\":1000,\"what\":\"submitted\",\"reason_text\":\"too few GPUs are free\"}",
          "submitted  too few GPUs are free");
    check("{\"t_ms\":1000,\"what\":\"placed\",\"run\":2,\"where\":[{\"node\":\"desk1\",\"gpus\":[0,"
          "1]}]}",
          "placed  desk1:0,1, run 2");
    check("{\"t_ms\":1000,\"what\":\"freezing\",\"by\":\"ana\",\"reason_text\":null}",
          "freezing by ana");
    check(
        "{\"t_ms\":1000,\"what\":\"ended\",\"state\":\"failed\",\"exit_code\":3,\"exit_signal\":0,"
        "\"message\":\"exit code 3\\u001b[31m\"}",
        "failed, exit code 3  exit code 3?[31m");
}

static const struct test tests[] = {
    { "a line says what, where, who and why", a_line_says_what_where_who_and_why },
};
TEST_CASES(tests)
