#include "base/map.h"

#include <stdio.h>

#include "base/rng.h"
#include "tests/lib/test.h"

#define KEYS 600u

/* Few keys and many steps, so that collisions, removals inside runs and key 0 all happen. */
static void agrees_with_an_array(void)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        AUTO(map_free) struct map m = { 0 };
        struct rng r = { seed };
        uint64_t stride = rng_u64(&r) | 1, want[KEYS] = { 0 }, got;
        bool in[KEYS] = { false };
        size_t n = 0;
        uint32_t keys = 1 + rng_below(&r, KEYS);
        for (int step = 0; step < 4000; step++) {
            uint32_t k = rng_below(&r, keys);
            uint64_t key = seed % 2 ? k : k * stride;
            if (rng_below(&r, 5) < (step / 1000 % 2 ? 1u : 3u)) {
                n += !in[k];
                in[k] = true;
                want[k] = rng_u64(&r);
                map_set(&m, key, want[k]);
            } else {
                CHECK_AT(seed, map_remove(&m, key) == in[k]);
                n -= in[k];
                in[k] = false;
            }
            CHECK_AT(seed, m.n == n);
            k = rng_below(&r, keys);
            bool found = map_get(&m, seed % 2 ? k : k * stride, &got);
            CHECK_AT(seed, found == in[k] && (!found || got == want[k]));
        }
        for (uint32_t k = 0; k < keys; k++)
            CHECK_AT(seed, map_get(&m, seed % 2 ? k : k * stride, &got) == in[k] &&
                               (!in[k] || got == want[k]));
    }
}

static void an_absent_key_leaves_the_output(void)
{
    AUTO(map_free) struct map m = { 0 };
    uint64_t v = 77;
    CHECK(!map_get(&m, 1, &v) && !map_get(&m, 0, &v) && !map_remove(&m, 0));
    map_set(&m, 0, 5);
    CHECK(!map_get(&m, 1, &v) && v == 77);
    CHECK(map_get(&m, 0, &v) && v == 5);
    map_set(&m, UINT64_MAX, 6);
    CHECK(map_get(&m, UINT64_MAX, &v) && v == 6 && m.n == 2);
}

static void names_are_numbered_in_order(void)
{
    AUTO(names_free) struct names t = { 0 };
    char name[24];
    CHECK(names_find(&t, STR("a")) == NAME_NONE);
    for (uint32_t i = 0; i < 5000; i++) {
        int n = snprintf(name, sizeof name, "node%u", i);
        struct str s = { name, (size_t)n };
        CHECK(names_find(&t, s) == NAME_NONE);
        CHECK(names_intern(&t, s) == i && names_intern(&t, s) == i);
    }
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "node%u", i);
        CHECK(names_find(&t, str_of(name)) == i);
        CHECK_STR(names_get(&t, i), name);
    }
    CHECK(names_get(&t, 5000) == NULL && t.n == 5000);
}

static void names_may_be_odd(void)
{
    AUTO(names_free) struct names t = { 0 };
    CHECK(names_intern(&t, STR("")) == 0 && names_intern(&t, (struct str){ NULL, 0 }) == 0);
    CHECK(names_intern(&t, (struct str){ "node1", 4 }) == 1);
    CHECK_STR(names_get(&t, 1), "node");
    CHECK(names_intern(&t, STR("node\0x")) == 1 && names_find(&t, STR("node\0x")) == 1);
}

static const struct test tests[] = {
    { "a map agrees with an array on random operations", agrees_with_an_array },
    { "an absent key leaves the output alone; 0 is a key like any other",
      an_absent_key_leaves_the_output },
    { "names are numbered in the order first seen", names_are_numbered_in_order },
    { "a name may be empty, unterminated or cut by a NUL", names_may_be_odd },
};
TEST_CASES(tests)
