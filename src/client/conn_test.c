#include "client/conn.h"

#include "tests/lib/test.h"

static void a_socket_is_a_path(void)
{
    static const char *const same[] = { "unix:/run/x.sock", "unix:///run/x.sock", "/run/x.sock" };
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        struct address a;
        struct err e;
        CHECK(address_parse(same[i], &a, &e) == 0);
        CHECK_INT(a.kind, ADDRESS_UNIX);
        CHECK_STR(a.path, "/run/x.sock");
    }
}

static void a_url_has_a_host_and_perhaps_a_port(void)
{
    static const struct {
        const char *text, *host, *port;
        enum address_kind kind;
    } good[] = {
        { "http://desk1", "desk1", "80", ADDRESS_TCP },
        { "http://desk1:8080/", "desk1", "8080", ADDRESS_TCP },
        { "https://lab.example", "lab.example", "443", ADDRESS_TLS },
        { "https://[::1]:444", "::1", "444", ADDRESS_TLS },
        { "http://[fe80::1]", "fe80::1", "80", ADDRESS_TCP },
    };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct address a;
        struct err e;
        CHECK(address_parse(good[i].text, &a, &e) == 0);
        CHECK_INT(a.kind, good[i].kind);
        CHECK_STR(a.host, good[i].host);
        CHECK_STR(a.port, good[i].port);
    }
}

static void everything_else_is_refused_with_an_example(void)
{
    static const char *const bad[] = {
        "",           "desk1",       "ftp://desk1",    "http://",
        "http://:80", "http://a:0",  "http://a:65536", "http://a:b",
        "http://a/b", "http://me@a", "http://[::1",    "http://[::1]x",
        "unix:run",   "http://a:"
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct address a = { .kind = ADDRESS_TLS };
        struct err e;
        CHECK(address_parse(bad[i], &a, &e) == -1);
        CHECK_INT(e.code, ERR_INVALID);
        CHECK(strstr(e.hint, "unix:/run"));
        CHECK_INT(a.kind, ADDRESS_TLS);
    }
}

static void a_socket_path_that_no_socket_can_have_is_refused(void)
{
    char text[200] = "unix:/";
    struct address a;
    struct err e;
    memset(text + 6, 'a', 150);
    CHECK(address_parse(text, &a, &e) == -1);
    CHECK(strstr(e.msg, "longer than 107 bytes"));
}

static void a_server_that_is_not_there_is_named_with_what_to_do(void)
{
    struct address a;
    struct err e;
    CHECK(address_parse("unix:/nonexistent/api.sock", &a, &e) == 0);
    CHECK(conn_open(&a, 100, &e) == NULL);
    CHECK_INT(e.code, ERR_UNAVAILABLE);
    CHECK(strstr(e.msg, "/nonexistent/api.sock"));
    CHECK(strstr(e.hint, "nightshiftd"));
}

static const struct test tests[] = {
    { "a socket is a path", a_socket_is_a_path },
    { "a URL has a host and perhaps a port", a_url_has_a_host_and_perhaps_a_port },
    { "everything else is refused with an example", everything_else_is_refused_with_an_example },
    { "a socket path that no socket can have is refused",
      a_socket_path_that_no_socket_can_have_is_refused },
    { "a server that is not there is named with what to do",
      a_server_that_is_not_there_is_named_with_what_to_do },
};
TEST_CASES(tests)
