#include "base/yaml.h"

#include <stdio.h>

#include "tests/lib/test.h"

/* The JSON that `yaml` gives; "" when it is refused. */
static const char *json_of(const char *yaml)
{
    static char text[4096];
    AUTO(buf_free) struct buf b = BUF(sizeof text - 1);
    struct err e;
    text[0] = '\0';
    if (yaml_to_json(str_of(yaml), &b, &e) == 0)
        snprintf(text, sizeof text, "%s", b.p);
    return text;
}

/* The message for `yaml`, which must be refused. */
static const char *refusal(const char *yaml, struct err *e)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    CHECK_INT(yaml_to_json(str_of(yaml), &b, e), -1);
    CHECK(b.n == 0 && e->code == ERR_INVALID);
    return e->msg;
}

static void a_job_file_reads_as_the_json_it_means(void)
{
    CHECK_STR(
        json_of("# train\nname: resnet\ngpus: 2\nmem: 16Gi\n"
                "command: [python, train.py, --lr, '0.1']\n"
                "env:\n  SEED: \"7\"\n  NOTE: a # b\nvolumes:\n  - from: /data\n    ro: true\n"),
        "{\"name\":\"resnet\",\"gpus\":2,\"mem\":\"16Gi\","
        "\"command\":[\"python\",\"train.py\",\"--lr\",\"0.1\"],"
        "\"env\":{\"SEED\":\"7\",\"NOTE\":\"a\"},\"volumes\":[{\"from\":\"/data\",\"ro\":true}]}");
    CHECK_STR(json_of("script: |\n  echo a\n  echo \"b\"\nfold: >-\n  one\n  two\n"),
              "{\"script\":\"echo a\\necho \\\"b\\\"\\n\",\"fold\":\"one two\"}");
    CHECK_STR(json_of("{\"a\": [1, {\"b\": null}], \"c\": {}, \"d\": []}"),
              "{\"a\":[1,{\"b\":null}],\"c\":{},\"d\":[]}");
    CHECK_STR(json_of("---\na: 1\n...\n"), "{\"a\":1}");
    CHECK_STR(json_of("just text"), "\"just text\"");
    CHECK_STR(json_of("- - 1\n  - 2\n- 3\n"), "[[1,2],3]");
}

static void a_text_without_values_is_an_empty_mapping(void)
{
    CHECK_STR(json_of(""), "{}");
    CHECK_STR(json_of("# only a comment\n"), "{}");
    CHECK_STR(json_of("\n\n"), "{}");
    CHECK_STR(json_of("---\n"), "null"); /* a document, and nothing in it */
}

static void numbers_are_those_of_yaml_1_2(void)
{
    static const struct {
        const char *yaml, *json;
    } cases[] = {
        { "0", "0" },
        { "-0", "0" },
        { "+12", "12" },
        { "-7", "-7" },
        { "18446744073709551615", "18446744073709551615" },
        { "-9223372036854775808", "-9223372036854775808" },
        { "0x1F", "31" },
        { "0o17", "15" },
        { "0.5", "0.5" },
        { ".5", "0.5" },
        { "-.5", "-0.5" },
        { "5.", "5.0" },
        { "1e3", "1.0e3" },
        { "2.5E-3", "2.5E-3" },
        { "~", "null" },
        { "Null", "null" },
        { "TRUE", "true" },
        { "False", "false" },
        /* Not numbers: they would be guessed, or cannot be held. */
        { "18446744073709551616", "\"18446744073709551616\"" },
        { "-9223372036854775809", "\"-9223372036854775809\"" },
        { "0x10000000000000000", "\"0x10000000000000000\"" },
        { "0755", "\"0755\"" },
        { "00", "\"00\"" },
        { "0o8", "\"0o8\"" },
        { "0x", "\"0x\"" },
        { "1_000", "\"1_000\"" },
        { "1:30:00", "\"1:30:00\"" },
        { ".inf", "\".inf\"" },
        { "1e999", "\"1e999\"" },
        { "12e", "\"12e\"" },
        { ".", "\".\"" },
        { "+", "\"+\"" },
        { "1.2.3", "\"1.2.3\"" },
        { "2026-03-01", "\"2026-03-01\"" },
        { "yes", "\"yes\"" },
        { "No", "\"No\"" },
        { "on", "\"on\"" },
        { "off", "\"off\"" },
        { "y", "\"y\"" },
        { "nULL", "\"nULL\"" },
        { "'4'", "\"4\"" },
        { "\"true\"", "\"true\"" },
        { "''", "\"\"" },
        { "!!str 4", "\"4\"" },
        { "! 4", "\"4\"" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(json_of(cases[i].yaml), cases[i].json);
}

static void a_long_number_is_text(void)
{
    char digits[300];
    memset(digits, '1', sizeof digits - 1);
    digits[sizeof digits - 1] = '\0';
    CHECK_INT(json_of(digits)[0], '"');
}

static void a_key_given_twice_is_refused_with_both_lines(void)
{
    struct err e;
    CHECK_STR(refusal("gpus: 1\nname: x\ngpus: 2\n", &e),
              "line 3: the key 'gpus' is given twice; it is on line 1 too");
    CHECK(e.hint[0]);
    CHECK_STR(refusal("a:\n  b: 1\n  \"b\": 2\n", &e),
              "line 3: the key 'b' is given twice; it is on line 2 too");
    /* The same key in two mappings is no repetition. */
    CHECK_STR(json_of("a: {x: 1}\nb: {x: 2, a: 3}\n"), "{\"a\":{\"x\":1},\"b\":{\"x\":2,\"a\":3}}");
}

static void keys_are_text(void)
{
    struct err e;
    CHECK_STR(refusal("env:\n  8080: x\n", &e),
              "line 2: the key '8080' is a number, and a key must be text");
    CHECK_STR(e.hint, "put it in quotes: \"8080\":");
    CHECK_STR(refusal("true: 1", &e),
              "line 1: the key 'true' is true or false, and a key must be text");
    CHECK_STR(refusal("~: 1", &e), "line 1: the key '~' is null, and a key must be text");
    CHECK_STR(refusal("? [a]\n: 1", &e), "line 1: a key is a list, and a key must be text");
    CHECK_STR(refusal("{{a: 1}: 2}", &e), "line 1: a key is a mapping, and a key must be text");
    CHECK_STR(refusal("\"a\\0b\": 2", &e), "line 1: the key 'a' has a NUL character in it");
    char key[YAML_KEY_MAX + 4];
    memset(key, 'k', YAML_KEY_MAX);
    memcpy(key + YAML_KEY_MAX, ":", 2);
    CHECK(json_of(key)[0]);
    memcpy(key + YAML_KEY_MAX, "k:", 3);
    CHECK(strstr(refusal(key, &e), "161 bytes; at most 160"));
    CHECK_STR(json_of("\"8080\": x\non: y\n"), "{\"8080\":\"x\",\"on\":\"y\"}");
}

static void nothing_is_repeated_or_typed_by_marks(void)
{
    struct err e;
    CHECK_STR(refusal("a: &x 1\nb: 2\n", &e), "line 1: the anchor '&x' is not allowed");
    CHECK_STR(refusal("a: 1\nb: *x\n", &e), "line 2: the alias '*x' is not allowed");
    CHECK_STR(e.hint, "write the value out; quote a text that begins with *");
    CHECK_STR(refusal("a: &x [1]\n", &e), "line 1: the anchor '&x' is not allowed");
    CHECK_STR(refusal("a: !!binary aGk=\n", &e),
              "line 1: the tag 'tag:yaml.org,2002:binary' is not allowed");
    CHECK_STR(refusal("a: !run {x: 1}\n", &e), "line 1: the tag '!run' is not allowed");
    CHECK_STR(refusal("a: !!set [x]\n", &e),
              "line 1: the tag 'tag:yaml.org,2002:set' is not allowed");
    CHECK_STR(refusal("a: 1\n---\nb: 2\n", &e),
              "line 2: a second document begins here, and one is read");
}

static void mistakes_are_told_with_their_place(void)
{
    struct err e;
    CHECK_STR(refusal("name: a: b\n", &e),
              "not valid YAML: line 1, column 8: mapping values are not allowed in this context");
    CHECK_STR(e.hint, "put a text that has ': ' in it in quotes");
    refusal("a:\n\tb: 1\n", &e);
    CHECK(strstr(e.msg, "line 2, column 1") && strstr(e.hint, "tabs"));
    refusal("a: \"open\n", &e);
    CHECK_STR(e.hint, "a quote is not closed");
    refusal("a: [1, 2\nb: 3\n", &e);
    CHECK(strstr(e.msg, "line 2") && e.hint[0]);
    refusal("a: \xff\n", &e);
    CHECK(strstr(e.msg, "byte 4") && strstr(e.hint, "UTF-8"));
    refusal("a: \x01\n", &e);
    CHECK(strstr(e.msg, "control characters"));
}

static void depth_and_number_of_values_are_bounded(void)
{
    AUTO(buf_free) struct buf deep = BUF(1000), wide = BUF(1u << 20);
    struct err e;
    for (int i = 0; i < YAML_DEPTH_MAX; i++)
        buf_addc(&deep, '[');
    for (int i = 0; i < YAML_DEPTH_MAX; i++)
        buf_addc(&deep, ']');
    CHECK_STR(json_of(deep.p), deep.p);
    buf_truncate(&deep, 0);
    for (int i = 0; i < 200; i++)
        buf_addz(&deep, "- ");
    CHECK_STR(refusal(deep.p, &e), "line 1: nested deeper than 32 levels");
    for (int i = 0; i <= YAML_VALUES_MAX; i++)
        buf_addz(&wide, "- 1\n");
    CHECK_STR(refusal(wide.p, &e), "line 100000: more than 100000 values");
    AUTO(buf_free) struct buf big = BUF(YAML_TEXT_MAX + 1), out = BUF(10);
    while (big.n <= YAML_TEXT_MAX)
        buf_addc(&big, '#');
    CHECK(yaml_to_json(buf_str(&big), &out, &e) < 0 && e.code == ERR_TOO_LARGE);
}

static void a_small_output_is_refused_not_cut(void)
{
    AUTO(buf_free) struct buf out = BUF(4);
    struct err e;
    CHECK(yaml_to_json(STR("a: long"), &out, &e) < 0 && e.code == ERR_TOO_LARGE && out.n == 0);
}

static void what_reads_is_a_json_document(void)
{
    struct err e;
    AUTO(json_free_p) struct json_doc *d = yaml_read(STR("gpus: 2\nname: caf\xc3\xa9\n"), &e);
    struct str name;
    uint64_t gpus = 0;
    CHECK(d && json_need_u64(json_root(d), "gpus", 8, &gpus, &e) == 0 && gpus == 2);
    CHECK(json_need_str(json_root(d), "name", 9, &name, &e) == 0 && str_is(name, "caf\xc3\xa9"));
    CHECK(yaml_read(STR("a: ["), &e) == NULL && e.code == ERR_INVALID);
}

static void a_key_is_found_on_its_line(void)
{
    static const char text[] = "# x\nname: gpus\nenv: {gpus: 1}\nlist:\n  - gpus: 2\n\ngpus: 4\n";
    CHECK_INT(yaml_line_of(STR(text), "name"), 2);
    CHECK_INT(yaml_line_of(STR(text), "env"), 3);
    CHECK_INT(yaml_line_of(STR(text), "gpus"), 7);
    CHECK_INT(yaml_line_of(STR(text), "nope"), 0);
    CHECK_INT(yaml_line_of(STR("- gpus"), "gpus"), 0);
    CHECK_INT(yaml_line_of(STR("a: ["), "b"), 0);
    CHECK_INT(yaml_line_of(STR(""), "b"), 0);
}

static const struct test tests[] = {
    { "a job file reads as the JSON it means", a_job_file_reads_as_the_json_it_means },
    { "a text without values is an empty mapping", a_text_without_values_is_an_empty_mapping },
    { "numbers are those of YAML 1.2", numbers_are_those_of_yaml_1_2 },
    { "a long number is text", a_long_number_is_text },
    { "a key given twice is refused with both lines",
      a_key_given_twice_is_refused_with_both_lines },
    { "keys are text", keys_are_text },
    { "nothing is repeated or typed by marks", nothing_is_repeated_or_typed_by_marks },
    { "mistakes are told with their place", mistakes_are_told_with_their_place },
    { "depth and number of values are bounded", depth_and_number_of_values_are_bounded },
    { "a small output is refused, not cut", a_small_output_is_refused_not_cut },
    { "what reads is a JSON document", what_reads_is_a_json_document },
    { "a key is found on its line", a_key_is_found_on_its_line },
};
TEST_CASES(tests)
