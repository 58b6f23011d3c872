#include "http/target.h"

#include "base/buf.h"
#include "tests/lib/test.h"

static struct target good(struct arena *a, const char *text)
{
    struct target t = { 0 };
    struct err e;
    CHECK(target_parse(str_of(text), a, &t, &e) == 0);
    return t;
}

static void refuse(struct str text, enum err_code code, const char *says)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct target t = { .n = 77 };
    struct err e;
    CHECK(target_parse(text, &a, &t, &e) < 0);
    CHECK(t.n == 77 && e.code == code && strstr(e.msg, says));
}

static void a_path_is_decoded(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    CHECK_STR(good(&a, "/").path, "/");
    CHECK_STR(good(&a, "/v1/a%20b%C3%a4").path, "/v1/a b\xc3\xa4");
    CHECK_STR(good(&a, "/a+b").path, "/a+b"); /* a plus is a blank in queries only */
    CHECK_STR(good(&a, "/100%25").path, "/100%");
    CHECK(good(&a, "/x").n == 0);
}

static void a_query_is_split_before_it_is_decoded(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct target t = good(&a, "/x?user=ana+b%26c&flag&&empty=&a%3Db=c=d");
    CHECK_STR(t.path, "/x");
    CHECK_INT(t.n, 4);
    CHECK_STR(t.query[0].key, "user");
    CHECK_STR(t.query[0].value, "ana b&c");
    CHECK_STR(t.query[1].key, "flag");
    CHECK_STR(t.query[1].value, "");
    CHECK_STR(t.query[2].value, "");
    CHECK_STR(t.query[3].key, "a=b");
    CHECK_STR(t.query[3].value, "c=d");
    CHECK_INT(good(&a, "/x?").n, 0);
    CHECK_STR(good(&a, "/x?a=b?c").query[0].value, "b?c");
}

static void bad_percents_are_refused(void)
{
    const char *bad[] = { "/%", "/%4", "/%zz", "/%4g", "/x?a=%", "/x?%f=1", "/x?a=%u0041" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        refuse(str_of(bad[i]), ERR_INVALID, "without two hexadecimal digits");
}

static void zero_bytes_are_refused(void)
{
    refuse(STR("/a%00b"), ERR_INVALID, "zero byte");
    refuse(STR("/x?a=%00"), ERR_INVALID, "zero byte");
    refuse(STR("/a\0b"), ERR_INVALID, "zero byte");
}

static void it_begins_with_a_slash(void)
{
    refuse(STR(""), ERR_INVALID, "begin with '/'");
    refuse(STR("*"), ERR_INVALID, "begin with '/'");
    refuse(STR("http://host/x"), ERR_INVALID, "begin with '/'");
}

static void it_is_bounded(void)
{
    AUTO(buf_free) struct buf b = BUF(TARGET_MAX * 2);
    AUTO(arena_free) struct arena a = { 0 };
    buf_addz(&b, "/x?a");
    for (int i = 1; i < TARGET_PAIRS_MAX; i++)
        buf_addz(&b, "&a");
    CHECK_INT(good(&a, b.p).n, TARGET_PAIRS_MAX);
    buf_addz(&b, "&a");
    refuse(buf_str(&b), ERR_INVALID, "65 parts");
    buf_truncate(&b, 0);
    while (b.n < TARGET_MAX)
        buf_addc(&b, '/');
    good(&a, b.p);
    buf_addc(&b, '/');
    refuse(buf_str(&b), ERR_TOO_LARGE, "8193 bytes");
}

static const struct test tests[] = {
    { "a path is decoded", a_path_is_decoded },
    { "a query is split before it is decoded", a_query_is_split_before_it_is_decoded },
    { "a percent sign without two digits is refused", bad_percents_are_refused },
    { "a zero byte is refused, however it is written", zero_bytes_are_refused },
    { "a target begins with a slash", it_begins_with_a_slash },
    { "a target is bounded, and so are its parts", it_is_bounded },
};
TEST_CASES(tests)
