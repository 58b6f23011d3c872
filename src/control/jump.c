/* A wall clock that jumps.  Time as everybody here knows it is steady (sys/steady.h): nobody is billed for a jump, and
 * nothing is removed while it is not clear what time it is.
 *
 * When a step is taken after all, the journal is cut: the state is made anew as if all that has happened had happened
 * by the new clock, so that runs, waits and shares are as long as before. */
#include "base/date.h"
#include "control/state.h"

#define LOOK_MS 10000u
#define MARK_NS INT64_C(60000000000)

bool jump_holds(const struct control *c)
{
    int64_t ahead_ms;
    return c->config.steady && steady_holds(c->config.steady, &ahead_ms);
}

struct control_clock control_clock(const struct control *c)
{
    struct control_clock s = { 0 };
    if (c->config.steady)
        s.holds = steady_holds(c->config.steady, &s.ahead_ms);
    return s;
}

static void tell(struct control *c)
{
    struct control_clock s = control_clock(c);
    if (s.holds && !c->jump.told)
        log_event(c->config.log, LOG_WARN_, "clock.jump", "ahead_s=%lld why=%s hint=%s",
                  (long long)(s.ahead_ms / 1000),
                  "the clock is not where it should be: nothing is removed meanwhile",
                  "set it right (timedatectl), or if it is right: nightshift doctor "
                  "--confirm-clock");
    else if (!s.holds && c->jump.told)
        log_plain(c->config.log, LOG_INFO_, "clock.agrees");
    if (s.holds != c->jump.told)
        turn_tell(c);
    c->jump.told = s.holds;
}

/* For the next start: where time stood, so that a jump meanwhile is seen. */
static void put_mark(struct control *c, struct store_batch *b)
{
    AUTO(buf_free) struct buf mark = BUF(128);
    c->jump.marked_ns = clock_mono_ns();
    steady_mark(c->config.steady, &mark);
    store_set_meta(b, CONTROL_CLOCK_META, buf_str(&mark));
}

static void keep_mark(struct control *c)
{
    if (c->jump.marked_ns && clock_mono_ns() - c->jump.marked_ns < MARK_NS)
        return;
    struct store_batch *b = store_batch_new(c->config.store);
    put_mark(c, b);
    store_commit(c->config.store, b, NULL, NULL);
}

static void want_step(struct control *c, bool confirmed)
{
    c->jump.step_ms = steady_wants(c->config.steady, confirmed);
    if (c->jump.step_ms == 0)
        return;
    fairness_write(c, true);
    turn_close_soon(c, true); /* taken where the journal may be cut: jump_taken */
}

static void look(void *control)
{
    struct control *c = control;
    tell(c);
    want_step(c, false);
    if (!store_failing(c->config.store, NULL))
        keep_mark(c);
}

/* Those that run have run as long as before. */
static void shift_entries(struct control *c, struct store_batch *b, int64_t by_ms)
{
    for (size_t i = 0; i < c->book.n; i++) {
        struct entry *en = c->book.at[i];
        if (!en->task)
            continue;
        en->now.state_ms += by_ms;
        en->ran_since_ms += by_ms;
        en->now.started_ms += en->now.started_ms ? by_ms : 0;
        store_set_job(b, en->id, &en->now);
    }
    store_shift_runs(b, by_ms);
}

void jump_taken(struct control *c, struct store_batch *b)
{
    int64_t by_ms = c->jump.step_ms;
    shift_entries(c, b, by_ms);
    steady_step(c->config.steady, by_ms);
    put_mark(c, b); /* with its journal: a start between the two would undo the step */
    c->fairness.day = floor_div(control_now_ms(c), DAY_MS);
    c->fairness.written_ms = 0;
    c->jump.step_ms = 0;
    log_event(c->config.log, LOG_WARN_, "clock.step", "by_s=%lld", (long long)(by_ms / 1000));
}

void control_clock_confirm(struct control *c)
{
    if (!c->config.steady)
        return;
    want_step(c, true);
    tell(c);
}

void jump_init(struct control *c)
{
    if (!c->config.steady)
        return;
    c->jump.timer = loop_timer(c->config.loop, look, c);
    loop_timer_set(c->jump.timer, 0, LOOK_MS);
}

void jump_free(struct control *c)
{
    loop_unwatch(c->jump.timer);
}
