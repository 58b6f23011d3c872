#include "tests/lib/test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct running {
    const struct test *test;
    struct CMUnitTest *row; /* cmocka prints row->name after the test, so a skip can edit it */
    char line[256];
};

/* cmocka's own skip prints "not ok", which counts as a failure; so a skipped test returns from
 * here as passed, under a name that carries TAP's directive.  The jump needs a home that a
 * void(void) can reach: this is the only mutable global. */
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
    snprintf(r->line, sizeof r->line, "%s # SKIP %s", r->test->name, skip_reason);
    r->row->name = r->line;
}

int test_main(const struct test *tests, size_t n, int argc, char **argv)
{
    struct CMUnitTest *rows = calloc(n, sizeof *rows);
    struct running *runs = calloc(n, sizeof *runs);
    if (!rows || !runs)
        abort();
    for (size_t i = 0; i < n; i++) {
        runs[i] = (struct running){ .test = &tests[i], .row = &rows[i] };
        rows[i] = (struct CMUnitTest){ .name = tests[i].name,
                                       .test_func = run_one,
                                       .initial_state = &runs[i] };
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    int failed = _cmocka_run_group_tests(argv[0], rows, n, NULL, NULL);
    putchar('\n'); /* cmocka leaves its last line open */
    free(runs);
    free(rows);
    return failed == 0 ? 0 : 1;
}
