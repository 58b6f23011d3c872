/* test - what a test file needs: checks, and a list of sentences that joins its program.
 *
 * The files of one layer are one program.  Output is TAP, one line a test, so the runner counts
 * cases and not files.  A failed check ends its test at once and the next one runs.  cmocka does
 * the work and stays behind this header: a test that needs more of it than this is usually a test
 * of the wrong thing.
 *
 * A test program takes patterns, of a file's cases (`core_test place`), of a sentence
 * (`core_test 'a gang*'`) or of both (`core_test 'place: a gang*'`).
 */
#ifndef NS_TESTS_LIB_TEST_H
#define NS_TESTS_LIB_TEST_H

#include <stddef.h>

struct test {
    const char *name; /* a sentence about behaviour */
    void (*fn)(void);
};

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond))                                                                               \
            test_fail(__FILE__, __LINE__, "%s", #cond);                                            \
    } while (0)

/* For generated worlds: the seed is the bug report. */
#define CHECK_AT(seed, cond)                                                                       \
    do {                                                                                           \
        if (!(cond))                                                                               \
            test_fail(__FILE__, __LINE__, "seed %llu: %s", (unsigned long long)(seed), #cond);     \
    } while (0)

/* Both print what was found and what was wanted; NULL equals only NULL. */
#define CHECK_STR(got, want) test_str(__FILE__, __LINE__, #got, (got), (want))
#define CHECK_INT(got, want) test_int(__FILE__, __LINE__, #got, (long long)(got), (long long)(want))

/* How long any test waits for what is to happen.  It bounds what is broken, not what is slow. */
#define TEST_PATIENCE_MS 300000

/* Ends the test; it counts as skipped and the reason is printed. */
#define SKIP(...) test_skip(__VA_ARGS__)

/* Once in each file of tests, at its end: before main begins, its cases join the program's. */
#define TEST_CASES(list)                                                                           \
    __attribute__((constructor)) static void test_join_here(void)                                  \
    {                                                                                              \
        test_join(__FILE__, list, sizeof(list) / sizeof((list)[0]));                               \
    }

void test_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
void test_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void test_str(const char *file, int line, const char *what, const char *got, const char *want);
void test_int(const char *file, int line, const char *what, long long got, long long want);
void test_join(const char *file, const struct test *tests, size_t n);

#endif
