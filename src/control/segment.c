/* Cutting the journal: it begins anew with the events that make the present state, and we go on with
 * the core made from them. */
#include "store/segment.h"
#include "base/date.h"
#include "control/state.h"
#include "journal/journal.h"
#include "store/usage.h"

#define LINES_MIN 50000   /* below it a restart is quick anyway */
#define LINES_KEPT 500000 /* of segments before this one, about: some 80 MB */
#define SEGMENTS_KEPT UINT64_C(50)

struct cut {
    struct control *c;
    struct core *core;
    struct store_batch *batch;
    int64_t shift_ms; /* what the clock is set by: all that has happened happened by the new one */
    int64_t day;      /* by the new clock */
    bool day_told;    /* there is a row of it */
    struct err e;
    bool failed;
};

static void shift(struct event *ev, int64_t by_ms)
{
    ev->t_ms += by_ms;
    if (ev->kind != EVENT_SUBMIT)
        return;
    ev->submit.since_ms += ev->submit.since_ms ? by_ms : 0;
    ev->submit.wait_ms += ev->submit.wait_ms ? by_ms : 0;
}

static void on_event(void *ctx, const struct event *of)
{
    struct cut *cut = ctx;
    struct event shifted = *of, *ev = &shifted;
    shift(ev, cut->shift_ms);
    if (ev->kind == EVENT_LEDGER && cut->shift_ms && ev->ledger.day > cut->day)
        return; /* of days that have not come yet: they are in the store */
    cut->day_told |= ev->kind == EVENT_LEDGER && ev->ledger.day == cut->day;
    AUTO(buf_free) struct buf line = BUF(JOURNAL_LINE_MAX);
    if (cut->failed)
        return;
    if (core_apply(cut->core, ev, &cut->e) < 0) {
        cut->failed = true;
        return;
    }
    journal_write(ev, &line);
    store_add_journal(cut->batch, ev->t_ms, (struct str){ line.p, line.n - 1 });
}

static void on_row(void *ctx, const struct ledger_row *row)
{
    struct cut *cut = ctx;
    AUTO(buf_free) struct buf line = BUF(JOURNAL_LINE_MAX);
    struct event ev = { .t_ms = control_now_ms(cut->c) + cut->shift_ms, .kind = EVENT_LEDGER };
    struct err e;
    ev.ledger = *row;
    if (core_apply(cut->core, &ev, &e) < 0)
        return; /* of a tenant that is no more */
    journal_write(&ev, &line);
    store_add_journal(cut->batch, ev.t_ms, (struct str){ line.p, line.n - 1 });
    cut->day_told = true;
}

/* A clock that is set back to another day: what was counted of that day is in the store. */
static void tell_day(struct cut *cut)
{
    struct store_scope all = { .everything = true };
    struct store_days days = { cut->day, cut->day + 1 };
    struct err e;
    if (cut->shift_ms >= 0 || cut->day_told)
        return;
    if (store_ledger(cut->c->config.store, &all, days, on_row, cut, &e) < 0)
        log_event(cut->c->config.log, LOG_WARN_, "ledger", "why=%s", e.msg);
    if (!cut->day_told)
        on_row(cut, &(struct ledger_row){ .day = cut->day });
}

static int cut_journal(struct control *c, int64_t shift_ms, struct err *e)
{
    struct cut cut = { .c = c, .core = core_new(), .shift_ms = shift_ms };
    struct store_batch *b = store_batch_new(c->config.store);
    cut.batch = b;
    cut.day = floor_div(control_now_ms(c) + shift_ms, DAY_MS);
    uint64_t keep = LINES_KEPT / (store_journal_lines(c->config.store) + 1);
    keep = MIN(keep, SEGMENTS_KEPT);
    struct store_segment seg = { .lines_before = store_journal_lines(c->config.store) };
    store_new_segment(b, control_now_ms(c) + shift_ms, (uint32_t)MAX(keep, UINT64_C(1)));
    core_snapshot(c->core, on_event, &cut);
    seg.begins = store_journal_lines(c->config.store);
    tell_day(&cut);
    if (!shift_ms) /* then the same can be made from the segment before this one */
        store_segment_begins(b, &seg);
    if (cut.failed) {
        core_free(cut.core);
        store_batch_free(b);
        *e = cut.e;
        return err_wrap(e, "beginning the journal anew");
    }
    core_free(c->core);
    c->core = cut.core;
    if (shift_ms)
        jump_taken(c, b);
    store_commit(c->config.store, b, NULL, NULL);
    log_event(c->config.log, LOG_INFO_, "journal.cut", "lines=%llu",
              (unsigned long long)store_journal_lines(c->config.store));
    return 0;
}

/* Called when a turn was handed over and nothing is gathered yet: what is in the core is then in the
 * journal, or on its way there before us. */
void segment_review(struct control *c)
{
    struct err e;
    if (store_journal_lines(c->config.store) <= LINES_MIN + 8 * c->book.n && !c->jump.step_ms)
        return;
    if (cut_journal(c, c->jump.step_ms, &e) < 0)
        log_event(c->config.log, LOG_ERROR_, "journal.cut", "why=%s", e.msg);
    else
        turn_close_soon(c, true);
    c->jump.step_ms = 0;
}
