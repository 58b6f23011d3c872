/* What the engine keeps of living jobs, where it can (verb `keep`): a copy for when our store is lost.
 *
 * The engine hears of a job when a turn in which it changed is on the disk, and only when it changed in what a copy
 * has.  That a job starts is not such a change: its tasks tell it.  Numbers are kept in blocks ahead, so that none is
 * given out twice and it does not cost a write each job. */
#include <stdio.h>

#include "base/parse.h"
#include "control/record.h"
#include "control/state.h"

#define BLOCK 100u

static bool keeps(const struct control *c)
{
    return c->engine.ops && c->engine.ops->keep;
}

/* ---- what is kept ---- */

/* As a copy has it: that a job runs is told by what runs of it. */
static enum job_state state_of(const struct entry *en)
{
    switch (en->now.state) {
    case JOB_HELD:
    case JOB_FREEZING:
    case JOB_FROZEN:
    case JOB_STOPPING: return en->now.state;
    case JOB_QUEUED:
    case JOB_STARTING:
    case JOB_RUNNING:
    case JOB_PAUSED:
    case JOB_THAWING:
    case JOB_SUCCEEDED:
    case JOB_FAILED:
    case JOB_CANCELLED:
    case JOB_STATE_COUNT: break;
    }
    return JOB_QUEUED;
}

static struct job_record record_of(struct control *c, const struct entry *en)
{
    struct job_view v = { 0 };
    core_job(c->core, (job_id){ en->id }, &v);
    struct job_record r = { .tenant = str_of(en->tenant),
                            .user = str_of(en->user),
                            .state = state_of(en),
                            .run = en->now.run,
                            .array = en->array,
                            .array_index = en->array_index,
                            .ran_ms = en->now.ran_ms,
                            .fails = en->now.fails };
    if (r.state == JOB_QUEUED && job_state_holds(en->now.state))
        r.run = en->now.run - 1;
    if (r.state == JOB_FREEZING || r.state == JOB_FROZEN) {
        r.awake = v.awake;
        r.message = en->now.message;
    }
    if (v.afters)
        r.afters = core_job_after(c->core, (job_id){ en->id }, r.after);
    return r;
}

/* What of it makes a copy old. */
static uint64_t key_of(const struct job_record *r)
{
    AUTO(buf_free) struct buf text = BUF(8192);
    buf_printf(&text, "%d %d %u %u", (int)r->state, r->awake, r->run, r->fails);
    for (uint32_t i = 0; i < r->afters; i++)
        buf_printf(&text, " %llu+%u:%u", (unsigned long long)r->after[i].first.v, r->after[i].n,
                   r->after[i].when);
    return str_hash(buf_str(&text)) | 1;
}

static bool is_copied(const struct entry *en)
{
    return !en->observed && !job_state_ended(en->now.state);
}

/* Members of an array share the text of the first, unless they were made again. */
static int write_record(struct control *c, const struct entry *en, struct buf *out, struct err *e)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct store_scope all = { .everything = true };
    struct store_job row, first = { 0 };
    struct job_record r = record_of(c, en);
    if (store_job_get(c->config.store, &all, en->id, &a, &row, e) < 0)
        return -1;
    if (row.fixed.spec.n == 0 && en->array &&
        store_job_get(c->config.store, &all, en->array, &a, &first, e) < 0)
        return -1;
    r.uid = row.fixed.uid;
    r.account = account_own_uid(&c->accounts, str_of(en->user));
    r.submitted_ms = row.fixed.submitted_ms;
    record_write(&r, row.fixed.spec.n ? row.fixed.spec : first.fixed.spec, out);
    return 0;
}

void spare_record(struct control *c, const struct engine_event *ev)
{
    uint64_t job = ev->task.job;
    const struct entry *en = book_find(&c->book, job);
    struct err e;
    if (job == 0)
        record_write_numbers(c->spare.numbers, ev->record.text);
    else if (!en || !is_copied(en))
        *ev->record.out_over = true;
    else if (write_record(c, en, ev->record.text, &e) < 0)
        log_event(c->config.log, LOG_ERROR_, "job.copy", "job=%llu why=%s", (unsigned long long)job,
                  e.msg);
}

/* ---- when ---- */

void spare_touch(struct control *c, uint64_t job)
{
    if (!keeps(c))
        return;
    struct turn *t = turn_open(c);
    if (t->touches && t->touched[t->touches - 1] == job)
        return;
    vec_grow(t->touched, t->touches, t->touch_cap);
    t->touched[t->touches++] = job;
}

/* True: it waits for others still. */
static bool keep(struct control *c, uint64_t job)
{
    struct entry *en = book_find(&c->book, job);
    bool waits = false;
    if (en && !is_copied(en))
        return false; /* its end is not on the disk yet, or others made it */
    if (en) {
        struct job_record r = record_of(c, en);
        uint64_t key = key_of(&r);
        waits = r.afters > 0;
        if (key == en->copied)
            return waits;
        en->copied = key;
    }
    c->engine.ops->keep(c->engine.self, job);
    return waits;
}

static void keep_and_note(struct control *c, uint64_t job)
{
    struct sparing *o = &c->spare;
    struct entry *en = book_find(&c->book, job);
    if (!keep(c, job) || en->noted)
        return;
    en->noted = true;
    vec_grow(o->waits, o->n, o->cap);
    o->waits[o->n++] = job;
}

/* Those that waited for a job that has ended wait for less now. */
static void keep_waiting(struct control *c)
{
    struct sparing *o = &c->spare;
    size_t left = 0;
    for (size_t i = 0; i < o->n; i++)
        if (keep(c, o->waits[i]))
            o->waits[left++] = o->waits[i];
    o->n = left;
}

void spare_durable(struct control *c, const struct turn *t)
{
    if (!keeps(c))
        return;
    for (size_t i = 0; i < t->touches; i++)
        keep_and_note(c, t->touched[i]);
    if (t->over.n)
        keep_waiting(c);
}

/* The engine has told what it kept: what is missing is written, and what is old.  With the next turn: those that were
 * made again are not on the disk yet. */
void spare_ready(struct control *c)
{
    for (size_t i = 0; i < c->book.n; i++)
        spare_touch(c, c->book.at[i]->id);
    spare_touch(c, 0);
}

/* ---- numbers ---- */

void spare_load(struct control *c)
{
    AUTO(arena_free) struct arena a = { 0 };
    struct str text;
    struct err e;
    if (store_meta(c->config.store, "numbers", &a, &text, &e) < 0 ||
        parse_u64(text, UINT64_MAX, &c->spare.numbers, &e) < 0)
        c->spare.numbers = 0;
}

void spare_reserve(struct control *c)
{
    uint64_t last = store_last_job(c->config.store);
    char text[24];
    /* Not before it is known whether an earlier store has given out more. */
    if (!keeps(c) || !c->was_ready || last + BLOCK / 2 <= c->spare.numbers)
        return;
    c->spare.numbers = last + BLOCK;
    snprintf(text, sizeof text, "%llu", (unsigned long long)c->spare.numbers);
    store_set_meta(turn_open(c)->batch, "numbers", str_of(text));
    spare_touch(c, 0);
}

void spare_numbers(struct control *c, const struct engine_kept *k)
{
    uint64_t up_to = 0;
    struct err e;
    if (k->record.n && record_read_numbers(k->record, &up_to, &e) < 0)
        log_event(c->config.log, LOG_ERROR_, "numbers.kept", "why=%s", e.msg);
    c->spare.kept_numbers = up_to;
    if (up_to > c->spare.numbers || k->least > store_last_job(c->config.store))
        spare_skip(c, k->least);
}

void spare_skip(struct control *c, uint64_t job)
{
    uint64_t up_to = MAX(c->spare.kept_numbers, job);
    if (up_to <= store_last_job(c->config.store))
        return;
    log_event(c->config.log, LOG_WARN_, "numbers.skipped", "up_to=%llu why=%s",
              (unsigned long long)up_to, "an earlier store may have given them out");
    store_skip_jobs(turn_open(c)->batch, up_to);
    turn_close_soon(c, false);
}

void spare_free(struct control *c)
{
    free(c->spare.waits);
}
