#include "cli/yaml_out.h"

#include "base/yaml.h"
#include "tests/lib/test.h"

static void print(const char *json, struct buf *out)
{
    struct err e;
    AUTO(json_free_p) struct json_doc *doc = json_read(str_of(json), &e);
    CHECK(doc);
    yaml_print(json_root(doc), out);
}

static void objects_and_lists_are_indented(void)
{
    AUTO(buf_free) struct buf b = BUF(4096);
    print("{\"name\":\"train\",\"count\":2,\"ok\":true,\"none\":null,\"command\":[\"sh\",\"-c\"],"
          "\"where\":[{\"node\":\"desk1\",\"gpus\":[0,1]}],\"empty\":{},\"list\":[]}",
          &b);
    CHECK_STR(b.p,
              "name: train\ncount: 2\nok: true\nnone: null\ncommand:\n  - sh\n  - \"-c\"\n"
              "where:\n  - node: desk1\n    gpus:\n      - 0\n      - 1\nempty: {}\nlist: []\n");
}

/* What is printed reads back as the same. */
static void what_looks_like_something_else_is_quoted(void)
{
    static const char *const texts[] = {
        "{\"a\":\"yes\",\"b\":\"no\",\"c\":\"1\",\"d\":\"\",\"e\":\" x\",\"f\":\"x \",\"g\":\"a: "
        "b\"}",
        "{\"a\":\"a #b\",\"b\":\"*x\",\"c\":\"&x\",\"d\":\"!x\",\"e\":\"- x\",\"f\":\"null\"}",
        "{\"a\":\"l1\\nl2\",\"b\":\"t\\tt\",\"c\":\"ü日\",\"d\":\"{\",\"e\":\"16384Mi\",\"f\":\"a,"
        "b\"}",
        "{\"a b\":1,\"1\":2,\"true\":3,\"x\":[[1,[2]],[],[{}],[{\"k\":[{\"z\":0.5}]}]]}",
        "[1,\"two\",[3,[4]],{\"five\":5}]",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO(buf_free) struct buf y = BUF(4096), back = BUF(4096), again = BUF(4096);
        struct err e;
        struct json_out w = { .b = &again };
        print(texts[i], &y);
        CHECK(yaml_to_json(buf_str(&y), &back, &e) == 0);
        AUTO(json_free_p) struct json_doc *doc = json_read(str_of(texts[i]), &e);
        json_put(&w, NULL, json_root(doc));
        CHECK_STR(back.p, again.p);
    }
}

static void a_bare_value_is_a_line(void)
{
    AUTO(buf_free) struct buf b = BUF(100);
    print("17", &b);
    print("\"x\"", &b);
    CHECK_STR(b.p, "17\nx\n");
}

static const struct test tests[] = {
    { "objects and lists are indented", objects_and_lists_are_indented },
    { "what looks like something else is quoted", what_looks_like_something_else_is_quoted },
    { "a bare value is a line", a_bare_value_is_a_line },
};
TEST_CASES(tests)
