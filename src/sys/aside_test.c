#include "sys/aside.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test.h"

struct asking {
    struct loop *loop;
    struct aside *aside;
    int number; /* the copy changes its own */
    char heard[64];
    int told;
};

static void hear(void *ctx, const struct str *answer)
{
    struct asking *a = ctx;
    a->told++;
    snprintf(a->heard, sizeof a->heard, "%.*s", answer ? (int)answer->n : 7,
             answer ? answer->p : "nothing");
    a->aside = aside_free(a->aside);
    loop_stop(a->loop);
}

static void count_on(void *ctx, struct buf *out)
{
    struct asking *a = ctx;
    a->number++;
    buf_printf(out, "%d", a->number);
}

static void write_much(void *ctx, struct buf *out)
{
    (void)ctx;
    for (int i = 0; i < 1000; i++)
        buf_addz(out, "0123456789");
}

static void die(void *ctx, struct buf *out)
{
    (void)ctx;
    buf_addz(out, "half");
    raise(SIGKILL);
}

static void never_end(void *ctx, struct buf *out)
{
    (void)ctx;
    (void)out;
    for (;;)
        pause();
}

static void ask(struct asking *a, aside_work_fn *work, unsigned limit_s, size_t most)
{
    struct err e;
    *a = (struct asking){ .loop = loop_new(), .number = 41 };
    struct aside_ask q = { .loop = a->loop,
                           .work = work,
                           .done = hear,
                           .ctx = a,
                           .limit_s = limit_s,
                           .answer_max = most };
    a->aside = aside_begin(&q, &e);
    CHECK(a->aside);
}

static void a_copy_answers_and_changes_nothing_here(void)
{
    struct asking a;
    ask(&a, count_on, 60, 100);
    a.number = 0;
    loop_run(a.loop);
    CHECK_STR(a.heard, "42");
    CHECK_INT(a.number, 0);
    CHECK_INT(a.told, 1);
    loop_free(a.loop);
}

static void what_is_too_long_dies_or_never_ends_is_no_answer(void)
{
    static aside_work_fn *const work[] = { write_much, die, never_end };
    for (size_t i = 0; i < ARRAY_LEN(work); i++) {
        struct asking a;
        ask(&a, work[i], work[i] == never_end ? 1 : 60, 100);
        loop_run(a.loop);
        CHECK_STR(a.heard, "nothing");
        CHECK_INT(a.told, 1);
        loop_free(a.loop);
    }
}

static void one_that_is_let_go_is_not_heard_and_leaves_no_process(void)
{
    struct asking a;
    ask(&a, never_end, 60, 100);
    a.aside = aside_free(a.aside);
    CHECK_INT(a.told, 0);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0);
    loop_free(a.loop);
}

static const struct test tests[] = {
    { "a copy answers, and changes nothing here", a_copy_answers_and_changes_nothing_here },
    { "what is too long, dies or never ends is no answer",
      what_is_too_long_dies_or_never_ends_is_no_answer },
    { "one that is let go is not heard, and leaves no process",
      one_that_is_let_go_is_not_heard_and_leaves_no_process },
};
TEST_CASES(tests)
