#include "tests/lib/http_try.h"

#define CLOSE TRY_HOST "Connection: close\r\n"
#define GET_CLOSE "GET /x HTTP/1.1\r\n" CLOSE "\r\n"
#define GET_KEEP "GET /x HTTP/1.1\r\n" TRY_HOST "\r\n"

static void hello(void *ctx, struct http_request *rq)
{
    ((struct trial *)ctx)->handled++;
    http_reply(rq, 200, "text/plain", STR("hello"));
}

static void every_reply_carries_the_usual_headers(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = hello };
    trial_begin(&t, &c);
    const char *all = try_ask(&t, &a, GET_CLOSE);
    CHECK(strncmp(all, "HTTP/1.1 200 OK\r\n", 17) == 0);
    CHECK(strstr(all, "\r\nServer: nightshift\r\n"));
    CHECK(strstr(all, "\r\nX-Content-Type-Options: nosniff\r\n"));
    CHECK(strstr(all, "\r\nReferrer-Policy: no-referrer\r\n"));
    CHECK(strstr(all, "\r\nCache-Control: no-store\r\n"));
    CHECK(strstr(all, "\r\nContent-Type: text/plain\r\n"));
    CHECK(strstr(all, "\r\nContent-Length: 5\r\n") && strstr(all, "\r\n\r\nhello"));
    CHECK(!strstr(all, "libmicrohttpd"));
    trial_end(&t);
}

static void own_headers(void *ctx, struct http_request *rq)
{
    (void)ctx;
    http_add_header(rq, "cache-control", "max-age=60");
    http_add_header(rq, "Set-Cookie", "a=1");
    http_add_header(rq, "Set-Cookie", "b=2");
    http_add_header(rq, "X-Evil", "1\r\nSet-Cookie: stolen=1");
    http_add_header(rq, "X-Evil", "1\nX-Other: 2");
    http_add_header(rq, "X: Evil", "1");
    http_add_header(rq, "X-Evil\r\nX-Worse", "1");
    http_add_header(rq, "", "1");
    http_reply(rq, 201, NULL, STR("not sent"));
}

static void a_handler_may_add_and_override_headers(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = own_headers };
    trial_begin(&t, &c);
    const char *all = try_ask(&t, &a, GET_CLOSE);
    CHECK(strncmp(all, "HTTP/1.1 201 Created\r\n", 22) == 0);
    CHECK(strstr(all, "\r\ncache-control: max-age=60\r\n") && !strstr(all, "no-store"));
    CHECK(strstr(all, "\r\nSet-Cookie: a=1\r\n") && strstr(all, "\r\nSet-Cookie: b=2\r\n"));
    CHECK(strstr(all, "\r\nContent-Length: 0\r\n") && !strstr(all, "not sent"));
    /* Values that would begin a header of their own are left out. */
    CHECK(!strstr(all, "vil") && !strstr(all, "stolen") && !strstr(all, "X-Other"));
    CHECK(!strstr(all, "Worse"));
    trial_end(&t);
}

static void head_has_no_body(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .handler = hello };
    trial_begin(&t, &c);
    try_client_tcp(&cl, t.loop, http_port(t.server));
    try_send(&cl, "HEAD /x HTTP/1.1\r\n" TRY_HOST "\r\n" GET_CLOSE);
    const char *all = try_hear(&cl, NULL);
    CHECK(strstr(all, "Content-Length: 5\r\n"));
    const char *end = strstr(all, "\r\n\r\n");
    CHECK(end && strncmp(end + 4, "HTTP/1.1 200", 12) == 0); /* the next reply, and no body */
    try_client_end(&cl);
    trial_end(&t);
}

static void a_large_body_comes_whole(void *ctx, struct http_request *rq)
{
    (void)ctx;
    char *large = arena_alloc(http_arena(rq), 5000000, 1);
    memset(large, 'x', 5000000);
    http_reply(rq, 200, "text/plain", (struct str){ large, 5000000 });
}

static void large_replies_come_whole(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .handler = a_large_body_comes_whole };
    trial_begin(&t, &c);
    try_client_tcp(&cl, t.loop, http_port(t.server));
    try_send(&cl, GET_CLOSE);
    try_hear(&cl, NULL);
    const char *body = strstr(cl.in.p, "\r\n\r\n") + 4;
    CHECK_INT(strlen(body), 5000000);
    CHECK_INT(strspn(body, "x"), 5000000);
    try_client_end(&cl);
    trial_end(&t);
}

static void not_found(void *ctx, struct http_request *rq)
{
    (void)ctx;
    struct err e;
    err_set(&e, ERR_NOT_FOUND, "no job 7");
    err_hint(&e, "see them all with: nightshift ps");
    http_reply_error(rq, &e, "job");
}

static void an_error_is_told_as_a_problem(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = not_found };
    trial_begin(&t, &c);
    const char *all = try_ask(&t, &a, GET_CLOSE);
    CHECK(strncmp(all, "HTTP/1.1 404 Not Found\r\n", 24) == 0);
    CHECK(strstr(all, "Content-Type: application/problem+json\r\n"));
    CHECK(strstr(all, "\r\n\r\n{\"type\":\"about:blank\",\"title\":\"Not Found\","
                      "\"status\":404,\"code\":\"not_found\",\"detail\":\"no job 7\","
                      "\"hint\":\"see them all with: nightshift ps\",\"field\":\"job\"}"));
    trial_end(&t);
}

static void broken(void *ctx, struct http_request *rq)
{
    (void)ctx;
    struct err e;
    err_set(&e, ERR_INTERNAL, "the secret table is corrupt");
    http_reply_error(rq, &e, NULL);
}

static void an_internal_error_is_told_to_the_log_only(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    struct log *log = log_new(f, LOG_INFO_, LOG_TEXT, clock_wall());
    struct http_config c = { .handler = broken, .log = log };
    trial_begin(&t, &c);
    const char *all = try_ask(&t, &a, GET_CLOSE);
    trial_end(&t);
    fflush(f);
    CHECK(strncmp(all, "HTTP/1.1 500 ", 13) == 0 && !strstr(all, "secret"));
    const char *id = strstr(text, "id=");
    CHECK(id && strstr(text, "http.internal") && strstr(text, "secret table"));
    char *shown = arena_printf(&a, "(%.*s)", (int)strcspn(id + 3, " "), id + 3);
    CHECK(strstr(all, shown));
    log_free(log);
    fclose(f);
    free(text);
}

static void a_reply_may_come_later(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .handler = hold };
    trial_begin(&t, &c);
    try_client_tcp(&cl, t.loop, http_port(t.server));
    try_send(&cl, "POST /late HTTP/1.1\r\n" TRY_HOST "X-Given: g\r\nContent-Length: 3\r\n\r\nabc"
                  "GET /next HTTP/1.1\r\n" TRY_HOST "\r\n");
    try_until(t.loop, try_held, &t);
    try_turns(t.loop);
    CHECK(cl.in.n == 0 && t.n_held == 1); /* the second waits for its turn */
    CHECK_INT(http_open_requests(t.server), 1);
    CHECK_STR(http_path(t.held[0]), "/late");
    CHECK_STR(http_header(t.held[0], "X-Given"), "g");
    CHECK(str_is(http_body(t.held[0]), "abc"));
    t.n_held = 0;
    struct http_request *first = t.held[0];
    http_reply(first, 200, "text/plain", STR("first"));
    try_hear(&cl, "first");
    try_until(t.loop, try_held, &t);
    http_reply(t.held[0], 200, "text/plain", STR("second"));
    try_hear(&cl, "second");
    try_until(t.loop, try_idle, &t);
    try_client_end(&cl);
    trial_end(&t);
}

static void many_may_be_pending_and_end_in_any_order(void)
{
    struct trial t;
    struct try_client cl[5];
    struct http_config c = { .handler = hold };
    trial_begin(&t, &c);
    for (size_t i = 0; i < ARRAY_LEN(cl); i++) {
        try_client_tcp(&cl[i], t.loop, http_port(t.server));
        try_send(&cl[i], GET_KEEP);
        t.n_held = 0;
        try_until(t.loop, try_held, &t);
        t.held[1 + i] = t.held[0];
    }
    static const size_t order[] = { 3, 0, 4, 2, 1 };
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        char text[16];
        snprintf(text, sizeof text, "body %zu", order[i]);
        http_reply(t.held[1 + order[i]], 200, "text/plain", str_of(text));
        try_hear(&cl[order[i]], text);
        try_client_end(&cl[order[i]]);
    }
    trial_end(&t);
}

static void a_reply_to_nobody_is_harmless(void)
{
    struct trial t;
    struct try_client cl;
    struct http_config c = { .handler = hold };
    trial_begin(&t, &c);
    for (int reset = 0; reset < 2; reset++) {
        try_client_tcp(&cl, t.loop, http_port(t.server));
        try_send(&cl, GET_KEEP);
        try_until(t.loop, try_held, &t);
        struct linger now = { .l_onoff = reset };
        CHECK(setsockopt(cl.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0);
        try_client_end(&cl); /* the client is gone, the request still stands */
        try_turns(t.loop);
        CHECK_STR(http_path(t.held[0]), "/x");
        CHECK_STR(http_header(t.held[0], "Host"), "t");
        http_reply(t.held[0], 200, "text/plain", STR("hello?"));
        try_until(t.loop, try_idle, &t);
        t.n_held = 0;
    }
    trial_end(&t);
}

static void twice(void *ctx, struct http_request *rq)
{
    (void)ctx;
    http_reply(rq, 200, "text/plain", STR("first"));
    http_reply(rq, 500, "text/plain", STR("second"));
    http_stream_begin(rq, 200, "text/plain", NULL, NULL);
}

static void the_first_answer_counts(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = twice };
    trial_begin(&t, &c);
    const char *all = try_ask(&t, &a, GET_CLOSE);
    CHECK(strncmp(all, "HTTP/1.1 200", 12) == 0 && strstr(all, "\r\n\r\nfirst"));
    CHECK(!strstr(all, "second"));
    trial_end(&t);
}

static const struct test tests[] = {
    { "every reply carries the usual headers, and no banner",
      every_reply_carries_the_usual_headers },
    { "a handler may add and override headers, but not inject them",
      a_handler_may_add_and_override_headers },
    { "the reply to HEAD has no body", head_has_no_body },
    { "a large reply comes whole", large_replies_come_whole },
    { "an error is told as a problem", an_error_is_told_as_a_problem },
    { "an internal error is told to the log only", an_internal_error_is_told_to_the_log_only },
    { "a reply may come later", a_reply_may_come_later },
    { "many requests may be pending and end in any order",
      many_may_be_pending_and_end_in_any_order },
    { "a reply to a client that went away is harmless", a_reply_to_nobody_is_harmless },
    { "only the first answer counts", the_first_answer_counts },
};
TEST_CASES(tests)
