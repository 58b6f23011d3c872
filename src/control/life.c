#include "control/life.h"

#include "control/state.h"
#include "store/life.h"

#define LOOK_MAX 512u        /* jobs a minute */
#define STEP_REASONS_MAX 20u /* of one wait */
#define WHO_MAX 200u

static const char *const names[] = {
#define X(id, slug, text) slug,
    LIFE_STEPS(X)
#undef X
};

const char *life_step_name(enum life_step s)
{
    return names[s];
}

enum life_step life_step_of(enum job_state from, enum job_state to)
{
    switch (to) {
    case JOB_HELD: return STEP_HELD;
    case JOB_QUEUED:
        return from == JOB_HELD ? STEP_RELEASED : from == JOB_FROZEN ? STEP_THAWING : STEP_REQUEUED;
    case JOB_STARTING: return STEP_PLACED;
    case JOB_RUNNING: return from == JOB_STARTING ? STEP_STARTED : STEP_THAWED;
    case JOB_FREEZING: return STEP_FREEZING;
    case JOB_PAUSED: return STEP_PAUSED;
    case JOB_FROZEN: return STEP_FROZEN;
    case JOB_THAWING: return STEP_THAWING;
    case JOB_STOPPING: return STEP_STOPPING;
    case JOB_SUCCEEDED:
    case JOB_FAILED:
    case JOB_CANCELLED: return STEP_ENDED;
    case JOB_STATE_COUNT: break;
    }
    abort();
}

static bool waits(const struct entry *en)
{
    return !job_state_ended(en->now.state) && !job_state_holds(en->now.state);
}

static void add_step(struct control *c, const struct entry *en, enum life_step what,
                     struct str reason)
{
    bool begins = en->now.state == JOB_STARTING ||
                  (en->now.state == JOB_THAWING && en->now.run != en->heard_run);
    bool over = job_state_ended(en->now.state);
    struct str who = c->acting;
    struct store_step s = { .job = en->id,
                            .t_ms = control_now_ms(c),
                            .what = str_of(names[what]),
                            .state = en->now.state,
                            .run = en->now.run,
                            .reason = reason,
                            .who = { who.p, MIN(who.n, (size_t)WHO_MAX) },
                            .note = en->now.message,
                            .where = begins ? en->now.where : STR(""),
                            .exit_code = over ? en->now.exit_code : 0,
                            .exit_signal = over ? en->now.exit_signal : 0 };
    store_add_step(turn_open(c)->batch, &s);
}

void life_known(struct entry *en)
{
    en->heard = true;
    en->heard_state = en->now.state;
    en->heard_run = en->now.run;
}

void life_tell(struct control *c, struct entry *en)
{
    if (en->heard && en->heard_state == en->now.state && en->heard_run == en->now.run)
        return;
    add_step(c, en, en->heard ? life_step_of(en->heard_state, en->now.state) : STEP_SUBMITTED,
             STR(""));
    life_known(en);
    en->why = en->whys = 0;
    if (!waits(en))
        return;
    struct turn *t = turn_open(c);
    vec_grow(t->waiting, t->waits, t->wait_cap);
    t->waiting[t->waits++] = en->id;
}

void life_asked(struct control *c, struct entry *en, enum life_step what)
{
    add_step(c, en, what, STR(""));
}

static bool reason_of(const struct control *c, const struct entry *en, enum reason *out)
{
    struct job_view v;
    if (!waits(en) || !core_job(c->core, (job_id){ en->id }, &v) || v.why == WHY_NEW)
        return false;
    *out = v.why;
    return true;
}

void life_reasons(struct control *c)
{
    struct turn *t = c->open;
    enum reason why;
    for (size_t i = 0; t && i < t->waits; i++) {
        struct entry *en = book_find(&c->book, t->waiting[i]);
        if (!en || en->why || !reason_of(c, en, &why))
            continue;
        store_step_reason(t->batch, en->id, str_of(reason_slug(why)));
        en->why = (uint8_t)why;
    }
}

void life_minute(struct control *c)
{
    enum reason why;
    size_t n = MIN(c->book.n, (size_t)LOOK_MAX);
    for (size_t i = 0; i < n; i++) {
        struct entry *en = c->book.at[c->life_next++ % c->book.n];
        if (!reason_of(c, en, &why) || why == en->why || en->whys >= STEP_REASONS_MAX)
            continue;
        if (en->why)
            add_step(c, en, STEP_WAITS, str_of(reason_slug(why)));
        else /* after a start of ours: what was told is in the store */
            store_step_reason(turn_open(c)->batch, en->id, str_of(reason_slug(why)));
        en->whys = (uint8_t)(en->whys + (en->why != 0));
        en->why = (uint8_t)why;
    }
    if (c->open)
        turn_close_soon(c, false);
}
