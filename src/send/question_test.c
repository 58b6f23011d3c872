#include "send/question.h"

#include "tests/lib/test.h"

static int ask(const char *text, struct question *q, struct json_doc **d, struct err *e)
{
    *e = (struct err){ 0 };
    *d = json_read(str_of(text), e);
    CHECK(*d != NULL);
    return question_read(json_root(*d), q, e);
}

static void a_question_is_read_whole(void)
{
    AUTO(json_free_p) struct json_doc *d = NULL, *h = NULL;
    struct question q;
    struct err e;
    CHECK(ask("{\"do\":\"mail\",\"server\":\"smtps://"
              "m\",\"from\":\"a@b\",\"to\":\"c@d\",\"login\":\"\","
              "\"body\":\"x\\r\\ny\",\"plain\":true}",
              &q, &d, &e) == 0);
    CHECK(q.way == SEND_MAIL && q.plain && q.timeout_ms == 30000 && !q.login && q.body.n == 4);
    CHECK_STR(q.server, "smtps://m");
    CHECK(ask("{\"do\":\"webhook\",\"url\":\"https://"
              "x\",\"id\":\"1\",\"body\":\"{}\",\"timeout_ms\":5000}",
              &q, &h, &e) == 0);
    CHECK(q.way == SEND_WEBHOOK && q.reach == IP_PUBLIC && q.timeout_ms == 5000 && !q.secret);
}

static void what_could_end_a_line_is_refused(void)
{
    static const char *const rows[] = {
        "[]",
        "{}",
        "{\"do\":\"fax\"}",
        "{\"do\":\"mail\"}",
        ("{\"do\":\"mail\",\"server\":\"s\",\"from\":\"a\",\"to\":\"b\\r\\nRCPT "
         "TO:<e@x>\",\"body\":\"\"}"),
        "{\"do\":\"mail\",\"server\":\"s\",\"from\":\"a\\u0000\",\"to\":\"b\",\"body\":\"\"}",
        "{\"do\":\"mail\",\"server\":\"s\",\"from\":\"a\",\"to\":\"b\",\"body\":5}",
        "{\"do\":\"webhook\",\"url\":\"https://x\",\"id\":\"a\\nb\",\"body\":\"\"}",
        "{\"do\":\"webhook\",\"url\":\"https://x\",\"id\":\"a\"}",
        "{\"do\":\"webhook\",\"url\":\"https://x\",\"id\":\"a\",\"body\":\"\",\"reach\":\"all\"}",
        ("{\"do\":\"webhook\",\"url\":\"https://"
         "x\",\"id\":\"a\",\"body\":\"\",\"timeout_ms\":999999}"),
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO(json_free_p) struct json_doc *d = NULL;
        struct question q;
        struct err e;
        CHECK(ask(rows[i], &q, &d, &e) < 0);
        CHECK_INT(e.code, ERR_INVALID);
    }
}

static const struct test tests[] = {
    { "a question is read whole", a_question_is_read_whole },
    { "what could end a line of a protocol is refused", what_could_end_a_line_is_refused },
};
TEST_CASES(tests)
