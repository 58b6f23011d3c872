#include "sys/worker.h"

#include <pthread.h>
#include <signal.h>

#include "sys/clock.h"
#include "tests/lib/test.h"

struct number {
    struct worker_item item;
    int v;
};

struct seen {
    struct loop *loop;
    struct worker *w;
    int sum, last, n, stop_at;
    bool in_order, nest;
};

static void back(void *ctx, struct worker_item *item)
{
    struct seen *s = ctx;
    struct number *x = (struct number *)item;
    s->in_order &= x->v == s->last + 1;
    s->last = x->v;
    s->n++;
    free(x);
    if (s->nest && s->n % 3 == 0)
        worker_await(s->w, 0);
    if (s->n == s->stop_at)
        loop_stop(s->loop);
}

static void hand_back(void *ctx, struct worker *w)
{
    (void)ctx;
    for (struct worker_item *list; (list = worker_take(w, true));)
        while (list) {
            struct worker_item *item = list;
            list = item->next;
            worker_return(w, item);
        }
}

static void give(struct worker *w, int from, int to)
{
    for (int i = from; i <= to; i++) {
        struct number *x = xcalloc(1, sizeof *x);
        x->v = i;
        worker_give(w, &x->item);
    }
}

static void items_come_back_on_the_loop_in_order(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l, .stop_at = 1000, .in_order = true };
    s.w = worker_new(l, hand_back, NULL, back, &s);
    give(s.w, 1, 1000);
    loop_run(l);
    CHECK(s.n == 1000 && s.in_order);
    s.w = worker_free(s.w);
}

static void the_end_delivers_everything(void)
{
    for (int round = 0; round < 50; round++) {
        AUTO(loop_free_p) struct loop *l = loop_new();
        struct seen s = { .loop = l, .in_order = true };
        s.w = worker_new(l, hand_back, NULL, back, &s);
        give(s.w, 1, round);
        s.w = worker_free(s.w);
        CHECK_AT(round, s.n == round && s.in_order);
    }
}

static void waiting_delivers_also_from_inside_a_delivery(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l, .in_order = true, .nest = true };
    s.w = worker_new(l, hand_back, NULL, back, &s);
    CHECK(!worker_await(s.w, 1));
    give(s.w, 1, 500);
    while (s.n < 500)
        CHECK(worker_await(s.w, TEST_PATIENCE_MS));
    CHECK(s.in_order);
    s.w = worker_free(s.w);
}

struct pausing {
    struct worker_item *kept;
    bool ended_early;
    int64_t paused_ns;
};

static void pause_long(void *ctx, struct worker *w)
{
    struct pausing *p = ctx;
    struct worker_item *list = worker_take(w, true);
    int64_t began = clock_mono_ns();
    worker_pause(w, 5);
    p->paused_ns = clock_mono_ns() - began;
    worker_return(w, list);
    p->ended_early = !worker_pause(w, 600000);
    while (worker_take(w, true))
        ;
}

static void a_pause_lasts_or_is_cut_by_the_end(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    struct seen s = { .loop = l, .in_order = true };
    struct pausing p = { 0 };
    s.w = worker_new(l, pause_long, &p, back, &s);
    give(s.w, 1, 1);
    CHECK(worker_await(s.w, TEST_PATIENCE_MS));
    s.w = worker_free(s.w);
    CHECK(s.n == 1 && p.ended_early && p.paused_ns >= 5000000);
}

static void look_at_signals(void *ctx, struct worker *w)
{
    sigset_t *mask = ctx;
    pthread_sigmask(SIG_SETMASK, NULL, mask);
    while (worker_take(w, true))
        ;
}

static void the_thread_takes_no_signals(void)
{
    AUTO(loop_free_p) struct loop *l = loop_new();
    sigset_t theirs, ours;
    sigemptyset(&theirs);
    worker_free(worker_new(l, look_at_signals, &theirs, back, NULL));
    CHECK(sigismember(&theirs, SIGTERM) && sigismember(&theirs, SIGXFSZ));
    pthread_sigmask(SIG_SETMASK, NULL, &ours);
    CHECK(!sigismember(&ours, SIGTERM));
    CHECK(worker_free(NULL) == NULL);
}

static const struct test tests[] = {
    { "items come back on the loop, in order", items_come_back_on_the_loop_in_order },
    { "the end delivers everything that was given", the_end_delivers_everything },
    { "waiting delivers, also from inside a delivery, in order",
      waiting_delivers_also_from_inside_a_delivery },
    { "a pause lasts its time, or is cut by the end", a_pause_lasts_or_is_cut_by_the_end },
    { "the thread takes no signals", the_thread_takes_no_signals },
};
TEST_CASES(tests)
