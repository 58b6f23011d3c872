/* try_wait - a test that runs its own loop until something is so.  Every wait ends with a failed check after
 * TEST_PATIENCE_MS.
 */
#ifndef NS_TESTS_LIB_TRY_WAIT_H
#define NS_TESTS_LIB_TRY_WAIT_H

#include "sys/loop.h"
#include "tests/lib/test.h"

#define TRY_UNUSED __attribute__((unused))

struct try_wait {
    struct loop *loop;
    bool (*done)(void *ctx);
    void *ctx;
    bool late;
};

static void try_look(void *ctx)
{
    struct try_wait *w = ctx;
    if (w->done(w->ctx))
        loop_stop(w->loop);
}

static void try_late(void *ctx)
{
    struct try_wait *w = ctx;
    w->late = true;
    loop_stop(w->loop);
}

/* Runs the loop until done(ctx). */
static TRY_UNUSED void try_until(struct loop *l, bool (*done)(void *ctx), void *ctx)
{
    struct try_wait w = { l, done, ctx, false };
    struct loop_watch *look = loop_timer(l, try_look, &w), *late = loop_timer(l, try_late, &w);
    loop_timer_set(look, 0, 1);
    loop_timer_set(late, TEST_PATIENCE_MS, 0);
    while (!w.late && !done(ctx))
        loop_run(l);
    loop_unwatch(look);
    loop_unwatch(late);
    CHECK(!w.late);
}

/* Some turns of the loop, for what must not happen in them. */
static bool try_turned(void *ctx)
{
    return ++*(int *)ctx > 30;
}

static TRY_UNUSED void try_turns(struct loop *l)
{
    int turns = 0;
    try_until(l, try_turned, &turns);
}

#endif
