#include "base/json.h"

#include <math.h>

#include "tests/lib/test.h"

static const char sample[] =
    "{\"gpus\": 4, \"name\": \"caf\\u00e9\", \"share\": 0.5, \"pre\": true,"
    " \"delta\": -3, \"tags\": [\"a\", [1, 2], \"b\"], \"none\": null}";

static struct json_doc *sample_doc(void)
{
    struct err e;
    struct json_doc *d = json_read(STR(sample), &e);
    CHECK(d && json_is_object(json_root(d)));
    return d;
}

static void values_come_out_checked(void)
{
    AUTO(json_free_p) struct json_doc *d = sample_doc();
    const struct json *o = json_root(d);
    struct err e;
    uint64_t u = 0;
    int64_t i = 0;
    double f = 0;
    bool b = false;
    struct str s;
    CHECK(json_get_u64(o, "gpus", 8, &u, &e) == 0 && u == 4);
    CHECK(json_need_u64(o, "gpus", 4, &u, &e) == 0);
    CHECK(json_get_i64(o, "delta", -5, 5, &i, &e) == 0 && i == -3);
    CHECK(json_need_i64(o, "gpus", -5, 5, &i, &e) == 0 && i == 4);
    CHECK(json_get_f64(o, "share", 0, 1, &f, &e) == 0 && f == 0.5);
    CHECK(json_get_f64(o, "gpus", 0, 9, &f, &e) == 0 && f == 4);
    CHECK(json_get_bool(o, "pre", &b, &e) == 0 && b);
    CHECK(json_get_str(o, "name", 5, &s, &e) == 0 && str_is(s, "caf\xc3\xa9"));
    CHECK(json_need_str(o, "name", 99, &s, &e) == 0);
}

static void missing_keys_keep_the_output(void)
{
    AUTO(json_free_p) struct json_doc *d = sample_doc();
    const struct json *o = json_root(d);
    struct err e;
    uint64_t u = 77;
    int64_t i = 77;
    struct str s = STR("kept");
    CHECK(json_get_u64(o, "nope", 8, &u, &e) == 0 && u == 77);
    CHECK(json_need_u64(o, "nope", 8, &u, &e) < 0 && u == 77);
    CHECK_STR(e.msg, "field 'nope' is missing");
    CHECK(json_need_i64(o, "nope", 0, 8, &i, &e) < 0 && i == 77);
    CHECK(json_need_str(o, "nope", 8, &s, &e) < 0 && str_is(s, "kept"));
    CHECK(json_find(o, "nope") == NULL && json_find(NULL, "x") == NULL);
}

static void wrong_types_name_the_field(void)
{
    AUTO(json_free_p) struct json_doc *d = sample_doc();
    const struct json *o = json_root(d);
    struct err e;
    uint64_t u = 77;
    int64_t i = 77;
    double f = 77;
    bool b = true;
    struct str s = STR("kept");
    CHECK(json_get_u64(o, "gpus", 3, &u, &e) < 0);
    CHECK_STR(e.msg, "field 'gpus': must be a whole number from 0 to 3");
    CHECK(json_get_u64(o, "name", 3, &u, &e) < 0);
    CHECK_STR(e.msg, "field 'name': must be a whole number from 0 to 3, not a string");
    CHECK(json_get_u64(o, "delta", 9, &u, &e) < 0 && json_get_u64(o, "share", 9, &u, &e) < 0);
    CHECK(json_get_i64(o, "delta", 0, 9, &i, &e) < 0 && json_get_f64(o, "pre", 0, 9, &f, &e) < 0);
    CHECK(json_get_bool(o, "gpus", &b, &e) < 0 && json_get_str(o, "name", 4, &s, &e) < 0);
    CHECK_STR(e.msg, "field 'name': has 5 bytes; at most 4 are allowed");
    CHECK(json_get_str(o, "none", 9, &s, &e) < 0);
    CHECK_STR(e.msg, "field 'none': must be a string, not null");
    CHECK(json_get_str(o, "gpus", 9, &s, &e) < 0);
    CHECK_STR(e.msg, "field 'gpus': must be a string, not a number");
    CHECK(json_get_str(o, "pre", 9, &s, &e) < 0);
    CHECK_STR(e.msg, "field 'pre': must be a string, not a boolean");
    CHECK(json_get_str(o, "tags", 9, &s, &e) < 0);
    CHECK_STR(e.msg, "field 'tags': must be a string, not an array");
    CHECK(u == 77 && i == 77 && f == 77 && b && str_is(s, "kept"));
}

static void arrays_are_walked(void)
{
    AUTO(json_free_p) struct json_doc *d = sample_doc();
    const struct json *arr = json_find(json_root(d), "tags");
    struct err e;
    struct str s;
    uint64_t u = 0;
    CHECK(json_is_array(arr) && json_len(arr) == 3);
    size_t n = 0;
    for (const struct json *v = json_first(arr); v; v = json_next(arr, v))
        CHECK(v == json_at(arr, n++));
    CHECK(n == 3 && json_at(arr, 3) == NULL);
    CHECK(json_as_str(json_at(arr, 2), 9, &s, &e) == 0 && str_is(s, "b"));
    CHECK(json_as_u64(json_at(json_at(arr, 1), 1), 9, &u, &e) == 0 && u == 2);
    AUTO(json_free_p) struct json_doc *empty = json_read(STR("[]"), &e);
    CHECK(json_first(json_root(empty)) == NULL && json_len(json_root(empty)) == 0);
}

static void unknown_keys_are_refused(void)
{
    static const char *const keys[] = { "gpus", "image", "command" };
    struct err e;
    AUTO(json_free_p) struct json_doc *good = json_read(STR("{\"image\":1,\"gpus\":2}"), &e);
    CHECK(json_only(json_root(good), keys, 3, &e) == 0);
    AUTO(json_free_p) struct json_doc *near = json_read(STR("{\"gpu\":1}"), &e);
    CHECK(json_only(json_root(near), keys, 3, &e) < 0);
    CHECK_STR(e.msg, "unknown field 'gpu'");
    CHECK_STR(e.hint, "did you mean 'gpus'?");
    AUTO(json_free_p) struct json_doc *far = json_read(STR("{\"memory_limit\":1}"), &e);
    CHECK(json_only(json_root(far), keys, 3, &e) < 0);
    CHECK_STR(e.hint, "known fields: gpus, image, command");
    AUTO(json_free_p) struct json_doc *twice = json_read(STR("{\"gpus\":1,\"gpus\":2}"), &e);
    CHECK(json_only(json_root(twice), keys, 3, &e) < 0);
    CHECK_STR(e.msg, "field 'gpus' is given twice");
    AUTO(json_free_p) struct json_doc *array = json_read(STR("[]"), &e);
    CHECK(json_only(json_root(array), keys, 3, &e) < 0);
}

static void bad_text_names_the_place(void)
{
    struct err e;
    CHECK(json_read(STR("{\n  \"a\": 1,\n  b\n}"), &e) == NULL && e.code == ERR_INVALID);
    CHECK(strstr(e.msg, "line 3, column 3"));
    CHECK(json_read(STR(""), &e) == NULL && json_read(STR("{} x"), &e) == NULL);
    CHECK(json_read(STR("\"\xff\""), &e) == NULL && json_read(STR("[1,]"), &e) == NULL);
    CHECK(json_free(NULL) == NULL);
}

static void what_is_written_reads_back(void)
{
    AUTO(buf_free) struct buf b = BUF(10000);
    struct json_out w = { .b = &b };
    struct err e;
    json_begin(&w, NULL, '{');
    json_put_str(&w, "s", STR("q\" b\\ n\n t\t \x01 \xc3\xa9 \xff \0"));
    json_put_i64(&w, "i", INT64_MIN);
    json_put_u64(&w, "u", UINT64_MAX);
    json_put_f64(&w, "f", 1234.5678, 2);
    json_put_f64(&w, "whole", 2.5, 0);
    json_put_f64(&w, "zero", -0.001, 2);
    json_put_f64(&w, "inf", (double)INFINITY, 2);
    json_put_f64(&w, "huge", -1e300, 1);
    json_begin(&w, "a", '[');
    json_put_bool(&w, NULL, true);
    json_put_null(&w, NULL);
    json_begin(&w, NULL, '{');
    json_end(&w, '}');
    json_end(&w, ']');
    json_begin(&w, "e", '[');
    json_end(&w, ']');
    json_end(&w, '}');
    CHECK(buf_check(&b, &e) == 0);
    CHECK(strstr(b.p, "{\"s\":\"q\\\" b\\\\ n\\n t\\t \\u0001 \xc3\xa9 \xef\xbf\xbd \\u0000\","));
    CHECK(strstr(b.p, "\"i\":-9223372036854775808,\"u\":18446744073709551615,\"f\":1234.57,"));
    CHECK(strstr(b.p, "\"whole\":2,\"zero\":0.00,\"inf\":null,"));
    CHECK(strstr(b.p, ",\"a\":[true,null,{}],\"e\":[]}"));
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&b), &e);
    double huge = 0;
    CHECK(d && json_get_f64(json_root(d), "huge", -1e301, 0, &huge, &e) == 0 && huge == -1e300);
}

static void indented_is_readable(void)
{
    AUTO(buf_free) struct buf b = BUF(1000);
    struct json_out w = { .b = &b, .indent = 2 };
    json_begin(&w, NULL, '{');
    json_put_i64(&w, "a", 1);
    json_begin(&w, "b", '[');
    json_put_i64(&w, NULL, 2);
    json_end(&w, ']');
    json_begin(&w, "c", '{');
    json_end(&w, '}');
    json_end(&w, '}');
    CHECK_STR(b.p, "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ],\n  \"c\": {}\n}");
}

static void a_value_is_copied_whole(void)
{
    struct err e;
    AUTO(json_free_p)
    struct json_doc *d = json_read(STR("{\"b\": [1, {\"x\": 2}], \"a\": \"t\"}"), &e);
    const struct json *list = json_find(json_root(d), "b"), *text = json_find(json_root(d), "a");
    AUTO(buf_free) struct buf b = BUF(1000);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    json_put(&w, "copy", list);
    json_put_raw(&w, "raw", STR("[null]"));
    json_end(&w, '}');
    CHECK_STR(b.p, "{\"copy\":[1,{\"x\":2}],\"raw\":[null]}");
    CHECK(json_is_string(text) && !json_is_number(text) && !json_is_null(text));
    CHECK_INT(json_members(json_root(d)), 2);
    CHECK_INT(json_members(list), 0);
}

static const struct test tests[] = {
    { "values come out with their type and range checked", values_come_out_checked },
    { "a missing key keeps the output and is an error only where needed",
      missing_keys_keep_the_output },
    { "a wrong type or range names the field and keeps the output", wrong_types_name_the_field },
    { "arrays are walked in order", arrays_are_walked },
    { "unknown and doubled keys are refused, the nearest is named", unknown_keys_are_refused },
    { "bad text is refused with its line and column", bad_text_names_the_place },
    { "what is written is JSON, whatever the bytes", what_is_written_reads_back },
    { "indented output is readable", indented_is_readable },
    { "a value is copied whole, members are counted", a_value_is_copied_whole },
};
TEST_CASES(tests)
