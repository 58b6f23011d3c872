/* Cutting the journal: it begins anew with the events that make the present state, and we go on with
 * the core made from them.  That is also how a machine that has changed gets its new figures. */
#include "control/state.h"
#include "journal/journal.h"

#define SEGMENTS_KEPT 50
#define LINES_MIN 50000 /* below it a restart is quick anyway */

struct cut {
    struct control *c;
    struct core *core;
    const struct event_node *node; /* has changed; NULL: none */
    struct store_batch *batch;
    struct err e;
    bool failed;
};

static void on_event(void *ctx, const struct event *ev)
{
    struct cut *cut = ctx;
    AUTO(buf_free) struct buf line = BUF(JOURNAL_LINE_MAX);
    struct event copy = *ev;
    if (cut->failed)
        return;
    if (ev->kind == EVENT_NODE && cut->node && str_eq(ev->node.name, cut->node->name))
        copy.node = *cut->node;
    if (core_apply(cut->core, &copy, &cut->e) < 0) {
        cut->failed = true;
        return;
    }
    journal_write(&copy, &line);
    store_add_journal(cut->batch, copy.t_ms, (struct str){ line.p, line.n - 1 });
}

static int cut_journal(struct control *c, const struct event_node *changed, struct err *e)
{
    struct cut cut = { .c = c, .core = core_new(), .node = changed };
    struct store_batch *b = store_batch_new(c->config.store);
    cut.batch = b;
    store_new_segment(b, control_now_ms(c), SEGMENTS_KEPT);
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
    struct machine *changed = NULL;
    for (size_t i = 0; i < c->machines; i++)
        if (c->machine[i].changed)
            changed = &c->machine[i];
    bool idle = changed && control_holding(c) == 0;
    bool full = store_journal_lines(c->config.store) > LINES_MIN + 8 * c->book.n;
    if (!idle && !full)
        return;
    struct event_node node = { 0 };
    if (idle) {
        node = changed->node;
        node.name = str_of(changed->name);
        node.model = str_of(changed->model);
    }
    if (cut_journal(c, idle ? &node : NULL, &e) < 0)
        log_event(c->config.log, LOG_ERROR_, "journal.cut", "why=%s", e.msg);
    else
        turn_close_soon(c, true);
    if (idle)
        changed->changed = false;
}
