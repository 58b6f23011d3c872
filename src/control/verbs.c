/* What people ask of a job that is there. */
#include "control/state.h"

#define BY_MAX 1200

static struct entry *living(struct control *c, uint64_t job, struct err *e)
{
    struct entry *en = book_find(&c->book, job);
    if (en && !job_state_ended(en->now.state))
        return en;
    err_set(e, ERR_CONFLICT, "job %llu has ended", (unsigned long long)job);
    err_hint(e, "submit it again to run it again");
    return NULL;
}

static int move(struct control *c, struct entry *en, enum job_event what, struct err *e)
{
    enum job_state to;
    if (job_next(en->now.state, what, &to, e) < 0)
        return err_wrap(e, "job %llu", (unsigned long long)en->id);
    if (!job_move(c, en, what))
        return err_set(e, ERR_INTERNAL, "job %llu could not be moved", (unsigned long long)en->id);
    return 0;
}

static int cancel(struct control *c, struct entry *en, struct str by, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(BY_MAX + 32);
    if (en->now.state == JOB_STOPPING)
        return 0; /* it is on its way */
    bool holds = job_state_holds(en->now.state);
    buf_printf(&text, "cancelled by %.*s", (int)MIN(by.n, (size_t)BY_MAX), by.p);
    book_set_text(&en->now.message, buf_str(&text));
    book_set_text(&en->now.end, STR("cancelled"));
    if (move(c, en, JOB_EV_CANCEL, e) < 0)
        return -1;
    if (holds)
        job_stop(c, en, END_STOPPED);
    else
        observe_cancelled(c, en);
    return 0;
}

static int freeze(struct control *c, struct entry *en, struct err *e)
{
    if (en->taken) { /* the core has it as one that goes on by itself, until it stands still */
        err_set(e, ERR_CONFLICT, "job %llu is being taken back and will go on by itself",
                (unsigned long long)en->id);
        return err_hint(e, "freeze it when it is frozen: it then stays so until you thaw it");
    }
    if (en->now.state == JOB_PAUSED)
        return 0;
    if (en->now.state == JOB_FREEZING)
        return move(c, en, JOB_EV_FREEZE, e);
    if (job_need_spec(c, en, e) < 0)
        return -1;
    if (!freeze_possible(c, en->freeze) && job_state_holds(en->now.state)) {
        err_set(e, ERR_CONFLICT, "job %llu cannot be frozen: its freeze mode is '%s'",
                (unsigned long long)en->id, freeze_mode_name(en->freeze));
        return err_hint(e, en->freeze == FREEZE_NONE
                               ? "submit it with another freeze mode, e.g. pause or signal"
                               : "the engine here cannot do that; see: nightshift status");
    }
    if (en->now.state == JOB_FROZEN)
        book_set_text(&en->now.message, STR("")); /* whatever froze it, now somebody wants it so */
    if (move(c, en, JOB_EV_FREEZE, e) < 0)
        return -1;
    if (en->now.state == JOB_FREEZING)
        job_freeze_begin(c, en);
    return 0;
}

static int thaw(struct control *c, struct entry *en, struct err *e)
{
    if (move(c, en, JOB_EV_THAW, e) < 0)
        return -1;
    if (en->now.state == JOB_FROZEN)
        life_asked(c, en, STEP_THAWING); /* until there is room */
    if (en->now.state == JOB_THAWING)
        turn_act(c, (struct act){ .kind = ACT_TASKS_RESUME,
                                  .job = en->id,
                                  .run = en->now.run,
                                  .replicas = en->replicas });
    return 0;
}

int control_verb(struct control *c, uint64_t job, enum control_verb v, struct str by,
                 struct control_done done, struct err *e)
{
    struct entry *en = living(c, job, e);
    int rc = -1;
    if (!en)
        return -1;
    c->acting = by;
    switch (v) {
    case VERB_CANCEL: rc = cancel(c, en, by, e); break;
    case VERB_HOLD: rc = move(c, en, JOB_EV_HOLD, e); break;
    case VERB_RELEASE: rc = move(c, en, JOB_EV_RELEASE, e); break;
    case VERB_FREEZE: rc = freeze(c, en, e); break;
    case VERB_THAW: rc = thaw(c, en, e); break;
    case CONTROL_VERB_COUNT: abort();
    }
    c->acting = STR("");
    if (rc < 0)
        return -1;
    turn_done(c, done);
    turn_close_soon(c, true);
    return 0;
}

void control_end_all(struct control *c)
{
    struct err e;
    for (size_t i = 0; i < c->book.n; i++)
        if (job_state_holds(c->book.at[i]->now.state) &&
            cancel(c, c->book.at[i], STR("the daemon, which was stopped"), &e) < 0)
            log_event(c->config.log, LOG_WARN_, "job.cancel", "why=%s", e.msg);
    turn_close_soon(c, false);
}

size_t control_holding(const struct control *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->book.n; i++)
        n += job_state_holds(c->book.at[i]->now.state);
    return n;
}

int control_signal(struct control *c, uint64_t job, int signo, struct err *e)
{
    struct entry *en = living(c, job, e);
    if (!en)
        return -1;
    if (!en->task)
        return err_set(e, ERR_CONFLICT, "job %llu is %s: nothing of it runs",
                       (unsigned long long)job, job_state_name(en->now.state));
    if (!c->engine.caps[CAP_SIGNAL] || !c->engine.ops->signal)
        return err_set(e, ERR_UNAVAILABLE, "the %s engine here cannot send signals",
                       c->engine.ops->name);
    uint32_t sent = 0;
    for (uint32_t i = 0; i < en->replicas; i++) {
        struct task_id t = { job, en->now.run, i };
        if (en->task[i].state != TASK_RUNNING)
            continue;
        if (c->engine.ops->signal(c->engine.self, t, signo, e) < 0)
            return -1;
        sent++;
    }
    if (sent)
        return 0;
    return err_set(e, ERR_CONFLICT, "job %llu is %s: no process of it can take a signal now",
                   (unsigned long long)job, job_state_name(en->now.state));
}
