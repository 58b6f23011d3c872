#include "http/problem.h"

#include <stdio.h>

#include "base/json.h"
#include "tests/lib/test.h"

static void it_says_what_and_what_to_do(void)
{
    AUTO(buf_free) struct buf out = BUF(PROBLEM_MAX);
    struct err e;
    err_set(&e, ERR_INVALID, "field 'gpus': 9 is more than %d", 8);
    err_hint(&e, "ask for fewer");
    problem_write(400, &e, "resources.gpus", &out);
    CHECK_STR(out.p, "{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,"
                     "\"code\":\"invalid\",\"detail\":\"field 'gpus': 9 is more than 8\","
                     "\"hint\":\"ask for fewer\",\"field\":\"resources.gpus\"}");
}

static void what_is_absent_is_left_out(void)
{
    AUTO(buf_free) struct buf out = BUF(PROBLEM_MAX);
    struct err e;
    err_set(&e, ERR_NOT_FOUND, "no job 7");
    problem_write(404, &e, NULL, &out);
    CHECK_STR(out.p, "{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,"
                     "\"code\":\"not_found\",\"detail\":\"no job 7\"}");
}

static void the_longest_one_fits_and_is_json(void)
{
    AUTO(buf_free) struct buf out = BUF(PROBLEM_MAX);
    AUTO(json_free_p) struct json_doc *doc = NULL;
    struct err e = { .code = ERR_INTERNAL }, why;
    char field[1000];
    memset(e.msg, '\x01', sizeof e.msg - 1); /* each becomes six characters */
    memset(e.hint, '\x02', sizeof e.hint - 1);
    memset(field, '\x03', sizeof field - 1);
    field[sizeof field - 1] = '\0';
    problem_write(500, &e, field, &out);
    CHECK(buf_check(&out, &why) == 0);
    doc = json_read(buf_str(&out), &why);
    CHECK(doc && json_find(json_root(doc), "field"));
}

static const struct test tests[] = {
    { "a problem says what happened and what to do", it_says_what_and_what_to_do },
    { "hint and field are left out when there is none", what_is_absent_is_left_out },
    { "the longest problem fits and is JSON", the_longest_one_fits_and_is_json },
};
TEST_CASES(tests)
