#include "base/str.h"

#include "base/rng.h"
#include "tests/lib/test.h"

static void equal_is_bytewise(void)
{
    CHECK(str_eq(STR("abc"), STR("abc")) && !str_eq(STR("abc"), STR("abd")));
    CHECK(str_eq((struct str){ NULL, 0 }, STR("")));
    CHECK(str_is(STR("x"), "x") && !str_is(STR("x"), "xy") && !str_is(STR("a\0b"), "a"));
}

static void trim_takes_both_ends(void)
{
    CHECK(str_is(str_trim(STR(" \t a b\r\n")), "a b"));
    CHECK(str_is(str_trim(STR(" \n\t")), ""));
    CHECK(str_trim((struct str){ NULL, 0 }).n == 0);
}

static void cut_splits_at_the_first(void)
{
    struct str head, tail;
    CHECK(str_cut(STR("a=b=c"), '=', &head, &tail));
    CHECK(str_is(head, "a") && str_is(tail, "b=c"));
    CHECK(!str_cut(STR("abc"), '=', &head, &tail));
    CHECK(str_is(head, "abc") && tail.n == 0);
    CHECK(str_cut(STR("="), '=', &head, &tail) && head.n == 0 && tail.n == 0);
}

static void lines_come_one_by_one(void)
{
    struct str rest = STR("one\r\n\ntwo\nlast"), line;
    CHECK(str_next_line(&rest, &line) && str_is(line, "one"));
    CHECK(str_next_line(&rest, &line) && str_is(line, ""));
    CHECK(str_next_line(&rest, &line) && str_is(line, "two"));
    CHECK(str_next_line(&rest, &line) && str_is(line, "last"));
    CHECK(!str_next_line(&rest, &line));
    rest = STR("a\n");
    CHECK(str_next_line(&rest, &line) && !str_next_line(&rest, &line));
}

static void words_come_one_by_one(void)
{
    struct str rest = STR("  run\t--gpus 4 "), word;
    CHECK(str_next_word(&rest, &word) && str_is(word, "run"));
    CHECK(str_next_word(&rest, &word) && str_is(word, "--gpus"));
    CHECK(str_next_word(&rest, &word) && str_is(word, "4"));
    CHECK(!str_next_word(&rest, &word) && rest.n == 0);
}

static void bytes_and_digits_are_taken_off_the_front(void)
{
    struct str rest = STR("12:0x");
    uint32_t v = 7;
    CHECK(!str_take(&rest, ':') && !str_take_digits(&rest, 3, &v) && str_is(rest, "12:0x"));
    CHECK(str_take_digits(&rest, 2, &v) && v == 12 && str_take(&rest, ':'));
    CHECK(!str_take_digits(&rest, 2, &v) && v == 12 && str_is(rest, "0x"));
    CHECK(str_take_digits(&rest, 1, &v) && v == 0 && str_take(&rest, 'x'));
    CHECK(!str_take(&rest, '\0') && !str_take_digits(&rest, 1, &v) && rest.n == 0);
}

static void hashes_differ(void)
{
    CHECK(str_hash(STR("ab")) == str_hash((struct str){ "abc", 2 }));
    CHECK(str_hash(STR("")) != str_hash(STR("\0")));
    CHECK(str_hash(STR("\0")) != str_hash(STR("\0\0")));
    /* Each single bit of a long name moves the low bits, which is where a table looks. */
    char name[40] = "the-very-long-name-of-a-machine-in-a-la";
    uint64_t h = str_hash((struct str){ name, sizeof name });
    for (size_t i = 0; i < sizeof name * 8; i++) {
        name[i / 8] = (char)(name[i / 8] ^ 1 << i % 8);
        uint64_t g = str_hash((struct str){ name, sizeof name });
        int flipped = __builtin_popcountll(h ^ g);
        CHECK_AT(i, flipped >= 12 && flipped <= 52);
        name[i / 8] = (char)(name[i / 8] ^ 1 << i % 8);
    }
}

static void utf8_is_told_from_other_bytes(void)
{
    CHECK(str_is_utf8(STR("")) && str_is_utf8(STR("ab\0c")) && str_is_utf8(STR("Übung → 🌙")));
    CHECK(!str_is_utf8(STR("a\xff")) && !str_is_utf8(STR("\xc3")) && !str_is_utf8(STR("\xc0\x80")));
    CHECK(!str_is_utf8(STR("\xed\xa0\x80")) && !str_is_utf8(STR("\xf4\x90\x80\x80")));
    CHECK(str_utf8_len(STR("→x")) == 3 && str_utf8_len(STR("x→")) == 1);
}

static const struct test tests[] = {
    { "strings are equal byte by byte", equal_is_bytewise },
    { "trimming takes blanks off both ends", trim_takes_both_ends },
    { "a cut splits at the first separator", cut_splits_at_the_first },
    { "lines come one by one, with LF or CRLF, the last without", lines_come_one_by_one },
    { "words come one by one", words_come_one_by_one },
    { "bytes and digits are taken off the front", bytes_and_digits_are_taken_off_the_front },
    { "every bit of a string reaches its hash", hashes_differ },
    { "UTF-8 is told from other bytes", utf8_is_told_from_other_bytes },
};
TEST_CASES(tests)
