/* After a start: the core from the journal, the living jobs from the store, the rest from the
 * engine. */
#include "control/patch.h"
#include "control/state.h"
#include "journal/journal.h"

struct restore {
    struct control *c;
    struct arena arena;
    uint64_t lines;
    struct map taken; /* jobs that a pass took back and that have not moved since, and what for */
};

static int restore_line(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    struct restore *r = ctx;
    struct event ev;
    (void)t_ms; /* the line has its own */
    r->lines++;
    arena_reset(&r->arena);
    if (journal_read(line, &r->arena, &ev, e) < 0 || core_apply(r->c->core, &ev, e) < 0)
        return err_wrap(e, "journal, line %llu", (unsigned long long)r->lines);
    if (ev.kind == EVENT_TAKE)
        map_set(&r->taken, ev.take.id.v, freeze_taken_for(ev.take.why, ev.take.by));
    else if (ev.kind == EVENT_JOB)
        map_remove(&r->taken, ev.job.id.v);
    else if (ev.kind == EVENT_POLICY)
        r->c->policy = ev.policy;
    return 0;
}

static int restore_job(void *ctx, const struct store_job *j, struct err *e)
{
    struct restore *r = ctx;
    struct control *c = r->c;
    struct job_view v;
    if (!core_job(c->core, (job_id){ j->fixed.id }, &v) || v.state != j->now.state) {
        err_set(e, ERR_INTERNAL, "job %llu is %s in the store and %s in the journal",
                (unsigned long long)j->fixed.id, job_state_name(j->now.state),
                core_job(c->core, (job_id){ j->fixed.id }, &v) ? job_state_name(v.state)
                                                               : "absent");
        return err_hint(e, "restore the store from a backup and tell us about it");
    }
    struct entry *en = book_add(&c->book, j->fixed.id);
    en->name = xcalloc(j->fixed.name.n + 1, 1);
    memcpy(en->name, j->fixed.name.p, j->fixed.name.n);
    en->observed = j->fixed.uid == UID_OBSERVED;
    book_own(&c->book, en, j->fixed.tenant, j->fixed.user);
    en->array = j->fixed.array;
    en->array_index = j->fixed.array_index;
    en->replicas = j->fixed.replicas;
    en->gpu_milli = j->fixed.gpu_milli;
    en->now = j->now;
    en->now.end = en->now.message = en->now.where = (struct str){ 0 };
    book_set_text(&en->now.end, j->now.end);
    book_set_text(&en->now.message, j->now.message);
    book_set_text(&en->now.where, j->now.where);
    en->bad = NONE;
    uint64_t what_for = TAKEN_TURN;
    en->taken = map_get(&r->taken, en->id, &what_for);
    en->taken_for = (enum taken_for)what_for;
    en->ran_since_ms = j->now.state_ms;
    life_known(en);
    if (job_state_holds(j->now.state))
        en->task = xcalloc(en->replicas, sizeof *en->task);
    return 0;
}

static void count_job(void *ctx, const struct event *ev)
{
    *(size_t *)ctx += ev->kind == EVENT_SUBMIT;
}

/* Each row that lives is in the journal; is each that the journal has among the rows? */
static int check_none_is_missing(struct control *c, struct err *e)
{
    size_t n = 0;
    core_snapshot(c->core, count_job, &n);
    if (n == c->book.n)
        return 0;
    err_set(e, ERR_INTERNAL, "%zu jobs live in the store and %zu in the journal", c->book.n, n);
    return err_hint(e,
                    "keep a copy of nightshift.db and its -wal; then: nightshift restore BACKUP");
}

int recover(struct control *c, struct err *e)
{
    struct restore r = { .c = c };
    int rc = patch_journal(c->config.store, c->config.log, e);
    if (rc == 0)
        rc = store_journal(c->config.store, restore_line, &r, e);
    arena_free(&r.arena);
    if (rc == 0)
        rc = store_living_jobs(c->config.store, restore_job, &r, e);
    map_free(&r.taken);
    if (rc == 0)
        rc = check_none_is_missing(c, e);
    if (rc < 0)
        return err_wrap(e, "restoring");
    if (r.lines)
        log_event(c->config.log, LOG_INFO_, "restored", "events=%llu jobs=%zu",
                  (unsigned long long)r.lines, c->book.n);
    return 0;
}

static void lose(struct control *c, struct entry *en, uint32_t replica, enum task_end why)
{
    struct engine_event ev = { .kind = ENGINE_ENDED,
                               .task = { en->id, en->now.run, replica },
                               .t_ms = control_now_ms(c) };
    ev.ended.why = why;
    ev.ended.signal = 9;
    tasks_event(c, &ev);
}

static bool any_task(const struct entry *en, enum task_state s)
{
    for (uint32_t i = 0; en->task && i < en->replicas; i++)
        if (en->task[i].state == s)
            return true;
    return false;
}

/* Says again what had been intended; every verb does nothing when it was done before. */
static void intend_again(struct control *c, struct entry *en)
{
    bool unknown = any_task(en, TASK_UNKNOWN);
    enum job_state s = en->now.state;
    bool whole_or_not = en->bad != NONE && !en->observed; /* others decide what becomes of theirs */
    if (s == JOB_STOPPING || (whole_or_not && s != JOB_FREEZING))
        job_stop(c, en, END_STOPPED);
    else if (unknown)
        job_start_again(c, en);
    else if ((s == JOB_THAWING || s == JOB_STARTING) && any_task(en, TASK_PAUSED))
        turn_act(c, (struct act){ .kind = ACT_TASKS_RESUME,
                                  .job = en->id,
                                  .run = en->now.run,
                                  .replicas = en->replicas });
    else if (s == JOB_FREEZING && en->spec_known)
        job_freeze_begin(c, en);
}

static void recover_entry(struct control *c, struct entry *en)
{
    enum job_state s = en->now.state;
    struct err e;
    /* What never began in this run is started again, unless a part of the gang ended badly. */
    bool starts =
        en->now.started_ms == 0 && en->bad == NONE && (s == JOB_STARTING || s == JOB_THAWING);
    bool stops = s == JOB_STOPPING || en->bad != NONE;
    if (job_need_spec(c, en, &e) < 0)
        log_event(c->config.log, LOG_ERROR_, "job.spec", "job=%llu why=%s",
                  (unsigned long long)en->id, e.msg);
    for (uint32_t i = 0; en->task && i < en->replicas && !starts; i++)
        if (en->task[i].state == TASK_UNKNOWN)
            lose(c, en, i, stops ? END_STOPPED : END_LOST);
    job_settle(c, en);
    if (en->task)
        intend_again(c, en);
}

void recover_tasks(struct control *c)
{
    /* Losing one may end its job, but buries it only at the end of the turn. */
    for (size_t i = 0; i < c->book.n; i++)
        if (c->book.at[i]->task)
            recover_entry(c, c->book.at[i]);
}
