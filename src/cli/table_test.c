#include "cli/table.h"

#include "tests/lib/test.h"

static const struct column columns[] = {
    { "ID", true, false },
    { "NAME", false, true },
    { "WHERE", false, true },
};

static void prints(struct table_look look, const char *want)
{
    AUTO(table_free_p) struct table *t = table_new(columns, ARRAY_LEN(columns));
    AUTO(buf_free) struct buf b = BUF(4096);
    table_addz(t, "7");
    table_addz(t, "a rather long name");
    table_addz(t, "desk1:0,1");
    table_printf(t, "%d", 17);
    table_add_tinted(t, STR("Zürich"), TINT_GOOD);
    table_addz(t, "");
    CHECK_INT(table_rows(t), 2);
    table_print(t, &look, &b);
    CHECK_STR(b.p, want);
}

static void columns_are_aligned_and_lines_end_with_text(void)
{
    prints((struct table_look){ .headers = true }, "ID  NAME                WHERE\n"
                                                   " 7  a rather long name  desk1:0,1\n"
                                                   "17  Zürich\n");
}

static void headers_can_be_left_out(void)
{
    prints((struct table_look){ 0 }, " 7  a rather long name  desk1:0,1\n17  Zürich\n");
}

static void a_narrow_terminal_cuts_what_may_be_cut(void)
{
    prints((struct table_look){ .headers = true, .columns = 24 }, "ID  NAME       WHERE\n"
                                                                  " 7  a rather…  desk1:0,1\n"
                                                                  "17  Zürich\n");
}

static void a_column_never_shrinks_to_nothing(void)
{
    prints((struct table_look){ .columns = 1 }, " 7  a rat…  desk1…\n17  Zürich\n");
}

static void colour_does_not_count_as_width(void)
{
    prints((struct table_look){ .colour = true },
           " 7  a rather long name  desk1:0,1\n17  \x1b[32mZürich\x1b[0m\n");
}

static const struct test tests[] = {
    { "columns are aligned and lines end with text", columns_are_aligned_and_lines_end_with_text },
    { "headers can be left out", headers_can_be_left_out },
    { "a narrow terminal cuts what may be cut", a_narrow_terminal_cuts_what_may_be_cut },
    { "a column never shrinks to nothing", a_column_never_shrinks_to_nothing },
    { "colour does not count as width", colour_does_not_count_as_width },
};
TEST_CASES(tests)
