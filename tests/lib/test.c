#include "tests/lib/test.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct running {
    const struct test *test;
    char line[320]; /* cmocka prints it after the test, so a skip can edit it */
};

/* cmocka's own skip prints "not ok", which counts as a failure; so a skipped test returns from
 * here as passed, under a name that carries TAP's directive.  The jump needs a home that a
 * void(void) can reach: the first of two mutable globals. */
static jmp_buf skip_jump;
static char skip_reason[160];

/* What is said goes to stderr: cmocka owns stdout, where every line must be TAP. */
void test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    _fail(file, line);
    abort(); /* not reached: cmocka jumps back to its runner, which it does not tell the compiler */
}

void test_skip(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(skip_reason, sizeof skip_reason, fmt, ap);
    va_end(ap);
    longjmp(skip_jump, 1);
}

void test_str(const char *file, int line, const char *what, const char *got, const char *want)
{
    if (got == want || (got && want && strcmp(got, want) == 0))
        return;
    test_fail(file, line, "%s is '%s', not '%s'", what, got ? got : "(null)",
              want ? want : "(null)");
}

void test_int(const char *file, int line, const char *what, long long got, long long want)
{
    if (got != want)
        test_fail(file, line, "%s is %lld, not %lld", what, got, want);
}

static void run_one(void **state)
{
    struct running *r = *state;
    if (setjmp(skip_jump) == 0) {
        r->test->fn();
        return;
    }
    snprintf(r->line + strlen(r->line), sizeof r->line - strlen(r->line), " # SKIP %s",
             skip_reason);
}

/* The cases of one file.  Constructors cannot be handed anything: the second mutable global. */
struct joined {
    char module[64];
    const struct test *tests;
    size_t n;
};
static struct joined joined[256];
static size_t joined_n;

/* "../src/core/place_test.c" is called place. */
static void name_module(const char *file, char *out, size_t size)
{
    const char *base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    snprintf(out, size, "%.*s", (int)strcspn(base, "."), base);
    char *kind = strrchr(out, '_');
    if (kind && (strcmp(kind, "_test") == 0 || strcmp(kind, "_prop") == 0))
        *kind = 0;
}

void test_join(const char *file, const struct test *tests, size_t n)
{
    if (joined_n == sizeof joined / sizeof joined[0])
        abort();
    struct joined *j = &joined[joined_n++];
    *j = (struct joined){ .tests = tests, .n = n };
    name_module(file, j->module, sizeof j->module);
}

/* No pattern wants everything. */
static bool wanted(const struct running *r, const char *module, int argc, char **argv)
{
    bool is = argc < 2;
    for (int i = 1; i < argc && !is; i++)
        is = fnmatch(argv[i], module, 0) == 0 || fnmatch(argv[i], r->test->name, 0) == 0 ||
             fnmatch(argv[i], r->line, 0) == 0;
    return is;
}

/* How many of the cases that joined are wanted; `rows` and `runs` have room for all of them. */
static size_t choose(struct CMUnitTest *rows, struct running *runs, int argc, char **argv)
{
    size_t n = 0;
    for (size_t i = 0; i < joined_n; i++)
        for (size_t k = 0; k < joined[i].n; k++) {
            struct running *r = &runs[n];
            *r = (struct running){ .test = &joined[i].tests[k] };
            snprintf(r->line, sizeof r->line, "%.60s: %.240s", joined[i].module, r->test->name);
            if (!wanted(r, joined[i].module, argc, argv))
                continue;
            rows[n++] =
                (struct CMUnitTest){ .name = r->line, .test_func = run_one, .initial_state = r };
        }
    return n;
}

int main(int argc, char **argv)
{
    size_t all = 0;
    for (size_t i = 0; i < joined_n; i++)
        all += joined[i].n;
    struct CMUnitTest *rows = calloc(all + 1, sizeof *rows);
    struct running *runs = calloc(all + 1, sizeof *runs);
    if (!rows || !runs)
        abort();
    size_t n = choose(rows, runs, argc, argv);
    int failed = -1;
    if (n == 0)
        fprintf(stderr, "%s: no test is called so\n", argv[0]);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (n > 0) {
        failed = _cmocka_run_group_tests(argv[0], rows, n, NULL, NULL);
        putchar('\n'); /* cmocka leaves its last line open */
    }
    free(runs);
    free(rows);
    return n == 0 ? 2 : failed == 0 ? 0 : 1;
}
