/* Making a job stand still: because somebody asked for it, or because its room is for another. */
#include "control/state.h"

/* What a freeze and a thaw are taken to cost. */
#define SAVE_LEAST_MS INT64_C(5000)
#define SAVE_MOST_MS INT64_C(120000)
/* Left to the keeper for ending a job whose machine is given back, and what such a job has at least. */
#define KILL_SPARE_MS INT64_C(4000)
#define KILL_LEAST_MS INT64_C(1000)

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
    int64_t cost_ms = MAX(s->grace_ms / 2, SAVE_LEAST_MS);
    out->limit_ms = s->max_time_ms;
    if ((s->freeze != FREEZE_REQUEUE && s->freeze != FREEZE_SIGNAL) ||
        !freeze_possible(c, s->freeze))
        return;
    out->thaw_cost_ms = (uint32_t)MIN(cost_ms, SAVE_MOST_MS);
    out->restarts = s->freeze == FREEZE_REQUEUE; /* the work that it loses is counted by the core */
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
        a.kind = ACT_TASKS_FREEZE;
        a.signo = en->freeze_signal;
        a.grace_ms = job_grace_ms(c, en);
        loop_unwatch(en->grace);
        en->grace_of = (struct job_ref){ c, en->id };
        en->grace = loop_timer(c->config.loop, on_grace_over, &en->grace_of);
        loop_timer_set(en->grace, (uint64_t)a.grace_ms, 0);
        break;
    case FREEZE_REQUEUE:
        /* Whoever made it may be able to make it again: its engine knows how. */
        a.kind = en->observed && c->engine.ops && c->engine.ops->freeze ? ACT_TASKS_FREEZE
                                                                        : ACT_TASKS_STOP;
        a.why = END_STOPPED;
        a.grace_ms = job_grace_ms(c, en);
        break;
    case FREEZE_NONE:
    case FREEZE_MODE_COUNT: return;
    }
    turn_act(c, a);
}

/* Why it was taken back, and how it comes back: a job that starts anew is taken for its room only. */
static const char *const taken_texts[][2] = {
    [TAKEN_TURN] = { "taken back: it is another job's turn; it goes on by itself",
                     "taken back: it is another job's turn; it starts again by itself" },
    [TAKEN_MACHINE] = { "taken back: its machine is given back; it goes on by itself",
                        "taken back: its machine is given back; it starts again by itself" },
    [TAKEN_EXPIRED] = { "frozen: its tenant's time has ended; what it has saved is kept",
                        "frozen: its tenant's time has ended; it starts again from the start" },
    [TAKEN_BUDGET] = { "frozen: its tenant's GPU-hours are used up; it goes on by itself in the "
                       "next period",
                       "frozen: its tenant's GPU-hours are used up; it starts again by itself in "
                       "the next period" },
};

struct str taken_text(const struct entry *en)
{
    return str_of(taken_texts[en->taken_for][en->freeze == FREEZE_REQUEUE]);
}

/* What keeps it from going may follow. */
enum taken_for freeze_taken_for(enum take_why why, job_id by)
{
    switch (why) {
    case TAKE_EXPIRED: return TAKEN_EXPIRED;
    case TAKE_BUDGET: return TAKEN_BUDGET;
    case TAKE_ROOM:
    case TAKE_COUNT: break;
    }
    return by.v ? TAKEN_TURN : TAKEN_MACHINE;
}

/* ---- a machine that is given back ---- */

/* When the first of its machines closes or is reserved; INT64_MAX: none will, or one is and it overstays. */
static int64_t closes_ms(const struct control *c, const struct entry *en)
{
    struct job_view v = { 0 };
    struct node_view n;
    struct reservation_view r;
    int64_t ms = INT64_MAX;
    core_job(c->core, (job_id){ en->id }, &v);
    for (uint32_t i = 0; i < v.n && core_node(c->core, (node_id){ v.slots[i].node }, &n); i++) {
        if (n.open)
            ms = MIN(ms, n.closes_ms);
        if (n.reserved && core_reservation(c->core, n.reserved - 1, &r) &&
            r.from_ms > control_now_ms(c))
            ms = MIN(ms, r.from_ms);
    }
    return ms;
}

/* The core leaves time for what its grace costs on average; nobody stays longer than the machine. */
int64_t job_grace_ms(const struct control *c, const struct entry *en)
{
    int64_t close_ms = en->taken && en->taken_for == TAKEN_MACHINE ? closes_ms(c, en) : INT64_MAX;
    if (close_ms == INT64_MAX)
        return en->grace_ms;
    int64_t left_ms = close_ms - control_now_ms(c) - KILL_SPARE_MS;
    left_ms = MAX(left_ms, KILL_LEAST_MS);
    return MIN(en->grace_ms, left_ms);
}

void job_taken(struct control *c, const struct action *a)
{
    uint64_t job = a->job.v;
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
    en->taken_for = freeze_taken_for(a->why, a->by);
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
