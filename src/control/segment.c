/* Cutting the journal: it begins anew with the events that make the present state, and we go on with
 * the core made from them. */
#include "control/state.h"
#include "journal/journal.h"

#define LINES_MIN 50000   /* below it a restart is quick anyway */
#define LINES_KEPT 500000 /* of segments before this one, about: some 80 MB */
#define SEGMENTS_KEPT UINT64_C(50)

struct cut {
    struct control *c;
    struct core *core;
    struct store_batch *batch;
    struct err e;
    bool failed;
};

static void on_event(void *ctx, const struct event *ev)
{
    struct cut *cut = ctx;
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

static int cut_journal(struct control *c, struct err *e)
{
    struct cut cut = { .c = c, .core = core_new() };
    struct store_batch *b = store_batch_new(c->config.store);
    cut.batch = b;
    uint64_t keep = LINES_KEPT / (store_journal_lines(c->config.store) + 1);
    keep = MIN(keep, SEGMENTS_KEPT);
    store_new_segment(b, control_now_ms(c), (uint32_t)MAX(keep, UINT64_C(1)));
    core_snapshot(c->core, on_event, &cut);
    if (cut.failed) {
        core_free(cut.core);
        store_batch_free(b);
        *e = cut.e;
        return err_wrap(e, "beginning the journal anew");
    }
    core_free(c->core);
    c->core = cut.core;
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
    if (store_journal_lines(c->config.store) <= LINES_MIN + 8 * c->book.n)
        return;
    if (cut_journal(c, &e) < 0)
        log_event(c->config.log, LOG_ERROR_, "journal.cut", "why=%s", e.msg);
    else
        turn_close_soon(c, true);
}
