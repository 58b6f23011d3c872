/* The core's journal, as the store keeps it: for replays, and for those who ask what if.  It has the
 * jobs of every tenant, so it is for administrators. */
#include "journal/journal.h"
#include "api/state.h"
#include "api/telling.h"

#define PAGE 500

static int put_line(void *ctx, int64_t t_ms, struct str line, struct err *e)
{
    struct buf *out = ctx;
    (void)t_ms;
    if (line.n == 0) {
        journal_write_header(out);
        return buf_check(out, e);
    }
    buf_add(out, line);
    buf_addc(out, '\n');
    return buf_check(out, e);
}

static int put_page(struct api *a, union telling_place *at, struct buf *out, bool *more,
                    struct err *e)
{
    int rc = store_journal_page(a->config.store, &at->journal, PAGE, put_line, out, e);
    *more = at->journal.next <= at->journal.last;
    return rc;
}

static const struct telling_kind kind = { "journal.read", put_page };

int api_journal(struct call *c, struct err *e)
{
    union telling_place at = { 0 };
    int64_t since_ms = (int64_t)query_number(c, "since_ms", 0);
    if (store_journal_from(c->api->config.store, since_ms, &at.journal, e) < 0)
        return -1;
    return telling_begin(c, &kind, &at, e);
}
