#include "notice/rule.h"

#include "tests/lib/test.h"

static void pauses_grow_up_to_an_hour(void)
{
    CHECK_INT(notice_pause_ms(10000, 0), 10000);
    CHECK_INT(notice_pause_ms(10000, 1), 10000);
    CHECK_INT(notice_pause_ms(10000, 2), 20000);
    CHECK_INT(notice_pause_ms(10000, 3), 40000);
    CHECK_INT(notice_pause_ms(10000, 9), 2560000);
    CHECK_INT(notice_pause_ms(10000, 10), 3600000);
    CHECK_INT(notice_pause_ms(10000, UINT32_MAX), 3600000);
    CHECK_INT(notice_pause_ms(0, 1), 1);
    CHECK_INT(notice_pause_ms(INT64_C(1) << 60, 5), 3600000);
}

static void the_first_goes_soon_and_the_next_after_a_while(void)
{
    CHECK_INT(notice_due_ms(1000000, 0, 60000), 1002000);
    CHECK_INT(notice_due_ms(1000000, 999000, 60000), 1059000);
    CHECK_INT(notice_due_ms(1000000, 900000, 60000), 1002000);
    CHECK_INT(notice_due_ms(1000000, 0, 100), 1000100);
    CHECK_INT(notice_due_ms(1000000, 0, 0), 1000000);
    CHECK_INT(notice_due_ms(1000000, 99000000, 60000), 1120000); /* the clock was set back */
    CHECK_INT(notice_ready_ms(1060000, 1000000, 60000), 1060000);
    CHECK_INT(notice_ready_ms(1060001, 1000000, 60000), 1000000);
}

static void addresses_of_mail(void)
{
    static const char *const good[] = { "ana@lab.example", "a.b+c@x-y.example", "A_1@localhost" };
    static const char *const bad[] = { "",
                                       "ana",
                                       "@lab",
                                       "ana@",
                                       "a b@lab.example",
                                       "ana@lab.example\r\nBcc: eve@x",
                                       "ana@lab.example,eve@x.example",
                                       "<ana@lab.example>",
                                       "ana@lab@example",
                                       "an\xc3\xa4@lab.example",
                                       ".ana@lab.example",
                                       "a..b@lab.example",
                                       "ana@.example",
                                       "ana@-lab.example",
                                       "\"a b\"@lab.example" };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct err e = { 0 };
        CHECK(mail_check_address(str_of(good[i]), &e) == 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = { 0 };
        CHECK(mail_check_address(str_of(bad[i]), &e) < 0);
        CHECK(e.code == ERR_INVALID && e.hint[0]);
    }
    struct err e = { 0 };
    CHECK(mail_check_address((struct str){ "a@b\0c", 5 }, &e) < 0);
    struct str a = STR("ana@gpu.Lab.example");
    CHECK(mail_domain_listed(a, STR("")) && mail_domain_listed(a, STR("x.example lab.example")));
    CHECK(mail_domain_listed(a, STR("gpu.lab.example")) &&
          !mail_domain_listed(a, STR("ab.example")));
}

static void addresses_of_webhooks(void)
{
    static const struct {
        const char *url;
        enum err_code of[WEBHOOK_REACH_COUNT]; /* public, network, any */
    } rows[] = {
        { "https://chat.example/hook?x=1", { 0, ERR_NONE, ERR_NONE, ERR_NONE } },
        { "http://8.8.8.8/", { 0, ERR_NONE, ERR_NONE, ERR_NONE } },
        { "https://10.1.2.3/x", { 0, ERR_DENIED, ERR_NONE, ERR_NONE } },
        { "http://127.0.0.1:9/x", { 0, ERR_DENIED, ERR_DENIED, ERR_NONE } },
        { "http://localhost/x", { 0, ERR_DENIED, ERR_DENIED, ERR_NONE } },
        { "http://[::1]/x", { 0, ERR_DENIED, ERR_DENIED, ERR_NONE } },
        { "http://[::ffff:127.0.0.1]/x", { 0, ERR_DENIED, ERR_DENIED, ERR_NONE } },
        { "http://169.254.169.254/latest", { 0, ERR_DENIED, ERR_DENIED, ERR_NONE } },
        { "ftp://lab.example/", { 0, ERR_INVALID, ERR_INVALID, ERR_INVALID } },
        { "https://u:p@lab.example/", { 0, ERR_INVALID, ERR_INVALID, ERR_INVALID } },
        { "file:///etc/passwd", { 0, ERR_INVALID, ERR_INVALID, ERR_INVALID } },
        { "https://lab.example/\r\nx", { 0, ERR_INVALID, ERR_INVALID, ERR_INVALID } },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int r = WEBHOOK_NONE; r < WEBHOOK_REACH_COUNT; r++) {
            struct err e = { 0 };
            int rc = webhook_check_url(str_of(rows[i].url), (enum webhook_reach)r, &e);
            CHECK_INT(rc, e.code ? -1 : 0);
            CHECK_INT(e.code, r == WEBHOOK_NONE ? ERR_CONFLICT : rows[i].of[r]);
        }
}

static const struct test tests[] = {
    { "pauses between tries grow up to an hour", pauses_grow_up_to_an_hour },
    { "the first goes soon and the next after a while",
      the_first_goes_soon_and_the_next_after_a_while },
    { "addresses of mail that could do more than name somebody are refused", addresses_of_mail },
    { "addresses of webhooks are refused by the administrator's choice", addresses_of_webhooks },
};
TEST_CASES(tests)
