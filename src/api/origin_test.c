#include "api/origin.h"

#include "tests/lib/test.h"

#define US "https://gpu.lab.example/ns"

struct row {
    struct origin_facts f;
    bool passes;
};

static void try_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct origin_facts f = rows[i].f;
        struct err e = { 0 };
        f.method = f.method ? f.method : "POST";
        if ((origin_check(&f, &e) == 0) != rows[i].passes)
            test_fail(__FILE__, __LINE__, "row %zu", i);
        if (!rows[i].passes && (e.code != ERR_DENIED || !e.hint[0] || !e.field[0]))
            test_fail(__FILE__, __LINE__, "row %zu: its error", i);
    }
}

static void origin_is_the_address_of_people_or_the_host(void)
{
    static const struct row rows[] = {
        { { .origin = "https://gpu.lab.example", .external_url = US }, true },
        { { .origin = "https://GPU.lab.example:443", .external_url = US }, true },
        { { .origin = "http://gpu.lab.example", .external_url = US }, false },
        { { .origin = "https://gpu.lab.example:8443", .external_url = US }, false },
        { { .origin = "https://evil.example", .external_url = US }, false },
        { { .origin = "https://gpu.lab.example.evil.example", .external_url = US }, false },
        { { .origin = "null", .external_url = US }, false },
        { { .origin = "", .external_url = US }, false },
        { { .origin = "http://desk1:7433", .host = "desk1:7433" }, true },
        { { .origin = "http://desk1:7433", .host = "desk1:7433", .external_url = US }, true },
        { { .origin = "http://desk1", .host = "desk1:80" }, true },
        { { .origin = "https://desk1", .host = "desk1" }, true },
        { { .origin = "http://desk1", .host = "desk1", .secure = true }, false },
        { { .origin = "https://desk1", .host = "desk1", .secure = true }, true },
        { { .origin = "http://desk1:7434", .host = "desk1:7433" }, false },
        { { .origin = "http://evil.example", .host = "desk1:7433" }, false },
        { { .origin = "http://evil.example", .host = "evil.example/desk1" }, false },
        { { .origin = "http://desk1" }, false },
    };
    try_rows(rows, ARRAY_LEN(rows));
}

static void without_origin_the_browser_says_it_otherwise(void)
{
    static const struct row rows[] = {
        { { .fetch_site = "same-origin" }, true },
        { { .fetch_site = "none" }, true },
        { { .fetch_site = "same-site" }, false },
        { { .fetch_site = "cross-site" }, false },
        { { .fetch_site = "cross-site", .json = true }, false },
        { { .fetch_site = "nonsense" }, false },
        { { .referer = US "/page?x=1", .external_url = US }, true },
        { { .referer = "https://evil.example/?" US, .external_url = US }, false },
        { { .referer = "http://desk1/page", .host = "desk1" }, true },
        { { .referer = "nonsense", .host = "desk1", .json = true }, false },
        /* what decides first decides alone */
        { { .origin = "https://evil.example", .fetch_site = "same-origin", .host = "desk1" },
          false },
        { { .fetch_site = "cross-site", .referer = "http://desk1/", .host = "desk1" }, false },
    };
    try_rows(rows, ARRAY_LEN(rows));
}

static void without_a_word_it_must_be_what_no_page_can_send_unasked(void)
{
    static const struct row rows[] = {
        { { .method = "POST", .json = true }, true },
        { { .method = "POST" }, false },
        { { .method = "DELETE" }, true },
        { { .method = "PUT" }, true },
        { { .method = "PATCH" }, true },
    };
    try_rows(rows, ARRAY_LEN(rows));
}

static const struct test tests[] = {
    { "Origin is the address of people, or the host", origin_is_the_address_of_people_or_the_host },
    { "without Origin the browser says it otherwise",
      without_origin_the_browser_says_it_otherwise },
    { "without a word it must be what no page can send unasked",
      without_a_word_it_must_be_what_no_page_can_send_unasked },
};
TEST_CASES(tests)
