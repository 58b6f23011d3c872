#include "base/url.h"

#include "tests/lib/test.h"

static struct url good(const char *text)
{
    struct url u = { 0 };
    struct err e;
    if (url_parse(str_of(text), &u, &e) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", text, e.msg);
    return u;
}

static void an_address_is_taken_apart(void)
{
    struct url u = good("https://lab.example:8443/hub/back?x=1&y=?");
    CHECK(u.https && u.port == 8443 && str_is(u.host, "lab.example"));
    CHECK(str_is(u.path, "/hub/back") && u.has_query && str_is(u.query, "x=1&y=?"));
    u = good("HTTP://[::1]");
    CHECK(!u.https && u.port == 80 && str_is(u.host, "[::1]") && u.path.n == 0 && !u.has_query);
    u = good("https://a?q");
    CHECK(u.port == 443 && u.path.n == 0 && str_is(u.query, "q"));
    u = good("http://[::1]:99/");
    CHECK(u.port == 99 && str_is(u.path, "/"));
}

static void what_a_browser_could_read_otherwise_is_refused(void)
{
    static const char *const bad[] = {
        "",
        "lab",
        "//lab.example/x",
        "ftp://lab.example",
        "javascript:alert(1)",
        "https:/lab.example",
        "https://",
        "https:///x",
        "https://:80/x",
        "https://me@lab.example/",
        "https://me:pw@lab.example/",
        "https://lab.example#x",
        "https://lab.example/x#y",
        "https://lab.example\\@evil.example/",
        "https://lab example/",
        "https://lab.example/a b",
        "https://lab.example/\n",
        "https://lab.example/\x7f",
        "https://\xc3\xa4.example/",
        "https://lab.example:0/",
        "https://lab.example:/",
        "https://lab.example:65536/",
        "https://lab.example:80x/",
        "https://a:1:2/",
        "https://[::1/",
        "https://::1/",
        "https://[::1]x/",
        "https://[]/",
        "https://lab.example/\"",
        "https://lab%2eexample/",
        "https://a/{b}",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct url u = { .port = 77 };
        struct err e = { 0 };
        if (url_parse(str_of(bad[i]), &u, &e) == 0)
            test_fail(__FILE__, __LINE__, "taken: %s", bad[i]);
        CHECK(u.port == 77 && e.code == ERR_INVALID && e.hint[0]);
    }
}

static void origins_are_scheme_host_and_port(void)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        { "https://lab.example", "https://LAB.example:443/x?y", true },
        { "http://lab.example", "http://lab.example:80", true },
        { "https://lab.example", "http://lab.example", false },
        { "https://lab.example", "https://lab.example:8443", false },
        { "https://lab.example", "https://xlab.example", false },
        { "https://lab.example", "https://lab.example.evil", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct url a = good(rows[i].a), b = good(rows[i].b);
        CHECK(url_same_origin(&a, &b) == rows[i].same);
    }
}

static void loopback_is_known_by_its_spelling(void)
{
    static const struct {
        const char *text;
        bool is;
    } rows[] = {
        { "http://127.0.0.1:8000/x", true },     { "http://[::1]/x", true },
        { "http://LocalHost/", true },           { "http://127.0.0.2/", false },
        { "http://localhost.evil.org/", false }, { "http://127.0.0.1.evil.org/", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct url u = good(rows[i].text);
        CHECK(url_is_loopback(&u) == rows[i].is);
    }
}

static void values_of_a_query_are_encoded(void)
{
    AUTO(buf_free) struct buf b = BUF(100);
    url_encode(STR("a-b_c.d~e f&g=h/?%\xc3\xa4\r\n"), &b);
    CHECK_STR(b.p, "a-b_c.d~e%20f%26g%3Dh%2F%3F%25%C3%A4%0D%0A");
}

static const struct test tests[] = {
    { "an address is taken apart", an_address_is_taken_apart },
    { "what a browser could read otherwise is refused",
      what_a_browser_could_read_otherwise_is_refused },
    { "origins are scheme, host and port", origins_are_scheme_host_and_port },
    { "loopback is known by its spelling", loopback_is_known_by_its_spelling },
    { "values of a query are encoded", values_of_a_query_are_encoded },
};
TEST_CASES(tests)
