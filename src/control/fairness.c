/* Whose the GPUs were, from the core's ledger into the store.
 *
 * A day's rows are written again with what they have come to, in turns that come anyway.  What was not
 * written when we are killed is not lost: the journal makes the core's ledger anew, and the next turn
 * writes it. */
#include "base/date.h"
#include "control/state.h"
#include "store/usage.h"

#define WRITE_MS INT64_C(60000)

/* The journal of an older version begins with a state, not with a time: nothing can be counted from it. */
static int begin_here(struct control *c, struct err *e)
{
    struct event ev = { .t_ms = control_now_ms(c), .kind = EVENT_LEDGER };
    ev.ledger.day = floor_div(ev.t_ms, DAY_MS);
    return turn_apply(c, &ev, e);
}

int fairness_load(struct control *c, struct err *e)
{
    if (store_ledger_last_day(c->config.store, &c->fairness.day, e) < 0)
        return -1;
    /* A clock that was set back leaves days behind that have not come yet. */
    c->fairness.day = MIN(c->fairness.day, floor_div(control_now_ms(c), DAY_MS));
    core_ledger_forget(c->core, c->fairness.day);
    bool older = c->fairness.day == INT64_MIN && store_journal_lines(c->config.store) > 0;
    return older ? begin_here(c, e) : 0;
}

static void put_row(void *batch, const struct ledger_row *row)
{
    store_put_ledger(batch, row);
}

void fairness_write(struct control *c, bool now)
{
    struct fairness *f = &c->fairness;
    int64_t now_ms = control_now_ms(c), day = floor_div(now_ms, DAY_MS);
    bool due = f->day != day || now_ms - f->written_ms >= WRITE_MS || now_ms < f->written_ms;
    if (!due && !now)
        return;
    core_ledger(c->core, (struct ledger_span){ f->day, now_ms }, put_row, turn_open(c)->batch);
    core_ledger_forget(c->core, MIN(f->day, day)); /* not what is on its way to the disk */
    f->day = day;
    f->written_ms = now_ms;
}

/* ---- reading ---- */

struct reading {
    const struct store_scope *who;
    int64_t to, first; /* first: day that the core has */
    store_ledger_fn *fn;
    void *ctx;
};

static void find_first(void *ctx, const struct ledger_row *row)
{
    struct reading *r = ctx;
    r->first = MIN(r->first, row->day);
}

static void tell_row(void *ctx, const struct ledger_row *row)
{
    const struct reading *r = ctx;
    bool seen = row->tenant.n == 0 || store_scope_sees(r->who, row->tenant);
    if (row->day < r->to && seen)
        r->fn(r->ctx, row);
}

int control_ledger(const struct control *c, const struct store_scope *who, struct control_days days,
                   store_ledger_fn *fn, void *ctx, struct err *e)
{
    struct reading r = { who, days.to, INT64_MAX, fn, ctx };
    core_ledger(c->core, (struct ledger_span){ INT64_MIN, days.now_ms }, find_first, &r);
    struct store_days over = { days.from, MIN(days.to, r.first) };
    if (store_ledger(c->config.store, who, over, fn, ctx, e) < 0)
        return -1;
    core_ledger(c->core, (struct ledger_span){ days.from, days.now_ms }, tell_row, &r);
    return 0;
}

void fairness_minute(struct control *c)
{
    if (floor_div(control_now_ms(c), DAY_MS) == c->fairness.day)
        return;
    fairness_write(c, false);
    turn_close_soon(c, false);
}
