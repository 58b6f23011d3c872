#include "api/sheet.h"

#include "base/buf.h"
#include "tests/lib/test.h"

static void put(struct sheet *s, struct str text)
{
    sheet_row(s);
    sheet_text(s, "who", text);
    sheet_hours(s, "hours", 1.5);
    sheet_none(s, "nothing");
    sheet_count(s, "runs", 7);
    sheet_row_end(s);
}

static void a_line_of_csv_is_quoted_and_is_never_a_formula(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "vision", "vision" },
        { "", "" },
        { "a,b", "\"a,b\"" },
        { "say \"hi\"", "\"say \"\"hi\"\"\"" },
        { "two\nlines", "\"two\nlines\"" },
        { "=1+1", "'=1+1" },
        { "+1", "'+1" },
        { "-1", "'-1" },
        { "@SUM(A1)", "'@SUM(A1)" },
        { "=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\"" },
        { "a=b", "a=b" },
        { "\tx", "'\tx" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(buf_free) struct buf b = BUF(4096), want = BUF(4096);
        struct sheet s = { .form = SHEET_CSV, .b = &b };
        put(&s, str_of(cases[i].text));
        buf_printf(&want, "%s,1.500000,,7\r\n", cases[i].want);
        CHECK_STR(buf_str(&b).p, buf_str(&want).p);
    }
}

static void the_titles_are_the_names_of_the_cells(void)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct sheet s = { .form = SHEET_TITLES, .b = &b };
    put(&s, STR("x"));
    CHECK_STR(buf_str(&b).p, "who,hours,nothing,runs\r\n");
}

static void json_leaves_out_what_is_not_there(void)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    struct json_out w = { .b = &b };
    struct sheet s = { .form = SHEET_JSON, .w = &w };
    put(&s, STR("=1"));
    CHECK_STR(buf_str(&b).p, "{\"who\":\"=1\",\"hours\":1.500000,\"runs\":7}");
}

static const struct test tests[] = {
    { "a line of CSV is quoted, and is never a formula",
      a_line_of_csv_is_quoted_and_is_never_a_formula },
    { "the titles are the names of the cells", the_titles_are_the_names_of_the_cells },
    { "JSON leaves out what is not there", json_leaves_out_what_is_not_there },
};
TEST_CASES(tests)
