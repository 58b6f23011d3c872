#include "core/zone.h"

#include <stdio.h>

#include "base/rng.h"
#include "tests/lib/test.h"

static void equal_sets_are_one(void)
{
    AUTO(zones_free) struct zones z = { 0 };
    CHECK_INT(zones_find(&z, STR("b|a"), 0), 0);
    uint32_t ab = zones_intern(&z, STR("b|a"), 0);
    CHECK(ab == 1 && zones_intern(&z, STR("a|b|a"), 0) == ab &&
          zones_find(&z, STR("a| b"), 0) == ab);
    CHECK(str_is(zones_get(&z, ab), "a|b") && z.used == 1);
    uint32_t a = zones_intern(&z, STR("c|a"), ab); /* what of it is in the other */
    CHECK(str_is(zones_get(&z, a), "a") && zones_intern(&z, STR("a"), 0) == a);
    uint32_t none = zones_intern(&z, STR("c"), ab);
    CHECK(str_is(zones_get(&z, none), "") && !zones_has(&z, none, STR("c")));
}

static void the_number_of_a_forgotten_set_is_used_again(void)
{
    AUTO(zones_free) struct zones z = { 0 };
    bool keep[4] = { false, true, false, true };
    zones_intern(&z, STR("a"), 0);
    zones_intern(&z, STR("b"), 0);
    zones_intern(&z, STR("c"), 0);
    zones_keep(&z, keep);
    CHECK(z.used == 2 && zones_find(&z, STR("b"), 0) == 0 && zones_find(&z, STR("c"), 0) == 3);
    CHECK_INT(zones_intern(&z, STR("d"), 0), 2);
    CHECK_INT(zones_intern(&z, STR("e"), 0), 4);
}

static void a_set_has_its_names_and_no_others(void)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        AUTO(zones_free) struct zones z = { 0 };
        struct rng rng = { seed };
        bool in[200] = { false };
        char text[2000] = "", name[8];
        size_t n = 0;
        for (uint32_t i = rng_between(&rng, 1, 200); i > 0; i--) {
            uint32_t one = rng_below(&rng, ARRAY_LEN(in));
            in[one] = true;
            n += (size_t)snprintf(text + n, sizeof text - n, "%sx%u", n ? "|" : "", one);
        }
        uint32_t set = zones_intern(&z, str_of(text), 0);
        for (uint32_t i = 0; i < ARRAY_LEN(in); i++) {
            snprintf(name, sizeof name, "x%u", i);
            CHECK_AT(seed, zones_has(&z, set, str_of(name)) == in[i]);
        }
        CHECK_AT(seed, !zones_has(&z, set, STR("")) && !zones_has(&z, set, STR("x")) &&
                           !zones_has(&z, set, STR("y")) && !zones_has(&z, set, STR("|")));
    }
}

static void names_have_bounds(void)
{
    struct err e;
    char name[TRAITS_NAME_MAX + 1], list[TRAITS_TEXT_MAX + 1];
    memset(name, 'x', sizeof name);
    memset(list, 'x', sizeof list);
    for (size_t i = 60; i < sizeof list; i += 60)
        list[i] = '|';
    CHECK(traits_check(STR(""), &e) == 0 && traits_check(STR("a|b"), &e) == 0);
    CHECK(traits_check((struct str){ name, TRAITS_NAME_MAX }, &e) == 0);
    CHECK(traits_check((struct str){ name, sizeof name }, &e) < 0);
    CHECK_STR(e.msg, "traits: names have 1 to 64 bytes");
    CHECK(traits_check((struct str){ list, TRAITS_TEXT_MAX }, &e) == 0);
    CHECK(traits_check((struct str){ list, sizeof list }, &e) < 0 && e.code == ERR_TOO_LARGE);
    static const char *const bad[] = { "|", "a|", "|a", "a||b", "a b", "a\n" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(traits_check(str_of(bad[i]), &e) < 0 && e.code == ERR_INVALID);
    CHECK(traits_check_name(STR("n"), STR("a|b"), &e) < 0);
    CHECK_STR(e.msg, "node 'n': traits: a machine has one name, without '|'");
}

static const struct test tests[] = {
    { "equal sets are one", equal_sets_are_one },
    { "the number of a forgotten set is used again", the_number_of_a_forgotten_set_is_used_again },
    { "a set has its names and no others", a_set_has_its_names_and_no_others },
    { "names have bounds", names_have_bounds },
};
TEST_CASES(tests)
