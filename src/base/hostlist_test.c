#include "base/hostlist.h"

#include <stdio.h>

#include "base/rng.h"
#include "tests/lib/test.h"

/* The names joined by blanks, or the error. */
static const char *expanded(const char *list, size_t max, struct buf *out)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct err e;
    const char **names = NULL;
    size_t n = 0;
    buf_truncate(out, 0);
    if (hostlist_expand(str_of(list), max, &a, &names, &n, &e) < 0)
        buf_printf(out, "error: %s", err_info(e.code)->slug);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s%s", i ? " " : "", names[i]);
    return buf_str(out).p;
}

static void lists_expand_in_order(void)
{
    static const struct {
        const char *list, *want;
    } rows[] = {
        { "srv1", "srv1" },
        { "pc[1-3,7],srv1", "pc1 pc2 pc3 pc7 srv1" },
        { "pc[08-11]", "pc08 pc09 pc10 pc11" },
        { "pc[98-101]", "pc98 pc99 pc100 pc101" },
        { "pc[099-101]", "pc099 pc100 pc101" },
        { "pc[99-101].lab", "pc99.lab pc100.lab pc101.lab" },
        { "r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2" },
        { "r[1-2]n[1-2].x", "r1n1.x r1n2.x r2n1.x r2n2.x" },
        { " a , b[ 1 , 3 ] ", "a b1 b3" },
        { "[1-2]", "1 2" },
        { "b,a,b", "b a b" },
        { "x[0-1]", "x0 x1" },
    };
    AUTO(buf_free) struct buf out = BUF(10000);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_STR(expanded(rows[i].list, 100, &out), rows[i].want);
}

static void wrong_lists_are_refused(void)
{
    static const char *const bad[] = {
        "",
        " ",
        "a,",
        ",a",
        "a,,b",
        "a[",
        "a]",
        "a[]",
        "a[1",
        "a[1-]",
        "a[-1]",
        "a[3-1]",
        "a[1-2-3]",
        "a[x]",
        "a b",
        "a[1,]",
        "a[001-12]",
        "a[1-05]",
        "a[[1]]",
        "a\x1b",
        "a[1]]",
        "a[9999999999999999999]",
        "a[1][1][1][1][1][1][1][1][1]",
    };
    AUTO(buf_free) struct buf out = BUF(10000);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_STR(expanded(bad[i], 100, &out), "error: invalid");
}

static void the_number_of_names_is_bounded(void)
{
    AUTO(buf_free) struct buf out = BUF(10000);
    CHECK_STR(expanded("a[1-3],b", 4, &out), "a1 a2 a3 b");
    CHECK_STR(expanded("a[1-3],b", 3, &out), "error: too_large");
    CHECK_STR(expanded("a[0-999999999999999999]", 100, &out), "error: too_large");
    CHECK_STR(expanded("a[1-99][1-99][1-99][1-99][1-99][1-99][1-99][1-99]", 100, &out),
              "error: too_large");
    char name[300];
    memset(name, 'x', sizeof name);
    name[255] = '\0';
    CHECK(expanded(name, 1, &out)[0] == 'x');
    name[255] = 'x';
    name[256] = '\0';
    CHECK_STR(expanded(name, 1, &out), "error: invalid");
    snprintf(name + 251, 9, "[1-99]");
    CHECK(expanded(name, 99, &out)[0] == 'x');
    snprintf(name + 251, 11, "x[1-9999]");
    CHECK_STR(expanded(name, 9999, &out), "error: invalid");
}

static const char *folded(const char *list, struct buf *out)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct err e;
    const char **names;
    size_t n;
    buf_truncate(out, 0);
    CHECK(hostlist_expand(str_of(list), 1000, &a, &names, &n, &e) == 0);
    hostlist_fold(names, n, out);
    return buf_str(out).p;
}

static void names_fold(void)
{
    static const struct {
        const char *list, *want;
    } rows[] = {
        { "pc1,pc2,pc3,pc7,srv1", "pc[1-3,7],srv1" },
        { "pc08,pc09,pc10,pc11", "pc[08-11]" },
        { "pc9,pc10,pc11", "pc[9-11]" },
        { "pc9,pc010", "pc[9,010]" },
        { "pc01.lab2,pc02.lab2,pc03.lab2", "pc[01-03].lab2" },
        { "a,b,c", "a,b,c" },
        { "pc1", "pc1" },
        { "r1n1,r1n2,r2n1,r2n2", "r1n[1-2],r2n[1-2]" },
        { "pc3,pc2,pc1", "pc[3,2,1]" },
        { "a1,b2,b3", "a1,b[2-3]" },
        { "n,n1,n2", "n,n[1-2]" },
    };
    AUTO(buf_free) struct buf out = BUF(10000);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_STR(folded(rows[i].list, &out), rows[i].want);
    buf_truncate(&out, 0);
    hostlist_fold(NULL, 0, &out);
    CHECK(out.n == 0);
}

static void folding_loses_nothing(void)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        AUTO(arena_free) struct arena a = { 0 };
        AUTO(buf_free) struct buf out = BUF(100000);
        struct rng r = { seed };
        struct err e;
        const char *names[40], **back;
        size_t n = 1 + rng_below(&r, 40), back_n;
        for (size_t i = 0; i < n; i++)
            names[i] = arena_printf(&a, "%s%0*u%s", rng_below(&r, 4) ? "pc" : "n2-",
                                    (int)rng_between(&r, 1, 3), rng_below(&r, seed % 2 ? 12 : 120),
                                    rng_below(&r, 4) ? "" : ".x1");
        hostlist_fold(names, n, &out);
        CHECK_AT(seed, hostlist_expand(buf_str(&out), n, &a, &back, &back_n, &e) == 0);
        CHECK_AT(seed, back_n == n);
        for (size_t i = 0; i < n; i++)
            CHECK_AT(seed, strcmp(names[i], back[i]) == 0);
    }
}

static const struct test tests[] = {
    { "a list expands in the order written", lists_expand_in_order },
    { "a wrong list is refused", wrong_lists_are_refused },
    { "the number and the length of names are bounded", the_number_of_names_is_bounded },
    { "runs of one prefix fold into a bracket, order kept", names_fold },
    { "folding and expanding give the same names", folding_loses_nothing },
};
TEST_CASES(tests)
