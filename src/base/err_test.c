#include "base/err.h"

#include <string.h>

#include "tests/lib/test.h"

static void every_code_has_a_row(void)
{
    for (int c = 0; c < ERR_CODE_COUNT; c++) {
        const struct err_info *i = err_info((enum err_code)c);
        CHECK(i->slug && i->slug[0]);
        CHECK(i->http_status >= 200 && i->http_status < 600);
        CHECK((i->exit_code == 0) == (c == ERR_NONE));
    }
    CHECK_STR(err_info((enum err_code)99)->slug, "internal");
}

static void set_fills_and_returns_minus_one(void)
{
    struct err e = { .hint = "old" };
    CHECK_INT(err_set(&e, ERR_QUOTA, "%d of %d left", 4, 8), -1);
    CHECK_STR(e.msg, "4 of 8 left");
    CHECK_STR(e.hint, "");
    CHECK(e.code == ERR_QUOTA);
    CHECK_INT(err_hint(&e, "ask for %d", 4), -1);
    CHECK_STR(e.hint, "ask for 4");
}

static void wrap_keeps_code_and_hint(void)
{
    struct err e;
    err_set(&e, ERR_NOT_FOUND, "no file /x");
    err_hint(&e, "make it");
    CHECK_INT(err_wrap(&e, "reading %s", "policy"), -1);
    CHECK_STR(e.msg, "reading policy: no file /x");
    CHECK_STR(e.hint, "make it");
    CHECK(e.code == ERR_NOT_FOUND);
}

static void an_argument_may_be_the_message(void)
{
    struct err e;
    err_set(&e, ERR_INVALID, "inner");
    err_set(&e, ERR_CONFLICT, "outer (%s)", e.msg);
    CHECK_STR(e.msg, "outer (inner)");
    err_wrap(&e, "%s again", e.msg);
    CHECK_STR(e.msg, "outer (inner) again: outer (inner)");
}

static void long_messages_are_cut_between_characters(void)
{
    struct err e;
    char text[2000];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof text; i += 3)
            memcpy(text + i, "\xe2\x82\xac", 4);
        err_set(&e, ERR_INVALID, "%s", text);
        size_t n = strlen(e.msg);
        CHECK(n < sizeof e.msg && n > sizeof e.msg - 5);
        CHECK((n - shift) % 3 == 0);
        err_wrap(&e, "%s", "y");
        CHECK((strlen(e.msg) - 3 - shift) % 3 == 0);
        err_hint(&e, "%s", text);
        CHECK((strlen(e.hint) - shift) % 3 == 0);
    }
}

static void control_characters_do_not_get_through(void)
{
    struct err e;
    err_set(&e, ERR_INVALID, "'%s'", "a\x1b[31m\nb\x7f");
    CHECK_STR(e.msg, "'a?[31m?b?'");
    err_set(&e, ERR_INVALID, "%s", "gr\xc3\xbc\xc3\x9f");
    CHECK_STR(e.msg, "gr\xc3\xbc\xc3\x9f");
}

static void a_field_is_told_and_forgotten_with_the_message(void)
{
    struct err e;
    err_set(&e, ERR_INVALID, "too much");
    CHECK_STR(e.field, "");
    err_about(&e, "jobs[%d].%s", 2, "resources.mem");
    err_wrap(&e, "job 3");
    CHECK_STR(e.field, "jobs[2].resources.mem");
    err_set(&e, ERR_INVALID, "something else");
    CHECK_STR(e.field, "");
}

static const struct test tests[] = {
    { "a field is told, and forgotten with the message",
      a_field_is_told_and_forgotten_with_the_message },
    { "every code has a slug, a status and an exit code", every_code_has_a_row },
    { "setting an error fills it, drops the old hint and returns -1",
      set_fills_and_returns_minus_one },
    { "wrapping puts context before and keeps code and hint", wrap_keeps_code_and_hint },
    { "a message may be formatted from itself", an_argument_may_be_the_message },
    { "a long message is cut between UTF-8 characters", long_messages_are_cut_between_characters },
    { "control characters become question marks, UTF-8 stays",
      control_characters_do_not_get_through },
};
TEST_CASES(tests)
