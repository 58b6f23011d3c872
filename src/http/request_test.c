#include "tests/lib/http_try.h"

/* Says back what it saw. */
static void echo(void *ctx, struct http_request *rq)
{
    struct trial *t = ctx;
    AUTO(buf_free) struct buf out = BUF(100000);
    const char *key, *value;
    t->handled++;
    buf_printf(&out, "%s %s", http_method(rq), http_path(rq));
    for (size_t i = 0; http_query_next(rq, i, &key, &value); i++)
        buf_printf(&out, " %s=%s", key, value);
    if (http_header(rq, "x-given"))
        buf_printf(&out, " given:%s", http_header(rq, "x-given"));
    if (http_cookie(rq, "session"))
        buf_printf(&out, " session:%s", http_cookie(rq, "session"));
    buf_printf(&out, " [%zu]", http_body(rq).n);
    buf_add(&out, http_body(rq));
    http_reply(rq, 200, "text/plain", buf_str(&out));
}

/* A whole conversation; what came back after the last blank line is the last reply's body. */
static const char *says(struct trial *t, struct arena *a, const char *request)
{
    const char *all = try_ask(t, a, request);
    const char *body = strstr(all, "\r\n\r\n");
    CHECK(body);
    return body + 4;
}

static void expect(struct trial *t, const char *request, const char *status, const char *detail)
{
    AUTO(arena_free) struct arena a = { 0 };
    int handled = t->handled;
    const char *all = try_ask(t, &a, request);
    if (strncmp(all, status, strlen(status)) != 0 || !strstr(all, detail))
        test_fail(__FILE__, __LINE__, "wanted %s and '%s' in: %s", status, detail, all);
    CHECK(strstr(all, "Content-Type: application/problem+json"));
    CHECK(strstr(all, "X-Content-Type-Options: nosniff"));
    CHECK_INT(t->handled, handled); /* the handler saw nothing of it */
}

#define CLOSE TRY_HOST "Connection: close\r\n"

static void a_handler_sees_the_request(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = echo };
    trial_begin(&t, &c);
    CHECK_STR(says(&t, &a,
                   "GET /a%20b/c?x=1+2&y HTTP/1.1\r\n" CLOSE
                   "X-Given: yes\r\nCookie: a=b; session=s3\r\n\r\n"),
              "GET /a b/c x=1 2 y= given:yes session:s3 [0]");
    CHECK_STR(says(&t, &a, "POST /p HTTP/1.1\r\n" CLOSE "Content-Length: 5\r\n\r\nab\ncd"),
              "POST /p [5]ab\ncd");
    CHECK_STR(says(&t, &a, "DELETE /p HTTP/1.0\r\n\r\n"), "DELETE /p [0]");
    trial_end(&t);
}

static void every_method_is_handled_or_refused(void)
{
    static const char *const good[] = { "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS" };
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = echo };
    trial_begin(&t, &c);
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        char *rq = arena_printf(&a, "%s /m HTTP/1.1\r\n" CLOSE "\r\n", good[i]);
        CHECK_STR(says(&t, &a, rq), arena_printf(&a, "%s /m [0]", good[i]));
    }
    expect(&t, "TRACE / HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 405", "Allow: GET, POST");
    expect(&t, "CONNECT a:1 HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 405", "'CONNECT'");
    expect(&t, "BREW / HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 405", "'BREW' is not offered");
    trial_end(&t);
}

static void a_body_in_chunks_is_whole(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = echo };
    trial_begin(&t, &c);
    CHECK_STR(says(&t, &a,
                   "POST /p HTTP/1.1\r\n" CLOSE "Transfer-Encoding: chunked\r\n\r\n"
                   "3\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n"),
              "POST /p [5]abcde");
    trial_end(&t);
}

static void a_body_that_comes_in_pieces_is_whole(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .handler = echo };
    trial_begin(&t, &c);
    try_client_tcp(&cl, t.loop, http_port(t.server));
    const char *pieces[] = { "PO",    "ST /p HT", "TP/1.1\r\nHo", "st: t\r\nContent-Length: 6\r\n",
                             "\r\na", "bc",       "def" };
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        CHECK_INT(t.handled, 0);
        try_send(&cl, pieces[i]);
        try_turns(t.loop);
    }
    try_hear(&cl, "POST /p [6]abcdef");
    CHECK_INT(t.handled, 1);
    try_client_end(&cl);
    trial_end(&t);
}

static void requests_may_follow_each_other(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .handler = echo };
    trial_begin(&t, &c);
    try_client_tcp(&cl, t.loop, http_port(t.server));
    for (int i = 0; i < 3; i++) { /* one after the other, on one connection */
        try_send(&cl, "GET /again HTTP/1.1\r\n" TRY_HOST "\r\n");
        CHECK(!strstr(try_hear(&cl, "GET /again [0]"), "Connection: close"));
        try_forget(&cl);
    }
    try_send(&cl, "GET /1 HTTP/1.1\r\n" TRY_HOST "\r\n" /* and without waiting */
                  "POST /2 HTTP/1.1\r\n" TRY_HOST "Content-Length: 2\r\n\r\nhi"
                  "GET /3 HTTP/1.1\r\n" TRY_HOST "\r\n");
    const char *all = try_hear(&cl, "GET /3 [0]");
    CHECK(strstr(all, "GET /1 [0]") < strstr(all, "POST /2 [2]hi"));
    CHECK(strstr(all, "POST /2 [2]hi") < strstr(all, "GET /3 [0]"));
    CHECK_INT(t.handled, 6);
    try_client_end(&cl);
    trial_end(&t);
}

static void a_client_that_asks_first_is_told_to_go_on(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .handler = echo };
    trial_begin(&t, &c);
    try_client_tcp(&cl, t.loop, http_port(t.server));
    try_send(&cl, "POST /p HTTP/1.1\r\n" TRY_HOST "Content-Length: 2\r\n"
                  "Expect: 100-continue\r\n\r\n");
    try_hear(&cl, "HTTP/1.1 100 Continue\r\n\r\n");
    CHECK_INT(t.handled, 0);
    try_send(&cl, "ok");
    try_hear(&cl, "POST /p [2]ok");
    try_client_end(&cl);
    trial_end(&t);
}

static void a_body_that_is_too_large_is_refused_at_once(void)
{
    struct trial t;
    struct http_config c = { .handler = echo, .body_max = 2048 };
    trial_begin(&t, &c);
    /* Nothing of the body is sent: the length alone decides, also for who asks first. */
    expect(&t, "POST /p HTTP/1.1\r\n" TRY_HOST "Content-Length: 2049\r\n\r\n", "HTTP/1.1 413",
           "the body is larger than 2Ki");
    expect(&t,
           "POST /p HTTP/1.1\r\n" TRY_HOST "Content-Length: 999999\r\n"
           "Expect: 100-continue\r\n\r\n",
           "HTTP/1.1 413", "\"code\":\"too_large\"");
    trial_end(&t);
}

static char *chunks(struct arena *a, size_t n, const char *end)
{
    struct buf b = BUF(8u << 20);
    buf_addz(&b, "POST /p HTTP/1.1\r\n" CLOSE "Transfer-Encoding: chunked\r\n\r\n");
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "400\r\n%01024d\r\n", 7);
    buf_addz(&b, end);
    char *copy = arena_strndup(a, b.p, b.n);
    buf_free(&b);
    return copy;
}

static void a_body_in_chunks_is_bounded_too(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = echo, .body_max = 2048 };
    trial_begin(&t, &c);
    CHECK(strncmp(says(&t, &a, chunks(&a, 2, "0\r\n\r\n")), "POST /p [2048]000", 17) == 0);
    expect(&t, chunks(&a, 3, "0\r\n\r\n"), "HTTP/1.1 413", "larger than 2Ki");
    expect(&t, chunks(&a, 500, "0\r\n\r\n"), "HTTP/1.1 413", "larger than 2Ki");
    expect(&t, chunks(&a, 3000, ""), "HTTP/1.1 413", "larger than 2Ki"); /* it never ends */
    trial_end(&t);
}

/* What is being sent counts until it is answered, over all connections of one caller. */
static void bodies_of_one_caller_are_bounded_together(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = echo, .body_max = 2048 };
    struct try_client held[8];
    trial_begin(&t, &c);
    for (size_t i = 0; i < ARRAY_LEN(held); i++) {
        try_client_tcp(&held[i], t.loop, http_port(t.server));
        try_send(&held[i],
                 arena_printf(
                     &a, "POST /p HTTP/1.1\r\n" TRY_HOST "Content-Length: 2048\r\n\r\n%01999d", 7));
        try_turns(t.loop);
    }
    const char *half =
        arena_printf(&a, "POST /p HTTP/1.1\r\n" CLOSE "Content-Length: 1024\r\n\r\n%01024d", 7);
    expect(&t, half, "HTTP/1.1 503", "you are sending more than 16Ki at once");
    try_send(&held[0], arena_printf(&a, "%049d", 7));
    try_hear(&held[0], "POST /p [2048]");
    CHECK(strncmp(says(&t, &a, half), "POST /p [1024]", 14) == 0);
    for (size_t i = 0; i < ARRAY_LEN(held); i++)
        try_client_end(&held[i]);
    trial_end(&t);
}

static void a_line_that_makes_no_sense_is_refused(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = echo };
    trial_begin(&t, &c);
    expect(&t, "GET /%zz HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 400", "hexadecimal");
    expect(&t, "GET /a%00b HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 400", "zero byte");
    expect(&t, "GET /a?b=%f HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 400", "hexadecimal");
    expect(&t, "GET http://h/ HTTP/1.1\r\n" CLOSE "\r\n", "HTTP/1.1 400", "begin with '/'");
    expect(&t, "POST /%zz HTTP/1.1\r\n" CLOSE "Content-Length: 3\r\n\r\nabc", "HTTP/1.1 400",
           "hexadecimal");
    expect(&t, arena_printf(&a, "GET /%09000d HTTP/1.1\r\n" CLOSE "\r\n", 1), "HTTP/1.1 414",
           "the limit is 8192");
    expect(&t, arena_printf(&a, "GET / HTTP/1.1\r\n" CLOSE "X-Large: %017000d\r\n\r\n", 1),
           "HTTP/1.1 431", "the limit is 16384");
    trial_end(&t);
}

static void what_is_no_http_is_turned_away(void)
{
    static const char *const garbage[] = {
        "\x16\x03\x01\x02\x01\x01\x01\xfc\x03\x03\r\n\r\n",
        "hello\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: t\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", /* without a host */
        "POST / HTTP/1.1\r\n" CLOSE "Content-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\n" CLOSE "Content-Length: 99999999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\n" CLOSE "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        /* Two lengths: whoever stands between us and the client may believe the other one. */
        "POST / HTTP/1.1\r\n" CLOSE "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\n\r\n",
        "POST / HTTP/1.1\r\n" CLOSE "Content-Length: 0\r\nContent-Length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\n" CLOSE "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\n" CLOSE "Transfer-Encoding: chunked\r\n"
        "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\n" CLOSE "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\n" CLOSE "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\n" CLOSE "Host: other\r\n\r\n",
    };
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = echo };
    trial_begin(&t, &c);
    for (size_t i = 0; i < ARRAY_LEN(garbage); i++)
        CHECK(!strstr(try_ask(&t, &a, garbage[i]), " 200 "));
    /* More than fits into a connection's memory: the library refuses it, before us. */
    CHECK(strstr(try_ask(&t, &a, arena_printf(&a, "GET /%099999d HTTP/1.1\r\n\r\n", 1)), " 414 "));
    CHECK_INT(t.handled, 0);
    CHECK_STR(says(&t, &a, "GET / HTTP/1.1\r\n" CLOSE "\r\n"), "GET / [0]");
    trial_end(&t);
}

static const struct test tests[] = {
    { "what one caller sends at once is bounded over all connections",
      bodies_of_one_caller_are_bounded_together },
    { "a handler sees method, path, query, headers, cookies and body", a_handler_sees_the_request },
    { "every method is handled or refused", every_method_is_handled_or_refused },
    { "a body in chunks arrives whole", a_body_in_chunks_is_whole },
    { "a request that comes in pieces is handled once, whole",
      a_body_that_comes_in_pieces_is_whole },
    { "requests may follow each other on a connection, waiting or not",
      requests_may_follow_each_other },
    { "a client that asks first is told to go on", a_client_that_asks_first_is_told_to_go_on },
    { "a body that says it is too large is refused at once",
      a_body_that_is_too_large_is_refused_at_once },
    { "a body in chunks is bounded too, even one that never ends",
      a_body_in_chunks_is_bounded_too },
    { "a request that makes no sense is refused with a reason",
      a_line_that_makes_no_sense_is_refused },
    { "what is no HTTP is turned away", what_is_no_http_is_turned_away },
};
TEST_CASES(tests)
