#include "cli/table.h"

#include <stdarg.h>
#include <stdio.h>

#include "cli/text.h"

#define GAP 2u
#define LEAST 6u /* a column that shrinks keeps this much */

struct cell {
    struct str text;
    enum tint tint;
};

struct table {
    const struct column *columns;
    size_t n_columns;
    struct cell *cells;
    size_t n, cap;
    struct arena arena;
};

const char *tint_begin(enum tint t)
{
    switch (t) {
    case TINT_NONE: return "";
    case TINT_GOOD: return "\x1b[32m";
    case TINT_BAD: return "\x1b[31m";
    case TINT_WAIT: return "\x1b[33m";
    case TINT_COLD: return "\x1b[36m";
    case TINT_FAINT: return "\x1b[2m";
    case TINT_STRONG: return "\x1b[1m";
    }
    return "";
}

struct table *table_new(const struct column *columns, size_t n)
{
    struct table *t = xcalloc(1, sizeof *t);
    t->columns = columns;
    t->n_columns = n;
    t->arena.limit = 1u << 30;
    return t;
}

struct table *table_free(struct table *t)
{
    if (!t)
        return NULL;
    arena_free(&t->arena);
    free(t->cells);
    free(t);
    return NULL;
}

void table_free_p(struct table **t)
{
    *t = table_free(*t);
}

void table_add_tinted(struct table *t, struct str text, enum tint tint)
{
    vec_grow(t->cells, t->n, t->cap);
    char *copy = arena_strndup(&t->arena, text.p, text.n);
    t->cells[t->n++] = (struct cell){ { copy, text.n }, tint };
}

void table_add(struct table *t, struct str text)
{
    table_add_tinted(t, text, TINT_NONE);
}

void table_addz(struct table *t, const char *text)
{
    table_add(t, str_of(text));
}

void table_printf(struct table *t, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    table_addz(t, text);
}

size_t table_rows(const struct table *t)
{
    return t->n / t->n_columns;
}

static void measure(const struct table *t, bool headers, unsigned *width)
{
    for (size_t c = 0; c < t->n_columns; c++)
        width[c] = headers ? text_width(str_of(t->columns[c].title)) : 0;
    for (size_t i = 0; i < t->n; i++) {
        unsigned w = text_width(t->cells[i].text);
        size_t c = t->n_columns ? i % t->n_columns : 0;
        width[c] = MAX(width[c], w);
    }
}

static unsigned total_width(const struct table *t, const unsigned *width)
{
    unsigned sum = (unsigned)(t->n_columns - 1) * GAP;
    for (size_t c = 0; c < t->n_columns; c++)
        sum += width[c];
    return sum;
}

/* Takes column by column from the widest until it fits or nothing can shrink any more. */
static void shrink(const struct table *t, unsigned columns, unsigned *width)
{
    for (unsigned sum = total_width(t, width); sum > columns; sum--) {
        size_t widest = t->n_columns;
        for (size_t c = 0; c < t->n_columns; c++)
            if (t->columns[c].shrinks && width[c] > LEAST &&
                (widest == t->n_columns || width[c] >= width[widest]))
                widest = c;
        if (widest == t->n_columns)
            return;
        width[widest]--;
    }
}

static void pad(struct buf *out, unsigned n)
{
    while (n--)
        buf_addc(out, ' ');
}

/* One row; `cells` NULL: the titles. */
static void print_row(const struct table *t, const struct cell *cells, const unsigned *width,
                      const struct table_look *look, struct buf *out)
{
    for (size_t c = 0; c < t->n_columns; c++) {
        const struct column *col = &t->columns[c];
        struct str text = cells ? cells[c].text : str_of(col->title);
        enum tint tint = !look->colour ? TINT_NONE : cells ? cells[c].tint : TINT_FAINT;
        unsigned w = text_width(text), left = w < width[c] ? width[c] - w : 0;
        if (col->right)
            pad(out, left);
        buf_addz(out, tint_begin(tint));
        text_add_fit(out, text, width[c]);
        buf_addz(out, tint == TINT_NONE ? "" : TINT_END);
        if (c + 1 == t->n_columns)
            break;
        pad(out, (col->right ? 0 : left) + GAP);
    }
    while (out->n && out->p[out->n - 1] == ' ')
        buf_truncate(out, out->n - 1);
    buf_addc(out, '\n');
}

void table_print(const struct table *t, const struct table_look *look, struct buf *out)
{
    unsigned *width = xcalloc(t->n_columns, sizeof *width);
    measure(t, look->headers, width);
    if (look->columns)
        shrink(t, look->columns, width);
    if (look->headers)
        print_row(t, NULL, width, look, out);
    for (size_t i = 0; i + t->n_columns <= t->n; i += t->n_columns)
        print_row(t, &t->cells[i], width, look, out);
    free(width);
}
