#include "base/json.h"

#include "tests/lib/test.h"

static struct json_doc *read(const char *text)
{
    struct err e;
    struct json_doc *d = json_read(str_of(text), &e);
    CHECK(d);
    return d;
}

static void every_value_has_a_kind(void)
{
    static const enum json_kind want[] = { JSON_NULL,   JSON_BOOL,  JSON_NUMBER, JSON_NUMBER,
                                           JSON_STRING, JSON_ARRAY, JSON_OBJECT };
    AUTO(json_free_p) struct json_doc *d = read("[null,false,1,0.5,\"s\",[],{}]");
    size_t n = 0;
    for (const struct json *i = json_first(json_root(d)); i; i = json_next(json_root(d), i))
        CHECK_INT(json_kind(i), want[n++]);
    CHECK_INT(n, ARRAY_LEN(want));
    CHECK_INT(json_kind(NULL), JSON_NULL);
}

static void members_come_in_their_order(void)
{
    AUTO(json_free_p) struct json_doc *d = read("{\"b\":1,\"a\":{\"x\":[1,2]},\"\":3}");
    AUTO(buf_free) struct buf b = BUF(100);
    for (struct json_member m = { 0 }; json_next_member(json_root(d), &m);)
        buf_printf(&b, "<%s>", m.key.p);
    CHECK_STR(b.p, "<b><a><>");
}

static void what_has_no_members_is_not_walked(void)
{
    static const char *const texts[] = { "{}", "[]", "[1]", "7" };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        AUTO(json_free_p) struct json_doc *d = read(texts[i]);
        CHECK(!json_next_member(json_root(d), &(struct json_member){ 0 }));
    }
    CHECK(!json_next_member(NULL, &(struct json_member){ 0 }));
}

static void a_copy_is_the_same_text(void)
{
    static const char text[] =
        "{\"a\":[1,-2,0.1,1e300,18446744073709551615,true,null,\"\\u00e4\\n\"],"
        "\"b\":{\"c\":{}}}";
    AUTO(json_free_p) struct json_doc *d = read(text);
    AUTO(buf_free) struct buf b = BUF(400);
    struct json_out w = { .b = &b };
    json_put(&w, NULL, json_root(d));
    CHECK_STR(b.p, "{\"a\":[1,-2,0.1,1e300,18446744073709551615,true,null,\"ä\\n\"],"
                   "\"b\":{\"c\":{}}}");
}

static void a_very_deep_document_does_not_exhaust_the_stack(void)
{
    enum {
        DEEP = 200000
    };
    AUTO(buf_free) struct buf text = BUF(DEEP * 2 + 1), b = BUF(DEEP * 2 + 1);
    for (int i = 0; i < DEEP; i++)
        buf_addc(&text, '[');
    for (int i = 0; i < DEEP; i++)
        buf_addc(&text, ']');
    AUTO(json_free_p) struct json_doc *d = read(text.p);
    struct json_out w = { .b = &b };
    json_put(&w, NULL, json_root(d));
    CHECK(strstr(b.p, "[null]"));
}

static void raw_text_goes_in_as_it_is(void)
{
    AUTO(buf_free) struct buf b = BUF(100);
    struct json_out w = { .b = &b };
    json_begin(&w, NULL, '{');
    json_put_u64(&w, "a", 1);
    json_put_raw(&w, "b", STR("[2,3]"));
    json_end(&w, '}');
    CHECK_STR(b.p, "{\"a\":1,\"b\":[2,3]}");
}

static const struct test tests[] = {
    { "every value has a kind", every_value_has_a_kind },
    { "members come in their order", members_come_in_their_order },
    { "what has no members is not walked", what_has_no_members_is_not_walked },
    { "a copy is the same text", a_copy_is_the_same_text },
    { "a very deep document does not exhaust the stack",
      a_very_deep_document_does_not_exhaust_the_stack },
    { "raw text goes in as it is", raw_text_goes_in_as_it_is },
};
TEST_CASES(tests)
