/* Making a job stand still: because somebody asked for it, or because its room is for another. */
#include "control/state.h"

/* What a freeze and a thaw are taken to cost. */
#define SAVE_LEAST_MS INT64_C(5000)
#define SAVE_MOST_MS INT64_C(120000)
#define REQUEUE_COST_MS 5000u /* its start; the work that it loses is counted by the core */

bool freeze_possible(const struct control *c, enum freeze_mode mode)
{
    switch (mode) {
    case FREEZE_PAUSE: return c->engine.caps[CAP_PAUSE];
    case FREEZE_SIGNAL: return c->engine.caps[CAP_SIGNAL];
    case FREEZE_REQUEUE: return true;
    case FREEZE_NONE:
    case FREEZE_MODE_COUNT: break;
    }
    return false;
}

/* What the core needs to know about taking it back.  A paused job keeps what it has in a GPU's memory,
 * so nobody would gain by it.  How long saving and reading again take is not known: half of the time
 * that the job asked for to save itself stands for both. */
void freeze_terms(const struct control *c, const struct spec *s, struct event_submit *out)
{
    out->limit_ms = s->max_time_ms;
    if (s->freeze == FREEZE_REQUEUE) {
        out->thaw_cost_ms = REQUEUE_COST_MS;
        out->restarts = true;
    } else if (s->freeze == FREEZE_SIGNAL && freeze_possible(c, s->freeze)) {
        int64_t cost_ms = MAX(s->grace_ms / 2, SAVE_LEAST_MS);
        out->thaw_cost_ms = (uint32_t)MIN(cost_ms, SAVE_MOST_MS);
    }
}

/* It did not save itself in time. */
static void on_grace_over(void *ctx)
{
    struct job_ref *g = ctx;
    struct entry *en = book_find(&g->c->book, g->job);
    if (!en || en->now.state != JOB_FREEZING)
        return;
    book_set_text(&en->now.message, STR("it did not save itself in time when it was frozen"));
    job_stop(g->c, en, END_STOPPED);
    turn_close_soon(g->c, false);
}

void job_freeze_begin(struct control *c, struct entry *en)
{
    struct act a = { .job = en->id, .run = en->now.run, .replicas = en->replicas };
    switch (en->freeze) {
    case FREEZE_PAUSE: a.kind = ACT_TASKS_PAUSE; break;
    case FREEZE_SIGNAL:
        a.kind = ACT_TASKS_SIGNAL;
        a.signo = en->freeze_signal;
        loop_unwatch(en->grace);
        en->grace_of = (struct job_ref){ c, en->id };
        en->grace = loop_timer(c->config.loop, on_grace_over, &en->grace_of);
        loop_timer_set(en->grace, (uint64_t)en->grace_ms, 0);
        break;
    case FREEZE_REQUEUE:
        a.kind = ACT_TASKS_STOP;
        a.why = END_STOPPED;
        a.grace_ms = en->grace_ms;
        break;
    case FREEZE_NONE:
    case FREEZE_MODE_COUNT: return;
    }
    turn_act(c, a);
}

static struct str taken_text(const struct entry *en)
{
    return en->freeze == FREEZE_REQUEUE
             ? STR("taken back: it is another job's turn; it starts again by itself")
             : STR("taken back: it is another job's turn; it goes on by itself");
}

void job_taken(struct control *c, uint64_t job)
{
    struct entry *en = book_find(&c->book, job);
    struct err e;
    if (!en)
        abort(); /* core and book hold the same jobs */
    bool known = job_need_spec(c, en, &e) == 0;
    en->now.ran_ms += MAX(control_now_ms(c) - en->ran_since_ms, INT64_C(0));
    en->now.state = JOB_FREEZING;
    en->now.state_ms = control_now_ms(c);
    if (!known || !freeze_possible(c, en->freeze)) { /* the engine is not the one that it was */
        log_event(c->config.log, LOG_WARN_, "job.taken", "job=%llu why=%s", (unsigned long long)job,
                  known ? "the engine cannot freeze it any more" : e.msg);
        job_move(c, en, JOB_EV_STARTED); /* it goes on */
        return;
    }
    en->taken = true;
    book_set_text(&en->now.message, taken_text(en));
    turn_save(c, en);
    job_freeze_begin(c, en);
    c->stats.taken++;
}

/* How it went with a job that was taken back: the message of its row. */
void job_tell_taken(struct entry *en, enum job_event what, const struct task *t)
{
    AUTO(buf_free) struct buf text = BUF(400);
    bool unsaved = t->why == END_EXITED || t->why == END_STOPPED;
    if (what == JOB_EV_FROZE) {
        book_set_text(&en->now.message, taken_text(en));
        return;
    }
    book_set_text(&en->now.message, STR(""));
    if (what == JOB_EV_EXITED_OK || !unsaved)
        return; /* as at any other time */
    buf_addz(&text, t->why == END_STOPPED ? "it did not save itself in time when it was taken back"
                                          : "it did not save itself when it was taken back");
    if (t->why == END_EXITED && t->signal)
        buf_printf(&text, ": killed by signal %d", t->signal);
    else if (t->why == END_EXITED)
        buf_printf(&text, ": exit code %d", t->code);
    if (what == JOB_EV_RETURNED)
        buf_addz(&text, "; it starts again from what it had saved before");
    book_set_text(&en->now.message, buf_str(&text));
}
