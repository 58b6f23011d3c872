#include "tests/lib/conform.h"

#include <signal.h>

#include "tests/lib/test.h"

#define LONG_MS 600000 /* a program that is still there when the case is over */

void conform_sink(void *conform, const struct engine_event *ev)
{
    struct conform *c = conform;
    struct conform_event seen = { .kind = ev->kind, .task = ev->task };
    if (ev->kind == ENGINE_KEPT || ev->kind == ENGINE_RECORD) /* of what is kept, not of tasks */
        return;
    if (ev->kind == ENGINE_ENDED) {
        seen.code = ev->ended.code;
        seen.signal = ev->ended.signal;
        seen.why = ev->ended.why;
    }
    if (ev->kind == ENGINE_NODE) {
        c->nodes++;
        for (uint32_t i = 0; i < ev->machine.node->gpus; i++)
            c->unnamed_gpu |= !ev->machine.gpu_uuid || !ev->machine.gpu_uuid[i];
    }
    vec_grow(c->seen, c->n, c->cap);
    c->seen[c->n++] = seen;
}

void conform_clear(struct conform *c)
{
    free(c->seen);
    c->seen = NULL;
}

/* ---- words of the cases ---- */

static struct task_id task(uint64_t job)
{
    return (struct task_id){ .job = job, .run = 1 };
}

static bool is_about(const struct conform_event *ev, enum engine_event_kind kind, struct task_id t)
{
    bool of_task = kind != ENGINE_READY && kind != ENGINE_NODE && kind != ENGINE_AWAY;
    return ev->kind == kind && (!of_task || (ev->task.job == t.job && ev->task.run == t.run &&
                                             ev->task.replica == t.replica));
}

static size_t count(const struct conform *c, enum engine_event_kind kind, struct task_id t)
{
    size_t n = 0;
    for (size_t i = c->mark; i < c->n; i++)
        n += is_about(&c->seen[i], kind, t);
    return n;
}

/* From now on only what is told from now on counts. */
static void look_from_here(struct conform *c)
{
    c->mark = c->n;
}

static struct conform_event await(struct conform *c, enum engine_event_kind kind, struct task_id t)
{
    for (int64_t waited = 0; waited <= c->patience_ms; waited += 10) {
        for (size_t i = c->mark; i < c->n; i++)
            if (is_about(&c->seen[i], kind, t))
                return c->seen[i];
        c->advance(c->ctx, 10);
    }
    char text[64];
    test_fail(__FILE__, __LINE__, "no %s of task %s in time", engine_event_name(kind),
              task_format(t, text));
}

static int stop_signal(const struct conform *c)
{
    return c->stop_signal ? c->stop_signal : SIGTERM;
}

/* Long enough for whatever was wrongly asked to be seen: where time is virtual, a time; on a real cluster, until a
 * program that is asked for now has come and gone. */
static void be_quiet(struct conform *c)
{
    uint64_t marker = 900 + c->n; /* of no other task: events have come since */
    if (!c->quiet_ms) {
        conform_start(c, marker, (struct conform_program){ .run_ms = 20 });
        await(c, ENGINE_ENDED, task(marker));
    }
    for (int64_t waited = 0; waited < c->quiet_ms; waited += 10)
        c->advance(c->ctx, 10);
}

static void sync_now(struct conform *c)
{
    struct err e;
    look_from_here(c);
    CHECK(c->engine.ops->sync(c->engine.self, &e) == 0);
    await(c, ENGINE_READY, task(0));
}

static void start_limited(struct conform *c, uint64_t job, struct conform_program p,
                          int64_t max_time_ms)
{
    AUTO(arena_free) struct arena a = { 0 };
    static const char *const none[] = { NULL };
    struct spec s = { .image = STR("host"),
                      .network = NETWORK_NONE,
                      .freeze = FREEZE_SIGNAL,
                      .freeze_signal = SIGUSR1,
                      .grace_ms = 2000,
                      .env = none,
                      .request = { .replicas = 1, .cpu_milli = 500, .mem_mib = 64 } };
    struct slot slot = { .milli = GPU_MILLI };
    struct err e = { 0 };
    c->program(c->ctx, &p, &a, &s);
    struct engine_start start = { .task = task(job),
                                  .spec = &s,
                                  .user = c->user,
                                  .tenant = c->tenant.n ? c->tenant : STR("vision"),
                                  .node = c->node,
                                  .slots = &slot,
                                  .n_slots = 1,
                                  .env = none,
                                  .max_time_ms = max_time_ms };
    CHECK(c->engine.ops->start(c->engine.self, &start, &e) == 0);
}

void conform_start(struct conform *c, uint64_t job, struct conform_program p)
{
    start_limited(c, job, p, 0);
}

struct conform_event conform_await(struct conform *c, enum engine_event_kind kind, uint64_t job)
{
    return await(c, kind, task(job));
}

/* STARTED comes before its first instruction; now it is also ready for signals. */
static void started(struct conform *c, uint64_t job, struct conform_program p)
{
    conform_start(c, job, p);
    await(c, ENGINE_STARTED, task(job));
    for (int64_t waited = 0; c->runs(c->ctx, task(job)) == 0; waited += 10) {
        CHECK(waited <= c->patience_ms);
        c->advance(c->ctx, 10);
    }
}

static void stop(struct conform *c, uint64_t job, int64_t grace_ms)
{
    struct err e;
    CHECK(c->engine.ops->stop(c->engine.self, task(job), grace_ms, END_STOPPED, &e) == 0);
}

typedef int verb_fn(void *self, struct task_id t, struct err *e);
static void tell(struct conform *c, verb_fn *verb, uint64_t job)
{
    struct err e;
    CHECK(verb(c->engine.self, task(job), &e) == 0);
}

static void send_signal(struct conform *c, uint64_t job, int signo)
{
    struct err e;
    CHECK(c->engine.ops->signal(c->engine.self, task(job), signo, &e) == 0);
}

static void need(struct conform *c, enum engine_cap cap)
{
    if (!c->engine.caps[cap])
        SKIP("the engine has no %s here", engine_cap_name(cap));
}

/* ---- the cases ---- */

void conform_ready(struct conform *c)
{
    CHECK(c->nodes > 0); /* whoever opened it has waited for the first READY */
    CHECK(!c->unnamed_gpu);
    sync_now(c);
    sync_now(c);
    be_quiet(c);
    CHECK_INT(count(c, ENGINE_READY, task(0)), 1);
}

void conform_caps(struct conform *c)
{
    const struct engine_ops *o = c->engine.ops;
    const bool *can = c->engine.caps;
    CHECK(o->name && o->sync && o->start && o->stop && o->forget && o->purge && o->log_dir);
    CHECK(o->free);
    CHECK(!can[CAP_PAUSE] || (o->pause && o->resume));
    CHECK(!can[CAP_SIGNAL] || o->signal);
    CHECK(!can[CAP_ATTACH] || o->open_stream);
    CHECK(!can[CAP_EXEC] || o->open_stream);
}

void conform_exit_codes(struct conform *c)
{
    static const int codes[] = { 0, 7, 255 };
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        conform_start(c, 10 + i, (struct conform_program){ .run_ms = 20, .code = codes[i] });
        struct conform_event ev = await(c, ENGINE_ENDED, task(10 + i));
        CHECK_INT(ev.code, codes[i]);
        CHECK_INT(ev.signal, 0);
        CHECK_STR(task_end_name(ev.why), "exited");
        CHECK_INT(count(c, ENGINE_STARTED, task(10 + i)), 1);
    }
}

void conform_once(struct conform *c)
{
    struct conform_program p = { .run_ms = 400 };
    conform_start(c, 1, p);
    conform_start(c, 1, p);
    await(c, ENGINE_STARTED, task(1));
    conform_start(c, 1, p);
    await(c, ENGINE_ENDED, task(1));
    be_quiet(c);
    CHECK_INT(c->runs(c->ctx, task(1)), 1);
    CHECK_INT(count(c, ENGINE_FAILED, task(1)), 0);
}

void conform_not_again(struct conform *c)
{
    struct conform_program p = { .run_ms = 20, .code = 3 };
    conform_start(c, 1, p);
    await(c, ENGINE_ENDED, task(1));
    conform_start(c, 1, p);
    be_quiet(c);
    CHECK_INT(c->runs(c->ctx, task(1)), 1);
    sync_now(c);
    CHECK_INT(count(c, ENGINE_ENDED, task(1)), 1);
}

void conform_failed(struct conform *c)
{
    conform_start(c, 1, (struct conform_program){ .run_ms = 20, .cannot_start = true });
    await(c, ENGINE_FAILED, task(1));
    be_quiet(c);
    CHECK_INT(count(c, ENGINE_FAILED, task(1)), 1);
    CHECK_INT(count(c, ENGINE_STARTED, task(1)), 0);
    CHECK_INT(count(c, ENGINE_ENDED, task(1)), 0);
    CHECK_INT(c->runs(c->ctx, task(1)), 0);
}

void conform_stop(struct conform *c)
{
    started(c, 1, (struct conform_program){ .run_ms = LONG_MS });
    stop(c, 1, LONG_MS);
    struct conform_event ev = await(c, ENGINE_ENDED, task(1));
    CHECK_INT(ev.signal, stop_signal(c));
    CHECK_STR(task_end_name(ev.why), "stopped");
}

void conform_stop_hard(struct conform *c)
{
    started(c, 1, (struct conform_program){ .run_ms = LONG_MS, .ignores_term = true });
    stop(c, 1, 300);
    struct conform_event ev = await(c, ENGINE_ENDED, task(1));
    CHECK_INT(ev.signal, SIGKILL);
    CHECK_STR(task_end_name(ev.why), "stopped");
}

void conform_stop_at_once(struct conform *c)
{
    started(c, 1, (struct conform_program){ .run_ms = LONG_MS });
    stop(c, 1, 0);
    struct conform_event ev = await(c, ENGINE_ENDED, task(1));
    CHECK(ev.signal == SIGKILL || (c->asks_first && ev.signal == stop_signal(c)));
}

void conform_hurry(struct conform *c)
{
    started(c, 1, (struct conform_program){ .run_ms = LONG_MS, .ignores_term = true });
    stop(c, 1, LONG_MS);
    be_quiet(c);
    CHECK_INT(count(c, ENGINE_ENDED, task(1)), 0);
    stop(c, 1, 0);
    CHECK_STR(task_end_name(await(c, ENGINE_ENDED, task(1)).why), "stopped");
}

void conform_signals(struct conform *c)
{
    need(c, CAP_SIGNAL);
    started(c, 1, (struct conform_program){ .run_ms = LONG_MS, .saves_with = 85 });
    send_signal(c, 1, SIGUSR1);
    struct conform_event ev = await(c, ENGINE_ENDED, task(1));
    CHECK_INT(ev.code, 85);
    CHECK_INT(ev.signal, 0);
    CHECK_STR(task_end_name(ev.why), "exited");
}

static bool paused_before_its_end(struct conform *c, uint64_t job, int64_t run_ms)
{
    started(c, job, (struct conform_program){ .run_ms = run_ms, .code = 4 });
    tell(c, c->engine.ops->pause, job);
    for (int64_t waited = 0; waited <= c->patience_ms; waited += 10) {
        if (count(c, ENGINE_PAUSED, task(job)))
            return true;
        if (count(c, ENGINE_ENDED, task(job)))
            return false;
        c->advance(c->ctx, 10);
    }
    test_fail(__FILE__, __LINE__, "a pause was not told");
}

void conform_pause(struct conform *c)
{
    need(c, CAP_PAUSE);
    int64_t run_ms = 1500;
    uint64_t job = 1;
    while (!paused_before_its_end(c, job, run_ms)) { /* on a slow machine the next has more time */
        CHECK(run_ms < LONG_MS);
        run_ms *= 8;
        job++;
    }
    for (int64_t waited = 0; waited < run_ms + 1000; waited += 10)
        c->advance(c->ctx, 10);
    CHECK_INT(count(c, ENGINE_ENDED, task(job)), 0);
    tell(c, c->engine.ops->resume, job);
    await(c, ENGINE_RESUMED, task(job));
    CHECK_INT(await(c, ENGINE_ENDED, task(job)).code, 4);
}

void conform_stop_paused(struct conform *c)
{
    need(c, CAP_PAUSE);
    started(c, 1, (struct conform_program){ .run_ms = LONG_MS });
    tell(c, c->engine.ops->pause, 1);
    await(c, ENGINE_PAUSED, task(1));
    stop(c, 1, LONG_MS);
    struct conform_event ev = await(c, ENGINE_ENDED, task(1));
    CHECK_INT(ev.signal, stop_signal(c));
    CHECK_STR(task_end_name(ev.why), "stopped");
}

void conform_pause_again(struct conform *c)
{
    need(c, CAP_PAUSE);
    started(c, 1, (struct conform_program){ .run_ms = LONG_MS });
    tell(c, c->engine.ops->resume, 1);
    tell(c, c->engine.ops->pause, 1);
    tell(c, c->engine.ops->pause, 1);
    await(c, ENGINE_PAUSED, task(1));
    tell(c, c->engine.ops->resume, 1);
    tell(c, c->engine.ops->resume, 1);
    await(c, ENGINE_RESUMED, task(1));
    be_quiet(c);
    CHECK_INT(count(c, ENGINE_ENDED, task(1)), 0);
    stop(c, 1, 0);
    await(c, ENGINE_ENDED, task(1));
}

void conform_unknown(struct conform *c)
{
    stop(c, 99, 0);
    tell(c, c->engine.ops->forget, 99);
    tell(c, c->engine.ops->purge, 99);
    if (c->engine.caps[CAP_SIGNAL])
        send_signal(c, 99, SIGUSR1);
    if (c->engine.caps[CAP_PAUSE]) {
        tell(c, c->engine.ops->pause, 99);
        tell(c, c->engine.ops->resume, 99);
    }
    sync_now(c);
    for (int k = ENGINE_PROGRESS; k < ENGINE_EVENT_COUNT; k++)
        CHECK_INT(count(c, (enum engine_event_kind)k, task(99)), 0);
    conform_start(c, 99, (struct conform_program){ .run_ms = 20, .code = 5 });
    CHECK_INT(await(c, ENGINE_ENDED, task(99)).code, 5);
}

void conform_time_limit(struct conform *c)
{
    start_limited(c, 1, (struct conform_program){ .run_ms = LONG_MS }, 200);
    CHECK_STR(task_end_name(await(c, ENGINE_ENDED, task(1)).why), "time_limit");
}

void conform_told_again(struct conform *c)
{
    conform_start(c, 1, (struct conform_program){ .run_ms = 20, .code = 9 });
    await(c, ENGINE_ENDED, task(1));
    for (int i = 0; i < 3; i++) {
        sync_now(c);
        CHECK_INT(count(c, ENGINE_ENDED, task(1)), 1);
        CHECK_INT(await(c, ENGINE_ENDED, task(1)).code, 9);
    }
    tell(c, c->engine.ops->forget, 1);
    sync_now(c);
    CHECK_INT(count(c, ENGINE_ENDED, task(1)), 0);
}

void conform_forget(struct conform *c)
{
    conform_start(c, 1, (struct conform_program){ .run_ms = 20 });
    await(c, ENGINE_ENDED, task(1));
    tell(c, c->engine.ops->forget, 1);
    tell(c, c->engine.ops->forget, 1);
    tell(c, c->engine.ops->purge, 1);
    tell(c, c->engine.ops->purge, 1);
    sync_now(c);
    CHECK_INT(count(c, ENGINE_ENDED, task(1)), 0);
    CHECK_INT(count(c, ENGINE_STARTED, task(1)), 0);
}

void conform_forget_living(struct conform *c)
{
    started(c, 1, (struct conform_program){ .run_ms = LONG_MS });
    tell(c, c->engine.ops->forget, 1);
    sync_now(c);
    CHECK_INT(count(c, ENGINE_STARTED, task(1)), 1);
    stop(c, 1, 0);
    await(c, ENGINE_ENDED, task(1));
}

void conform_sync_living(struct conform *c)
{
    started(c, 1, (struct conform_program){ .run_ms = LONG_MS });
    started(c, 2, (struct conform_program){ .run_ms = LONG_MS });
    if (c->engine.caps[CAP_PAUSE]) {
        tell(c, c->engine.ops->pause, 2);
        await(c, ENGINE_PAUSED, task(2));
    }
    sync_now(c);
    CHECK_INT(count(c, ENGINE_STARTED, task(1)), 1);
    CHECK_INT(count(c, ENGINE_PAUSED, task(1)), 0);
    CHECK_INT(count(c, ENGINE_PAUSED, task(2)), c->engine.caps[CAP_PAUSE]);
    stop(c, 1, 0);
    stop(c, 2, 0);
    await(c, ENGINE_ENDED, task(1));
    await(c, ENGINE_ENDED, task(2));
    CHECK_INT(c->runs(c->ctx, task(1)), 1);
}

void conform_side_by_side(struct conform *c)
{
    for (uint64_t i = 0; i < 8; i++)
        conform_start(c, 20 + i, (struct conform_program){ .run_ms = 50, .code = (int)i });
    for (uint64_t i = 0; i < 8; i++)
        CHECK_INT(await(c, ENGINE_ENDED, task(20 + i)).code, i);
    be_quiet(c);
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_INT(count(c, ENGINE_STARTED, task(20 + i)), 1);
        CHECK_INT(count(c, ENGINE_ENDED, task(20 + i)), 1);
        CHECK_INT(c->runs(c->ctx, task(20 + i)), 1);
    }
}
