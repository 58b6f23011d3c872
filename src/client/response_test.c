#include "client/response.h"

#include "base/buf.h"
#include "tests/lib/test.h"

/* Reads `text` in pieces of `step` bytes, as it would come from a socket. */
static int read_all(const char *text, size_t step, struct response *r, struct buf *body,
                    struct err *e)
{
    struct str all = str_of(text);
    size_t at = 0, have = 0;
    *r = (struct response){ 0 };
    while (r->state != RESPONSE_DONE) {
        size_t used = 0;
        struct str in = { all.p + at, have - at }, piece = { "", 0 };
        int rc = r->state == RESPONSE_HEAD ? response_head(r, in, &used, e)
                                           : response_body(r, in, &used, &piece, e);
        if (rc < 0)
            return -1;
        buf_add(body, piece);
        at += used;
        if (used == 0 && have == all.n)
            return response_eof(r, e);
        if (used == 0)
            have = MIN(have + step, all.n);
    }
    return 0;
}

static void reads(const char *text, int status, const char *body)
{
    for (size_t step = 1; step < 70; step += 3) {
        AUTO(buf_free) struct buf b = BUF(4096);
        struct response r;
        struct err e;
        CHECK(read_all(text, step, &r, &b, &e) == 0);
        CHECK_INT(r.status, status);
        CHECK_STR(buf_str(&b).p, body);
    }
}

static void refused(const char *text, const char *why)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct response r;
    struct err e = { 0 };
    CHECK(read_all(text, 1000, &r, &b, &e) == -1);
    CHECK_INT(e.code, ERR_UNAVAILABLE);
    CHECK(strstr(e.msg, why));
}

static void a_body_has_the_length_its_head_says(void)
{
    reads("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello");
    reads("HTTP/1.1 201 Created\r\ncontent-length:0\r\n\r\n", 201, "");
    reads("HTTP/1.1 200\nContent-Length: 2\n\nab", 200, "ab"); /* bare line feeds */
}

static void chunks_are_joined(void)
{
    reads("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
          "5\r\nhello\r\n1;x=y\r\n \r\nA\r\n0123456789\r\n0\r\n\r\n",
          200, "hello 0123456789");
    reads("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n0\r\nX: trailer\r\n\r\n", 200,
          "");
}

static void without_a_length_the_body_ends_with_the_connection(void)
{
    reads("HTTP/1.0 200 OK\r\n\r\nall of it", 200, "all of it");
}

static void some_answers_have_no_body(void)
{
    reads("HTTP/1.1 204 No Content\r\n\r\n", 204, "");
    reads("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, "");
}

static void an_interim_answer_is_passed_over(void)
{
    reads("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok");
}

static void after_an_upgrade_everything_is_the_other_protocol(void)
{
    reads("HTTP/1.1 101 Switching Protocols\r\nContent-Length: 3\r\n\r\nframes", 101, "frames");
}

static void the_connection_is_kept_unless_the_server_says_otherwise(void)
{
    struct response r;
    struct err e;
    AUTO(buf_free) struct buf b = BUF(64);
    CHECK(read_all("HTTP/1.1 204 x\r\n\r\n", 99, &r, &b, &e) == 0 && r.keep_alive);
    CHECK(read_all("HTTP/1.1 204 x\r\nConnection: Close\r\n\r\n", 99, &r, &b, &e) == 0);
    CHECK(!r.keep_alive);
    CHECK(read_all("HTTP/1.0 204 x\r\n\r\n", 99, &r, &b, &e) == 0 && !r.keep_alive);
}

static void the_type_is_lower_case_and_bare(void)
{
    struct response r;
    struct err e;
    AUTO(buf_free) struct buf b = BUF(64);
    CHECK(read_all("HTTP/1.1 204 x\r\nContent-Type: Application/JSON; charset=utf-8\r\n\r\n", 99,
                   &r, &b, &e) == 0);
    CHECK_STR(r.type, "application/json");
}

static void what_is_not_http_is_refused(void)
{
    refused("SSH-2.0-OpenSSH_9.2\r\n\r\n", "does not begin with HTTP/1.1");
    refused("HTTP/2 200 OK\r\n\r\n", "does not begin");
    refused("HTTP/1.1 20 OK\r\n\r\n", "no status");
    refused("HTTP/1.1 abc OK\r\n\r\n", "no status");
    refused("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "no name");
    refused("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "length");
    refused("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "length");
    refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "transfer encoding");
    refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "no size");
    refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1111111111111111\r\n", "no size");
    refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
            "longer than its size");
}

static void an_answer_that_breaks_off_is_an_error(void)
{
    refused("HTTP/1.1 200 OK\r\nContent-Le", "in the middle");
    refused("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "in the middle");
    refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "in the middle");
    refused("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "in the middle");
}

static void a_head_is_bounded(void)
{
    AUTO(buf_free) struct buf head = BUF(RESPONSE_HEAD_MAX * 2);
    struct response r = { 0 };
    struct err e;
    size_t used;
    buf_addz(&head, "HTTP/1.1 200 OK\r\nX: ");
    while (head.n <= RESPONSE_HEAD_MAX)
        buf_addc(&head, 'x');
    CHECK(response_head(&r, buf_str(&head), &used, &e) == -1);
    CHECK(strstr(e.msg, "too long"));
}

static const struct test tests[] = {
    { "a body has the length its head says", a_body_has_the_length_its_head_says },
    { "chunks are joined", chunks_are_joined },
    { "without a length the body ends with the connection",
      without_a_length_the_body_ends_with_the_connection },
    { "some answers have no body", some_answers_have_no_body },
    { "an interim answer is passed over", an_interim_answer_is_passed_over },
    { "after an upgrade everything is the other protocol",
      after_an_upgrade_everything_is_the_other_protocol },
    { "the connection is kept unless the server says otherwise",
      the_connection_is_kept_unless_the_server_says_otherwise },
    { "the type is lower case and bare", the_type_is_lower_case_and_bare },
    { "what is not HTTP is refused", what_is_not_http_is_refused },
    { "an answer that breaks off is an error", an_answer_that_breaks_off_is_an_error },
    { "a head is bounded", a_head_is_bounded },
};
TEST_CASES(tests)
