#include "sys/loop.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "sys/clock.h"
#include "tests/lib/test.h"

struct seen {
    struct loop *loop;
    struct loop_watch *watch;
    int calls, stop_after;
    unsigned events;
};

static void count(void *ctx)
{
    struct seen *s = ctx;
    if (++s->calls == s->stop_after)
        loop_stop(s->loop);
}

static void count_fd(void *ctx, unsigned events)
{
    struct seen *s = ctx;
    s->events = events;
    count(s);
}

static void a_one_shot_timer_fires_once(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l };
    struct loop_watch *t = loop_timer(l, count, &s);
    int64_t began_ns = clock_mono_ns();
    loop_timer_set(t, 20, 0);
    loop_run(l); /* returns by itself: nothing is left to wait for */
    CHECK(s.calls == 1 && clock_mono_ns() - began_ns >= 19000000);
    loop_timer_set(t, 1, 0);
    loop_timer_clear(t);
    loop_run(l);
    CHECK(s.calls == 1);
}

static void a_repeating_timer_goes_on(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l, .stop_after = 5 };
    loop_timer_set(loop_timer(l, count, &s), 1, 1);
    loop_run(l);
    CHECK(s.calls == 5);
}

static void unwatch_self(void *ctx)
{
    struct seen *s = ctx;
    s->calls++;
    s->watch = loop_unwatch(s->watch);
}

static void a_watch_may_end_itself(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l };
    s.watch = loop_timer(l, unwatch_self, &s);
    loop_timer_set(s.watch, 1, 1);
    loop_run(l);
    CHECK(s.calls == 1 && s.watch == NULL);
    CHECK(loop_unwatch(NULL) == NULL);
}

static void raise_usr1(void *ctx)
{
    (void)ctx;
    raise(SIGUSR1);
}

static void a_signal_reaches_the_loop(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l, .stop_after = 1 };
    struct err e;
    CHECK(loop_signal(l, SIGUSR1, count, &s, &e) != NULL);
    loop_timer_set(loop_timer(l, raise_usr1, NULL), 1, 0);
    loop_run(l);
    CHECK(s.calls == 1);
    CHECK(loop_signal(l, SIGKILL, count, &s, &e) == NULL && e.msg[0]);
}

static void *send_twice(void *wakeup)
{
    loop_wakeup_send(wakeup);
    loop_wakeup_send(wakeup);
    return NULL;
}

static void a_thread_can_wake_the_loop(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l, .stop_after = 1 };
    struct loop_watch *w = loop_wakeup(l, count, &s);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, send_twice, w) == 0);
    loop_run(l);
    pthread_join(thread, NULL);
    CHECK(s.calls == 1);
}

static void a_descriptor_is_watched(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l, .stop_after = 1 };
    struct err e;
    int ends[2];
    CHECK(pipe(ends) == 0);
    s.watch = loop_fd(l, ends[0], count_fd, &s, &e);
    CHECK(s.watch && loop_fd_set(s.watch, LOOP_READ, &e) == 0);
    CHECK(write(ends[1], "x", 1) == 1);
    loop_run(l);
    CHECK(s.calls == 1 && s.events == LOOP_READ);
    CHECK(loop_fd_set(s.watch, 0, &e) == 0);
    loop_run(l); /* paused: nothing to wait for */
    CHECK(s.calls == 1);
    s.watch = loop_unwatch(s.watch);
    close(ends[0]);
    close(ends[1]);
    CHECK(loop_fd(l, 9999, count_fd, &s, &e) == NULL && e.msg[0]);
}

static void a_loop_takes_its_watches_along(void)
{
    struct loop *l = loop_new();
    struct seen s = { .loop = l };
    loop_timer_set(loop_timer(l, count, &s), 1000000, 0);
    loop_wakeup(l, count, &s);
    loop_stop(l); /* a stop left over must not keep it from ending */
    CHECK(loop_free(l) == NULL && s.calls == 0);
    CHECK(loop_free(NULL) == NULL);
}

static const struct test tests[] = {
    { "a one-shot timer fires once, and not early", a_one_shot_timer_fires_once },
    { "a repeating timer goes on until the loop stops", a_repeating_timer_goes_on },
    { "a watch may end itself in its callback", a_watch_may_end_itself },
    { "a signal reaches the loop", a_signal_reaches_the_loop },
    { "another thread can wake the loop; two sends are one call", a_thread_can_wake_the_loop },
    { "a descriptor is watched, and can be paused", a_descriptor_is_watched },
    { "a loop takes its watches along", a_loop_takes_its_watches_along },
};
TEST_CASES(tests)
