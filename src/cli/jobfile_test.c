#include "cli/jobfile.h"

#include "tests/lib/test.h"

static void documents_are_split_and_counted(void)
{
    struct jobfile f = {
        .rest = STR("# two jobs\n---\nname: a\n---\n\n# nothing\n---\nname: b\ncommand: x\n")
    };
    struct str text;
    size_t line;
    CHECK(jobfile_next(&f, &text, &line));
    CHECK_INT(line, 1);
    CHECK(memmem(text.p, text.n, "name: a", 7) && !memmem(text.p, text.n, "name: b", 7));
    CHECK(jobfile_next(&f, &text, &line));
    CHECK_INT(line, 6);
    CHECK(memmem(text.p, text.n, "name: b", 7));
    CHECK(!jobfile_next(&f, &text, &line));
}

static void a_dash_line_inside_a_block_is_text(void)
{
    struct jobfile f = { .rest = STR("command: |\n  a\n  ---\n  b\nname: x\n") };
    struct str text;
    size_t line;
    CHECK(jobfile_next(&f, &text, &line));
    CHECK_INT(text.n, strlen("command: |\n  a\n  ---\n  b\nname: x\n"));
    CHECK(!jobfile_next(&f, &text, &line));
}

static void an_empty_file_has_no_job(void)
{
    static const char *const empty[] = { "", "\n\n", "# only words\n", "---\n---\n" };
    for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
        struct jobfile f = { .rest = str_of(empty[i]) };
        struct str text;
        size_t line;
        CHECK(!jobfile_next(&f, &text, &line));
    }
}

static void errors_name_the_line_of_the_file(void)
{
    struct err e = { 0 };
    CHECK(jobfile_read(STR("---\nname: b\nname: c\n"), 10, &e) == NULL);
    CHECK(strstr(e.msg, "line 13"));
}

static void json_is_yaml(void)
{
    struct err e;
    AUTO(json_free_p) struct json_doc *doc = jobfile_read(STR("{\"name\": \"x\"}"), 0, &e);
    CHECK(doc && json_is_object(json_root(doc)));
}

static void a_field_is_found_below_its_section(void)
{
    struct str text = STR("name: gpus\nfreeze:\n  mode: x\nresources:\n  # gpus: 1\n  \"gpus\": 9\n"
                          "volumes:\n  - from: /a\n");
    CHECK_INT(jobfile_line_of(text, 0, "resources.gpus"), 6);
    CHECK_INT(jobfile_line_of(text, 10, "freeze.mode"), 13);
    CHECK_INT(jobfile_line_of(text, 0, "volumes[0].from"), 8);
    CHECK_INT(jobfile_line_of(text, 0, "resources.mem"), 4); /* the section, at least */
    CHECK_INT(jobfile_line_of(text, 0, "nothing"), 0);
    CHECK_INT(jobfile_line_of(text, 0, ""), 0);
}

static const struct test tests[] = {
    { "documents are split and counted", documents_are_split_and_counted },
    { "a dash line inside a block is text", a_dash_line_inside_a_block_is_text },
    { "an empty file has no job", an_empty_file_has_no_job },
    { "errors name the line of the file", errors_name_the_line_of_the_file },
    { "JSON is YAML", json_is_yaml },
    { "a field is found below its section", a_field_is_found_below_its_section },
};
TEST_CASES(tests)
