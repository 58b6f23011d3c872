#include "base/base.h"

#include <string.h>

#include "tests/lib/test.h"

static void vec_keeps_its_items(void)
{
    AUTO(free_p) int *v = NULL;
    size_t n = 0, cap = 0;
    for (int i = 0; i < 1000; i++) {
        vec_grow(v, n, cap);
        v[n++] = i;
    }
    CHECK(n == 1000 && cap >= n);
    for (int i = 0; i < 1000; i++)
        CHECK(v[i] == i);
}

static void take_moves(void)
{
    char *p = xstrdup("mine");
    AUTO(free_p) char *q = TAKE(p);
    CHECK(p == NULL);
    CHECK_STR(q, "mine");
}

static void calloc_is_zeroed(void)
{
    AUTO(free_p) char *p = xcalloc(100, 3);
    AUTO(free_p) char *none = xcalloc(0, 8);
    for (int i = 0; i < 300; i++)
        CHECK(p[i] == 0);
    CHECK(none != NULL);
}

static void min_max(void)
{
    int calls = 0;
    CHECK(MIN(++calls, 5) == 1 && calls == 1);
    CHECK(MAX(2, 3) == 3 && MAX(-2, -3) == -2);
}

static const struct test tests[] = {
    { "a growing vector keeps its items", vec_keeps_its_items },
    { "taking a pointer leaves NULL behind", take_moves },
    { "counted memory is zeroed and never NULL", calloc_is_zeroed },
    { "the smaller and the larger evaluate their arguments once", min_max },
};
TEST_CASES(tests)
