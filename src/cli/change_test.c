#include "cli/change.h"

#include "tests/lib/test.h"

static void summary(const char *before, const char *after, const char *want)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    change_add_summary(&b, str_of(before), str_of(after));
    CHECK_STR(b.p ? b.p : "", want);
}

static void a_summary_has_what_changed(void)
{
    summary("{\"weight\":1,\"name\":\"a\"}", "{\"weight\":2,\"name\":\"a\"}", "weight 1 → 2");
    summary("{\"a\":true}", "{\"b\":null}", "a yes → -, b - → -");
    summary("{\"nodes\":[\"pc1\"]}", "{\"nodes\":[\"pc1\",\"pc2\"]}", "nodes pc1 → pc1 pc2");
    summary("{\"x\":[]}", "{\"x\":[{\"open\":false}]}", "x none → (open no)");
    summary("{\"a\":1}", "{\"a\":1}", "");
}

static void what_came_and_what_went_are_told_alone(void)
{
    summary("", "{\"role\":\"admin\",\"expires_ms\":null}", "role admin, expires -");
    summary("{\"role\":\"admin\"}", "", "role admin");
    summary("", "", "");
}

static void nothing_reaches_the_terminal_that_is_no_text(void)
{
    summary("", "{\"a\\u001b[2J\":\"x\\u0007\"}", "a?[2J x?");
    summary("not json", "[1", "");
}

static void lines_show_what_stayed_too(void)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    change_add_lines(&b, STR("{\"w\":1,\"n\":\"a\",\"old\":1}"),
                     STR("{\"w\":2,\"n\":\"a\",\"new\":1}"), false);
    CHECK_STR(b.p, "- w 1\n+ w 2\n  n a\n- old 1\n+ new 1\n");
}

static const struct test tests[] = {
    { "a summary has what changed", a_summary_has_what_changed },
    { "what came and what went are told alone", what_came_and_what_went_are_told_alone },
    { "nothing reaches the terminal that is no text",
      nothing_reaches_the_terminal_that_is_no_text },
    { "lines show what stayed too", lines_show_what_stayed_too },
};
TEST_CASES(tests)
