#include "tests/lib/http_try.h"

#define HEAD "GET /x HTTP/1.1\r\n" TRY_HOST "Connection: close\r\n"

static void whoami(void *ctx, struct http_request *rq)
{
    const struct http_peer *p = http_peer(rq);
    ((struct trial *)ctx)->handled++;
    char *text = arena_printf(http_arena(rq), "at=%s proxied=%d secure=%d;", p->address, p->proxied,
                              p->secure);
    http_reply(rq, 200, "text/plain", str_of(text));
}

static void whom_a_trusted_proxy_names_is_calling(void)
{
    static const struct {
        const char *headers, *says;
    } rows[] = {
        { "", "at=127.0.0.1:" },
        { "X-Forwarded-For: 203.0.113.7\r\n", "at=203.0.113.7 proxied=1 secure=0;" },
        { "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 203.0.113.7\r\n", "at=203.0.113.7 " },
        { "x-forwarded-for: 1.1.1.1, 2001:db8::7, 10.0.0.1\r\n", "at=2001:db8::7 " },
        { "X-Forwarded-For: nonsense\r\n", "at=127.0.0.1:" },
        { "X-Forwarded-For: 203.0.113.7, nonsense\r\n", "at=127.0.0.1:" },
        { "X-Forwarded-Proto: https\r\n", "proxied=1 secure=1;" },
        { "X-Forwarded-Proto: http\r\n", "proxied=1 secure=0;" },
        { "X-Forwarded-Proto: https, http\r\n", "secure=0;" },
        { "X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http\r\n", "secure=0;" },
        { "X-Forwarded-Proto: http, HTTPS\r\n", "secure=1;" },
        { "X-Forwarded-Proto: httpsx\r\n", "secure=0;" },
    };
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = { .handler = whoami, .trusted_proxies = "127.0.0.1, 10.0.0.0/8" };
    trial_begin(&t, &c);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *got = try_ask(&t, &a, arena_printf(&a, HEAD "%s\r\n", rows[i].headers));
        if (!strstr(got, rows[i].says))
            test_fail(__FILE__, __LINE__, "%s gives %s", rows[i].headers, got);
    }
    trial_end(&t);
}

static void the_words_of_others_are_not_heard(void)
{
    static const char *const lists[] = { NULL, "", "10.0.0.0/8, ::1" };
    AUTO(arena_free) struct arena a = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct trial t;
        struct http_config c = { .handler = whoami, .trusted_proxies = lists[i] };
        trial_begin(&t, &c);
        char *got = try_ask(&t, &a,
                            HEAD "X-Forwarded-For: 203.0.113.7\r\n"
                                 "X-Forwarded-Proto: https\r\n\r\n");
        CHECK(strstr(got, "at=127.0.0.1:") && strstr(got, "proxied=0 secure=0;"));
        trial_end(&t);
    }
}

static void each_behind_a_proxy_has_a_limit_of_requests(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct http_config c = {
        .handler = whoami, .trusted_proxies = "127.0.0.1", .rate_per_s = 1, .rate_burst = 1
    };
    trial_begin(&t, &c);
    for (int i = 0; i < 5; i++) {
        char *got =
            try_ask(&t, &a, arena_printf(&a, HEAD "X-Forwarded-For: 203.0.113.%d\r\n\r\n", i));
        CHECK(strstr(got, "HTTP/1.1 200"));
    }
    char *got = NULL;
    for (int i = 0; i < 5 && !(got && strstr(got, " 429 ")); i++) /* one may pass meanwhile */
        got = try_ask(&t, &a, HEAD "X-Forwarded-For: 203.0.113.1\r\n\r\n");
    CHECK(strstr(got, "HTTP/1.1 429"));
    trial_end(&t);
}

static bool two_held(void *ctx)
{
    return ((struct trial *)ctx)->n_held == 2;
}

/* Of four connections one caller may have two; a proxy may have all. */
static void each_behind_a_proxy_has_a_share_of_the_connections(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct trial t;
    struct try_client cl[2];
    struct http_config c = { .handler = hold,
                             .trusted_proxies = "127.0.0.1",
                             .connections_max = 4 };
    trial_begin(&t, &c);
    for (size_t i = 0; i < ARRAY_LEN(cl); i++) {
        try_client_tcp(&cl[i], t.loop, http_port(t.server));
        try_send(&cl[i], HEAD "X-Forwarded-For: 203.0.113.7\r\n\r\n");
    }
    try_until(t.loop, two_held, &t);
    char *got = try_ask(&t, &a, HEAD "X-Forwarded-For: 203.0.113.7\r\n\r\n");
    CHECK(strstr(got, "HTTP/1.1 503") && strstr(got, "the limit is 2"));
    for (size_t i = 0; i < ARRAY_LEN(cl); i++)
        http_reply(t.held[i], 200, "text/plain", STR("done"));
    for (size_t i = 0; i < ARRAY_LEN(cl); i++) {
        CHECK(strstr(try_hear(&cl[i], NULL), "HTTP/1.1 200"));
        try_client_end(&cl[i]);
    }
    t.n_held = 0;
    struct try_client again; /* what was taken is given back */
    try_client_tcp(&again, t.loop, http_port(t.server));
    try_send(&again, HEAD "X-Forwarded-For: 203.0.113.7\r\n\r\n");
    try_until(t.loop, try_held, &t);
    http_reply(t.held[0], 200, "text/plain", STR("done"));
    CHECK(strstr(try_hear(&again, NULL), "HTTP/1.1 200"));
    try_client_end(&again);
    trial_end(&t);
}

static void a_wrong_list_of_proxies_is_refused(void)
{
    struct err e = { 0 };
    struct loop *l = loop_new();
    struct http_config c = { .handler = whoami, .host = "127.0.0.1", .trusted_proxies = "lab" };
    CHECK(!http_new(l, &c, &e) && e.code == ERR_INVALID);
    CHECK(http_check_proxies(STR("lab"), &e) < 0);
    CHECK(http_check_proxies(STR("127.0.0.1 fd00::/8"), &e) == 0);
    loop_free(l);
}

static const struct test tests[] = {
    { "whom a trusted proxy names is calling", whom_a_trusted_proxy_names_is_calling },
    { "the words of others are not heard", the_words_of_others_are_not_heard },
    { "each behind a proxy has a limit of requests", each_behind_a_proxy_has_a_limit_of_requests },
    { "each behind a proxy has a share of the connections",
      each_behind_a_proxy_has_a_share_of_the_connections },
    { "a wrong list of proxies is refused", a_wrong_list_of_proxies_is_refused },
};
TEST_CASES(tests)
