#include "cli/reading.h"

#include "tests/lib/test.h"

#define CHUNKED                                                                                    \
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n4\r\n two\r\n0\r\n\r\n"

static void an_answer_comes_together_however_it_is_cut(void)
{
    struct str all = STR(CHUNKED);
    for (size_t step = 1; step <= all.n; step++) {
        AUTO(reading_clear) struct reading r = { .raw = BUF(1000), .body = BUF(1000) };
        struct err e;
        for (size_t at = 0; at < all.n; at += step)
            CHECK(reading_add(&r, (struct str){ all.p + at, MIN(step, all.n - at) }, &e) == 0);
        CHECK_INT(r.response.state, RESPONSE_DONE);
        CHECK_INT(r.response.status, 200);
        CHECK(str_is(buf_str(&r.body), "one two"));
    }
}

static void an_answer_without_a_body_is_done_with_its_head(void)
{
    AUTO(reading_clear) struct reading r = { .raw = BUF(1000), .body = BUF(1000) };
    struct err e;
    CHECK(reading_add(&r, STR("HTTP/1.1 204 No Content\r\n\r\n"), &e) == 0);
    CHECK_INT(r.response.state, RESPONSE_DONE);
    CHECK_INT(r.body.n, 0);
}

static void a_body_beyond_the_bound_is_refused(void)
{
    AUTO(reading_clear) struct reading r = { .raw = BUF(1000), .body = BUF(4) };
    struct err e;
    CHECK(reading_add(&r, STR(CHUNKED), &e) < 0 && e.code == ERR_TOO_LARGE);
}

static const struct test tests[] = {
    { "an answer comes together however it is cut", an_answer_comes_together_however_it_is_cut },
    { "an answer without a body is done with its head",
      an_answer_without_a_body_is_done_with_its_head },
    { "a body beyond the bound is refused", a_body_beyond_the_bound_is_refused },
};
TEST_CASES(tests)
