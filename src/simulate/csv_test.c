#include "simulate/csv.h"

#include <stdio.h>
#include <unistd.h>

#include "sys/file.h"
#include "tests/lib/test.h"

static const struct csv_column columns[] = {
    { "id", 0 },
    { "gpus", 0 },
    { "note", CSV_OPTIONAL | CSV_EMPTY },
};
enum {
    ID,
    GPUS,
    NOTE
};
static const struct csv_table table = { columns, ARRAY_LEN(columns), 5 };

static struct csv_source source(const char *text)
{
    return (struct csv_source){ "t.csv", str_of(text) };
}

/* Opens and reads to the end: 0, or -1 with the error. */
static int read_all(struct csv_source from, struct err *e)
{
    struct csv c;
    if (csv_open(&c, &from, &table, e) < 0)
        return -1;
    size_t rows = 0;
    int rc;
    while ((rc = csv_next(&c, e)) > 0) {
        uint32_t gpus = 77;
        int64_t id = 78;
        rows++;
        if (csv_i64(&c, ID, 0, INT64_MAX, &id, e) < 0) {
            CHECK_INT(id, 78);
            return -1;
        }
        if (csv_u32(&c, GPUS, 1, 16, &gpus, e) < 0) {
            CHECK_INT(gpus, 77);
            return -1;
        }
    }
    CHECK(rc < 0 || rows <= c.room);
    return rc;
}

static void refused(const char *text, const char *start)
{
    struct err e = { 0 };
    CHECK(read_all(source(text), &e) < 0);
    CHECK_INT(e.code, ERR_INVALID);
    if (strncmp(e.msg, start, strlen(start)) != 0)
        CHECK_STR(e.msg, start);
    CHECK(e.hint[0]);
}

static void reads_columns_by_name(void)
{
    struct csv c;
    struct err e = { 0 };
    struct csv_source from = source("other,gpus,id,note\nx,2,7,hello\r\ny,3,8,\r\n");
    uint32_t gpus;
    int64_t id;
    CHECK(csv_open(&c, &from, &table, &e) == 0 && c.room >= 2);
    CHECK_INT(csv_next(&c, &e), 1);
    CHECK(csv_i64(&c, ID, 0, 100, &id, &e) == 0 && id == 7);
    CHECK(csv_u32(&c, GPUS, 0, 100, &gpus, &e) == 0 && gpus == 2);
    CHECK(str_is(csv_text(&c, NOTE), "hello") && c.line == 2);
    CHECK_INT(csv_next(&c, &e), 1);
    CHECK(csv_text(&c, NOTE).n == 0 && c.line == 3);
    CHECK(csv_has(&c, NOTE) && str_is(csv_name(&c, c.columns), "other"));
    CHECK(str_is(csv_text(&c, c.columns), "y"));
    CHECK_INT(csv_next(&c, &e), 0);
    CHECK_INT(csv_next(&c, &e), 0);
}

static void reads_quoted_fields(void)
{
    struct csv c;
    struct err e = { 0 };
    struct csv_source from = source("\"id\",gpus,note\n1,2,\"Lm (batch, size 10)\"\n"
                                    "\"2\",\"3\",\"a \"\"b\"\"\"\n3,4,\"\"\n");
    CHECK(csv_open(&c, &from, &table, &e) == 0);
    CHECK(csv_next(&c, &e) == 1 && str_is(csv_text(&c, NOTE), "Lm (batch, size 10)"));
    CHECK(csv_next(&c, &e) == 1 && str_is(csv_text(&c, NOTE), "a \"b\""));
    CHECK(str_is(csv_text(&c, GPUS), "3"));
    CHECK(csv_next(&c, &e) == 1 && csv_text(&c, NOTE).n == 0);
    CHECK_INT(csv_next(&c, &e), 0);
}

static void a_column_may_be_optional(void)
{
    struct csv c;
    struct err e = { 0 };
    struct csv_source from = source("\xef\xbb\xbfid,gpus\n1,2"); /* a byte order mark, no last LF */
    double d;
    CHECK(csv_open(&c, &from, &table, &e) == 0 && !csv_has(&c, NOTE));
    CHECK(csv_next(&c, &e) == 1 && csv_text(&c, NOTE).n == 0);
    CHECK(csv_f64(&c, GPUS, 0, 5, &d, &e) == 0 && d == 2.0);
    CHECK(csv_f64(&c, GPUS, 3, 5, &d, &e) < 0 && d == 2.0);
    CHECK_STR(e.msg, "t.csv:2: field 'gpus': '2' is not a number from 3 to 5");
}

static void blank_lines_are_fine_only_at_the_end(void)
{
    struct err e = { 0 };
    CHECK(read_all(source("id,gpus\n1,2\n\n\r\n"), &e) == 0);
    refused("id,gpus\n1,2\n\n1,2\n", "t.csv:3: field 'gpus': missing: 1 fields, the header has 2");
}

static void says_what_is_wrong_with_a_header(void)
{
    refused("", "t.csv:1: field 'id': the file is empty");
    refused("\n", "t.csv:1: field 'id': the file is empty");
    refused("id,note\n", "t.csv:1: field 'gpus': the header does not name it");
    refused("id,gpus,id\n", "t.csv:1: field 'id': the header names it twice");
    refused("id,\"gpus\n", "t.csv:1: field '2': its quote is not closed on this line");
}

static void says_what_is_wrong_with_a_row(void)
{
    refused("id,gpus\n1\n", "t.csv:2: field 'gpus': missing: 1 fields, the header has 2");
    refused("id,gpus\n1,2\n1,2,3\n",
            "t.csv:3: field '3': one too many: 3 fields, the header has 2");
    refused("id,gpus\n1,\n", "t.csv:2: field 'gpus': it is empty");
    refused("id,gpus,note\n1,2,\"x\n", "t.csv:2: field 'note': its quote is not closed");
    refused("id,gpus,note\n1,2,\"x\"y\n", "t.csv:2: field 'note': text follows its closing quote");
    refused("id,gpus\n1,a\"b\n", "t.csv:2: field 'gpus': a quote in a field that does not begin");
}

static void says_what_is_wrong_with_a_number(void)
{
    refused("id,gpus\n1,-3\n", "t.csv:2: field 'gpus': '-3' is not a whole number from 1 to 16");
    refused("id,gpus\n1,0\n", "t.csv:2: field 'gpus': '0' is not a whole number");
    refused("id,gpus\n1,17\n", "t.csv:2: field 'gpus': '17' is not a whole number");
    refused("id,gpus\n1,1.5\n", "t.csv:2: field 'gpus': '1.5' is not a whole number");
    refused("id,gpus\n1,two\n", "t.csv:2: field 'gpus': 'two' is not a whole number");
    refused("id,gpus\n1, 2\n", "t.csv:2: field 'gpus': ' 2' is not a whole number");
    refused("id,gpus\n9223372036854775808,2\n",
            "t.csv:2: field 'id': '9223372036854775808' is not a whole number");
}

static void bounds_rows_lines_and_fields(void)
{
    char text[CSV_LINE_MAX + 64] = "id,gpus\n";
    refused("id,gpus\n1,1\n2,1\n3,1\n4,1\n5,1\n6,1\n", "t.csv:7: field 'id': more than 5 rows");
    memset(text + 8, '1', CSV_LINE_MAX);
    refused(text, "t.csv:2: field 'id': the line is longer than 8191 bytes");
    memset(text, ',', CSV_FIELDS_MAX);
    memcpy(text + CSV_FIELDS_MAX, "\n", 2);
    refused(text, "t.csv:1: field '129': too many fields on this line");
    struct err e = { 0 };
    struct csv_source nul = { "t.csv", STR("id,gpus\n1,2\0\n") };
    CHECK(read_all(nul, &e) < 0);
    CHECK_STR(e.msg, "t.csv:2: field 'id': the line holds a NUL byte");
}

static void a_long_path_does_not_hide_the_message(void)
{
    char path[500];
    struct err e = { 0 };
    memset(path, 'd', sizeof path);
    memcpy(path + sizeof path - 8, "/t.csv", 7);
    struct csv_source from = { path, STR("id,gpus\n1,-3\n") };
    CHECK(read_all(from, &e) < 0);
    CHECK(strstr(e.msg, "/t.csv:2: field 'gpus': '-3' is not a whole number from 1 to 16"));
}

static void finds_a_file_in_the_folder_or_below_it(void)
{
    char dir[] = "/tmp/csv_test.XXXXXX", path[64];
    struct err e = { 0 };
    CHECK(mkdtemp(dir));
    const struct csv_folder in = { dir, "sub" };
    struct csv_file f = { .path = NULL };
    CHECK(csv_load(&in, "a.csv", 1000, &f, &e) < 0);
    CHECK(e.code == ERR_NOT_FOUND && e.hint[0] && !f.path && !f.text.p);
    snprintf(path, sizeof path, "%s/a.csv.gz", dir); /* what it holds decides, not its name */
    CHECK(file_write(path, STR("id\n"), &e) == 0);
    CHECK(csv_load(&in, "a.csv", 2, &f, &e) < 0 && !f.path);
    CHECK(csv_load(&in, "a.csv", 1000, &f, &e) == 0);
    struct csv_source s = csv_file_source(&f);
    CHECK_STR(s.file, path);
    CHECK(str_is(s.text, "id\n"));
    csv_file_free(&f);
    CHECK(unlink(path) == 0 && rmdir(dir) == 0);
}

static const struct test tests[] = {
    { "columns are found by name, in any order, and others ignored", reads_columns_by_name },
    { "quoted fields may hold commas and doubled quotes", reads_quoted_fields },
    { "an optional column may be absent", a_column_may_be_optional },
    { "blank lines are fine at the end and nowhere else", blank_lines_are_fine_only_at_the_end },
    { "a broken header is an error with file, line and field", says_what_is_wrong_with_a_header },
    { "a broken row is an error with file, line and field", says_what_is_wrong_with_a_row },
    { "a broken number is an error with file, line and field", says_what_is_wrong_with_a_number },
    { "rows, lines and fields are bounded", bounds_rows_lines_and_fields },
    { "a long path does not hide the message", a_long_path_does_not_hide_the_message },
    { "a file is found below the folder or in it, gzipped or not",
      finds_a_file_in_the_folder_or_below_it },
};
TEST_CASES(tests)
