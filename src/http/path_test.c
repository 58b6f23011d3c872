#include "http/http.h"

#include "tests/lib/test.h"

static struct str param[HTTP_PARAMS_MAX];
static size_t n;

static bool match(const char *pattern, const char *path)
{
    n = 99;
    return http_path_match(pattern, str_of(path), param, &n);
}

static void plain_paths_match_themselves(void)
{
    CHECK(match("/", "/") && n == 0);
    CHECK(match("/v1/jobs", "/v1/jobs") && n == 0);
    CHECK(!match("/v1/jobs", "/v1/job") && !match("/v1/jobs", "/v1/jobss"));
    CHECK(!match("/v1/jobs", "/v1") && !match("/v1", "/v1/jobs"));
    CHECK(!match("/v1/jobs", "/V1/jobs") && !match("/v1/jobs", ""));
}

static void params_are_what_stands_in_their_place(void)
{
    const char *path = "/v1/jobs/17/log";
    CHECK(match("/v1/jobs/:id/log", path) && n == 1);
    CHECK(str_is(param[0], "17") && param[0].p == path + 9);
    CHECK(match("/:a/:b", "/x/yy") && n == 2);
    CHECK(str_is(param[0], "x") && str_is(param[1], "yy"));
    CHECK(match("/v1/nodes/:n", "/v1/nodes/desk:1") && str_is(param[0], "desk:1"));
}

static void a_param_is_never_empty(void)
{
    CHECK(!match("/v1/jobs/:id", "/v1/jobs/") && !match("/v1/jobs/:id", "/v1/jobs"));
    CHECK(!match("/v1/jobs/:id/log", "/v1/jobs//log"));
}

static void slashes_count(void)
{
    CHECK(!match("/v1/jobs", "/v1/jobs/") && !match("/v1/jobs", "//v1/jobs"));
    CHECK(!match("/v1/jobs/:id", "/v1/jobs/1/2"));
}

static void what_does_not_match_leaves_the_outputs_alone(void)
{
    CHECK(match("/a/:x", "/a/first"));
    CHECK(!match("/a/:x/end", "/a/second/other") && n == 99);
    CHECK(str_is(param[0], "first"));
}

static void there_are_never_more_params_than_room(void)
{
    CHECK(match("/:a/:b/:c/:d", "/1/2/3/4") && n == 4);
    CHECK(!match("/:a/:b/:c/:d/:e", "/1/2/3/4/5"));
}

static const struct test tests[] = {
    { "a plain path matches itself and nothing else", plain_paths_match_themselves },
    { "a param is what stands in its place", params_are_what_stands_in_their_place },
    { "a param is never empty", a_param_is_never_empty },
    { "slashes count", slashes_count },
    { "what does not match leaves the outputs alone",
      what_does_not_match_leaves_the_outputs_alone },
    { "there are never more params than room for them", there_are_never_more_params_than_room },
};
TEST_CASES(tests)
