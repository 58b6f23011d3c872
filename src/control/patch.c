#include "control/patch.h"

#include "core/core.h"
#include "journal/journal.h"
#include "store/segment.h"
#include "sys/weak.h"

#define BAD_MAX 1000000u /* lines: more is no segment */
#define FLUSH_MS 60000u

struct made {
    struct str line;
    int64_t t_ms, day; /* day: of a line of the ledger */
};

struct patch {
    struct store *s;
    struct store_segment seg;
    uint64_t next; /* the place that is looked at next */
    uint64_t *bad; /* places of lines that are missing, or not as they were written; in order */
    size_t bads, bad_cap;
    struct core *core; /* as the segment before ends */
    struct made *made; /* what a segment begins with from there */
    size_t n, cap;
    struct arena lines, scratch;
    int64_t floor_day; /* lines of the ledger before it were in rows of their own by then */
    bool differs;
};

static void patch_clear(struct patch *p)
{
    core_free(p->core);
    arena_free(&p->lines);
    arena_free(&p->scratch);
    free(p->bad);
    free(p->made);
}

static int refuse(const struct patch *p, const char *why, struct err *e)
{
    err_set(
        e, ERR_INTERNAL,
        "the journal is damaged: line %llu of segment %llu, and %zu others, are not as they were "
        "written; %s",
        (unsigned long long)p->bad[0] + 1, (unsigned long long)p->seg.number, p->bads - 1, why);
    return err_hint(e,
                    "keep a copy of nightshift.db and its -wal; then: nightshift restore BACKUP; "
                    "what runs goes on and is taken up");
}

/* ---- what is damaged ---- */

static int note_bad(struct patch *p, uint64_t at, struct err *e)
{
    vec_grow(p->bad, p->bads, p->bad_cap);
    p->bad[p->bads++] = at;
    return p->bads < BAD_MAX ? 0 : refuse(p, "that is too much", e);
}

static int look_at_line(void *ctx, const struct store_seen *seen, struct err *e)
{
    struct patch *p = ctx;
    for (; p->next < seen->at; p->next++)
        if (note_bad(p, p->next, e) < 0)
            return -1;
    p->next = seen->at + 1;
    return seen->whole ? 0 : note_bad(p, seen->at, e);
}

static int look(struct patch *p, struct err *e)
{
    if (store_segment(p->s, 0, &p->seg, e) < 0 ||
        store_segment_lines(p->s, p->seg.number, look_at_line, p, e) < 0)
        return -1;
    for (; p->next < p->seg.begins; p->next++)
        if (note_bad(p, p->next, e) < 0)
            return -1;
    return 0;
}

/* ---- made anew ---- */

static int replay_line(void *ctx, const struct store_seen *seen, struct err *e)
{
    struct patch *p = ctx;
    struct event ev;
    if (!seen->whole || seen->at != p->next)
        return refuse(p, "nor is the segment before it", e);
    p->next++;
    arena_reset(&p->scratch);
    return journal_read(seen->line, &p->scratch, &ev, e) < 0 || core_apply(p->core, &ev, e) < 0
             ? err_wrap(e, "journal, line %llu of the segment before", (unsigned long long)p->next)
             : 0;
}

static void on_event(void *ctx, const struct event *ev)
{
    struct patch *p = ctx;
    AUTO(buf_free) struct buf line = BUF(JOURNAL_LINE_MAX);
    journal_write(ev, &line);
    vec_grow(p->made, p->n, p->cap);
    p->made[p->n++] = (struct made){
        .line = { arena_strndup(&p->lines, line.p, line.n - 1), line.n - 1 },
        .t_ms = ev->t_ms,
        .day = ev->kind == EVENT_LEDGER ? ev->ledger.day : INT64_MAX,
    };
}

static int make(struct patch *p, struct err *e)
{
    struct store_segment before;
    if (store_segment(p->s, 1, &before, e) < 0)
        return -1;
    if (before.number == 0 || before.number + 1 != p->seg.number)
        return refuse(p, "the segment before it is not there", e);
    p->core = core_new();
    p->next = 0;
    if (store_segment_lines(p->s, before.number, replay_line, p, e) < 0)
        return -1;
    if (p->next != p->seg.lines_before)
        return refuse(p, "nor is the segment before it", e);
    core_snapshot(p->core, on_event, p);
    return 0;
}

/* The made line for a place, or NULL. */
static const struct made *made_at(const struct patch *p, uint64_t at)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->made[i].day >= p->floor_day && at-- == 0)
            return &p->made[i];
    return NULL;
}

struct compare {
    struct patch *p;
    size_t i; /* of what was made */
};

static int compare_line(void *ctx, const struct store_seen *seen, struct err *e)
{
    struct compare *c = ctx;
    struct patch *p = c->p;
    (void)e;
    for (; p->next <= seen->at && seen->at < p->seg.begins; p->next++) {
        while (c->i < p->n && p->made[c->i].day < p->floor_day)
            c->i++;
        bool there = p->next == seen->at && seen->whole;
        p->differs |= c->i >= p->n || (there && !str_eq(seen->line, p->made[c->i].line));
        c->i++;
    }
    return 0;
}

/* Is every whole line among those that were made, at its place, and are there as many? */
static bool fits(struct patch *p, int64_t floor_day, struct err *e)
{
    struct compare c = { .p = p };
    uint64_t left = 0;
    p->floor_day = floor_day;
    p->next = 0;
    p->differs = false;
    for (size_t i = 0; i < p->n; i++)
        left += p->made[i].day >= floor_day;
    return left == p->seg.begins &&
           store_segment_lines(p->s, p->seg.number, compare_line, &c, e) == 0 && !p->differs;
}

static bool find_fit(struct patch *p, struct err *e)
{
    if (fits(p, INT64_MIN, e))
        return true;
    for (size_t i = 0; i < p->n; i++)
        if (p->made[i].day != INT64_MAX && p->made[i].day != p->floor_day &&
            fits(p, p->made[i].day, e))
            return true;
    return false;
}

static int write_lines(struct patch *p, struct err *e)
{
    struct store_batch *b = store_batch_new(p->s);
    for (size_t i = 0; i < p->bads; i++) {
        const struct made *m = made_at(p, p->bad[i]);
        struct store_seen line = { .at = p->bad[i], .t_ms = m->t_ms, .line = m->line };
        store_put_line(b, p->seg.number, &line);
    }
    store_commit(p->s, b, NULL, NULL);
    return store_flush(p->s, FLUSH_MS, e);
}

int patch_journal(struct store *s, struct log *log, struct err *e)
{
    AUTO(patch_clear) struct patch p = { .s = s };
    if (look(&p, e) < 0)
        return -1;
    if (p.bads == 0 || weak_or("row_sums", false, true))
        return 0;
    if (p.bad[p.bads - 1] >= p.seg.begins)
        return refuse(&p, "what they told is nowhere else", e);
    if (make(&p, e) < 0)
        return -1;
    if (!find_fit(&p, e))
        return refuse(&p, "and the segment before it makes others", e);
    if (write_lines(&p, e) < 0)
        return -1;
    if (log)
        log_event(log, LOG_WARN_, "journal.mended", "segment=%llu lines=%zu first=%llu why=%s",
                  (unsigned long long)p.seg.number, p.bads, (unsigned long long)p.bad[0] + 1,
                  "they were not as they were written; the segment before made them again");
    return 0;
}
