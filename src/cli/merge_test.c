#include "cli/merge.h"

#include "tests/lib/test.h"

/* The examples of RFC 7396 that concern objects, and our own. */
static void a_patch_changes_what_it_names(void)
{
    static const struct {
        const char *base, *patch, *want;
    } cases[] = {
        { "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
        { "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
        { "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
        { "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
        { "{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}" },
        { "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
        { "[1]", "{\"a\":{\"x\":null}}", "{\"a\":{}}" },
        { "{\"r\":{\"gpus\":2,\"mem\":\"1Gi\"}}", "{\"r\":{\"gpu_share\":0.5,\"gpus\":null}}",
          "{\"r\":{\"mem\":\"1Gi\",\"gpu_share\":0.5}}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        AUTO(buf_free) struct buf b = BUF(4096);
        AUTO(json_free_p) struct json_doc *base = json_read(str_of(cases[i].base), &e);
        AUTO(json_free_p) struct json_doc *patch = json_read(str_of(cases[i].patch), &e);
        struct json_out w = { .b = &b };
        merge_put(&w, NULL, json_root(base), json_root(patch));
        CHECK_STR(b.p, cases[i].want);
    }
}

static void over_nothing_a_patch_is_itself_without_nulls(void)
{
    struct err e;
    AUTO(buf_free) struct buf b = BUF(4096);
    AUTO(json_free_p) struct json_doc *patch = json_read(STR("{\"a\":{\"b\":null,\"c\":1}}"), &e);
    struct json_out w = { .b = &b };
    merge_put(&w, NULL, NULL, json_root(patch));
    CHECK_STR(b.p, "{\"a\":{\"c\":1}}");
}

static const struct test tests[] = {
    { "a patch changes what it names", a_patch_changes_what_it_names },
    { "over nothing a patch is itself without nulls",
      over_nothing_a_patch_is_itself_without_nulls },
};
TEST_CASES(tests)
