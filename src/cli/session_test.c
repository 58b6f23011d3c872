#include "cli/session.h"

#include "tests/lib/test.h"

static void what_was_seen_twice_is_found(void)
{
    static const struct {
        const char *past, *now;
        size_t same;
    } cases[] = {
        { "", "", 0 },
        { "prompt$ ", "", 0 },
        { "", "prompt$ ", 0 },
        { "one two", "three", 0 },
        { "one two", "two three", 3 },
        { "one two", "one two", 7 },
        { "two", "two two", 3 },
        { "abab", "ababx", 4 },
        { "xab", "abab", 2 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_INT(session_overlap(str_of(cases[i].past), str_of(cases[i].now)), cases[i].same);
}

static const struct test tests[] = {
    { "what was seen twice is found", what_was_seen_twice_is_found },
};
TEST_MAIN(tests)
