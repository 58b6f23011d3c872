#include "base/arena.h"

#include <string.h>

#include "base/rng.h"
#include "tests/lib/test.h"

#define PIECES 300u

static bool all_bytes_are(const unsigned char *p, size_t n, unsigned char want)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != want)
            return false;
    return true;
}

static void fill_once(struct arena *a, uint64_t seed, struct rng *r)
{
    unsigned char *p[PIECES];
    size_t size[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        size[i] = rng_below(r, 50) == 0 ? rng_below(r, 100000) : rng_below(r, 200);
        p[i] = arena_array(a, unsigned char, size[i]);
        CHECK_AT(seed, (uintptr_t)p[i] % 16 == 0 && all_bytes_are(p[i], size[i], 0));
        memset(p[i], (int)(i % 255) + 1, size[i]);
    }
    for (size_t i = 0; i < PIECES; i++)
        CHECK_AT(seed, all_bytes_are(p[i], size[i], (unsigned char)(i % 255 + 1)));
}

static void memory_is_zeroed_aligned_and_apart(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        AUTO(arena_free) struct arena a = { 0 };
        struct rng r = { seed };
        for (int round = 0; round < 3; round++, arena_reset(&a))
            fill_once(&a, seed, &r);
    }
}

static void strings_are_copied(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    CHECK_STR(arena_printf(&a, "%s-%d", "node", 7), "node-7");
    CHECK_STR(arena_strndup(&a, "abcdef", 3), "abc");
    CHECK_STR(arena_strndup(&a, NULL, 0), "");
}

static void reset_reuses_memory(void)
{
    AUTO(arena_free) struct arena a = { 0 };
    arena_alloc(&a, 100, 1);
    char *big = arena_alloc(&a, 100000, 1);
    arena_reset(&a);
    CHECK(a.used == 0);
    CHECK((char *)arena_alloc(&a, 100000, 1) == big);
    arena_free(&a);
    CHECK(a.head == NULL && a.used == 0);
    CHECK(arena_new(&a, int) != NULL);
}

static void limit_counts_what_was_given(void)
{
    AUTO(arena_free) struct arena a = { .limit = 1 << 20 };
    for (int i = 0; i < 16; i++)
        arena_alloc(&a, 1 << 16, 1);
    CHECK(a.used == 1 << 20);
    arena_reset(&a);
    arena_alloc(&a, 1 << 20, 1);
}

static const struct test tests[] = {
    { "memory is zeroed, aligned and does not overlap, also after a reset",
      memory_is_zeroed_aligned_and_apart },
    { "strings are copied and end with NUL", strings_are_copied },
    { "a reset keeps the largest block", reset_reuses_memory },
    { "an arena can be used up to its limit", limit_counts_what_was_given },
};
TEST_CASES(tests)
