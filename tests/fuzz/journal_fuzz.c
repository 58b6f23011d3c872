/* Any bytes as the lines of a journal: what reads is written and read again, the same byte for
 * byte, and a core that is told all of it keeps its sums. */
#include "core/core.h"
#include "journal/journal.h"
#include "tests/fuzz/target.h"

static void must(bool truth)
{
    if (!truth)
        abort();
}

static void check_line(struct str line, const struct event *ev)
{
    AUTO(buf_free) struct buf one = BUF(4u << 20), two = BUF(4u << 20);
    AUTO(arena_free) struct arena a = { 0 };
    struct event back;
    struct err e;
    journal_write(ev, &one);
    must(one.n <= line.n * 8 + 512); /* writing does not blow up what was read */
    if (one.n > JOURNAL_LINE_MAX)
        return;
    must(journal_read(buf_str(&one), &a, &back, &e) == 0);
    journal_write(&back, &two);
    must(str_eq(buf_str(&one), buf_str(&two)));
}

FUZZ_TARGET(data, size)
{
    struct str text = { (const char *)data, size }, line;
    AUTO(core_free_p) struct core *c = core_new();
    AUTO(arena_free) struct arena a = { 0 };
    struct err e = { 0 };
    for (int lines = 0; lines < 200 && str_next_line(&text, &line); lines++) {
        struct event ev = { .t_ms = 4711 };
        struct plan p;
        if (lines == 0 && journal_read_header(line, &e) == 0)
            continue;
        if (journal_read(line, &a, &ev, &e) < 0) {
            must(ev.t_ms == 4711 && e.msg[0]);
            continue;
        }
        check_line(line, &ev);
        if (core_apply(c, &ev, &e) < 0)
            must(e.msg[0]);
        if (ev.kind == EVENT_PASS)
            core_pass(c, ev.t_ms, &a, &p);
        arena_reset(&a);
    }
    /* A limit may be set below what is in use, and a decision is not asked twice; sums must
     * hold. */
    must(core_audit(c, &e) == 0 || strstr(e.msg, "is over its limit"));
    return 0;
}
