#include "api/grep.h"

#include <stdlib.h>
#include <string.h>

/* One that may be wanted before a match. */
struct kept {
    struct grep_line line;
    char *text;
};

/* A stream's line as far as it came. */
struct part {
    struct buf text;
    int64_t t_us;
    bool begun;
};

struct grep {
    char *word;
    size_t n;
    bool ignore_case;
    uint32_t context;
    uint32_t after;    /* so many lines more come out, match or not */
    bool told, hidden; /* a line came out; and some since then did not */
    struct part part[JOBLOG_META];
    struct buf folded;
    struct kept kept[GREP_CONTEXT_MAX]; /* a ring: `held` of them, the oldest at `first` */
    uint32_t first, held;
    size_t kept_bytes;
};

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

struct grep *grep_new(const struct grep_want *w)
{
    struct grep *g = xcalloc(1, sizeof *g);
    g->word = xcalloc(1, w->word.n + 1);
    g->n = w->word.n;
    g->ignore_case = w->ignore_case;
    g->context = MIN(w->context, GREP_CONTEXT_MAX);
    for (size_t i = 0; i < w->word.n; i++)
        g->word[i] = g->ignore_case ? fold(w->word.p[i]) : w->word.p[i];
    for (size_t i = 0; i < ARRAY_LEN(g->part); i++)
        g->part[i].text = BUF(GREP_LINE_MAX);
    g->folded = BUF(GREP_LINE_MAX);
    return g;
}

static void drop_oldest(struct grep *g)
{
    struct kept *k = &g->kept[g->first];
    g->kept_bytes -= k->line.text.n;
    free(k->text);
    *k = (struct kept){ 0 };
    g->first = (g->first + 1) % GREP_CONTEXT_MAX;
    g->held--;
    g->hidden = true;
}

struct grep *grep_free(struct grep *g)
{
    if (!g)
        return NULL;
    while (g->held)
        drop_oldest(g);
    for (size_t i = 0; i < ARRAY_LEN(g->part); i++)
        buf_free(&g->part[i].text);
    buf_free(&g->folded);
    free(g->word);
    free(g);
    return NULL;
}

static bool has_word(struct grep *g, struct str text, size_t *out_at)
{
    const char *in = text.p;
    if (text.n < g->n)
        return false;
    if (g->ignore_case) {
        buf_truncate(&g->folded, 0);
        for (size_t i = 0; i < text.n; i++)
            buf_addc(&g->folded, fold(text.p[i]));
        in = g->folded.p;
    }
    const char *at = memmem(in, text.n, g->word, g->n);
    *out_at = at ? (size_t)(at - in) : 0;
    return at;
}

static void tell(struct grep *g, struct grep_line l, grep_fn *fn, void *ctx)
{
    l.gap = g->context && g->told && g->hidden;
    g->told = true;
    g->hidden = false;
    fn(ctx, &l);
}

static void keep(struct grep *g, const struct grep_line *l)
{
    if (!g->context) {
        g->hidden = true;
        return;
    }
    while (g->held && (g->held == g->context || g->kept_bytes + l->text.n > GREP_KEPT_MAX))
        drop_oldest(g);
    struct kept *k = &g->kept[(g->first + g->held) % GREP_CONTEXT_MAX];
    k->line = *l;
    k->text = xcalloc(1, l->text.n + 1);
    memcpy(k->text, l->text.p ? l->text.p : "", l->text.n);
    k->line.text.p = k->text;
    g->kept_bytes += l->text.n;
    g->held++;
}

static void tell_kept(struct grep *g, grep_fn *fn, void *ctx)
{
    while (g->held) {
        tell(g, g->kept[g->first].line, fn, ctx);
        drop_oldest(g);
        g->hidden = false; /* it was told, not left out */
    }
}

static void look_at(struct grep *g, struct grep_line l, grep_fn *fn, void *ctx)
{
    l.match = has_word(g, l.text, &l.at);
    if (l.match) {
        tell_kept(g, fn, ctx);
        tell(g, l, fn, ctx);
        g->after = g->context;
    } else if (g->after) {
        g->after--;
        tell(g, l, fn, ctx);
    } else {
        keep(g, &l);
    }
}

static void part_done(struct grep *g, enum joblog_stream s, bool full, grep_fn *fn, void *ctx)
{
    struct part *p = &g->part[s];
    struct grep_line l = { .t_us = p->t_us, .stream = s, .text = buf_str(&p->text), .full = full };
    look_at(g, l, fn, ctx);
    buf_truncate(&p->text, 0);
    p->begun = false;
}

void grep_feed(struct grep *g, const struct joblog_record *r, grep_fn *fn, void *ctx)
{
    if (r->stream >= JOBLOG_META)
        return;
    struct part *p = &g->part[r->stream];
    struct str text = r->text;
    while (p->text.n + text.n > GREP_LINE_MAX) {
        size_t fits = GREP_LINE_MAX - p->text.n;
        p->t_us = p->begun ? p->t_us : r->t_us;
        p->begun = true;
        buf_add(&p->text, (struct str){ text.p, fits });
        text = (struct str){ text.p + fits, text.n - fits };
        part_done(g, r->stream, false, fn, ctx);
    }
    p->t_us = p->begun ? p->t_us : r->t_us;
    p->begun = true;
    buf_add(&p->text, text);
    if (r->full)
        part_done(g, r->stream, true, fn, ctx);
}

void grep_end(struct grep *g, grep_fn *fn, void *ctx)
{
    for (size_t s = 0; s < ARRAY_LEN(g->part); s++)
        if (g->part[s].begun)
            part_done(g, (enum joblog_stream)s, true, fn, ctx);
}

bool grep_is_between(const struct grep *g)
{
    for (size_t s = 0; s < ARRAY_LEN(g->part); s++)
        if (g->part[s].begun)
            return false;
    return true;
}
