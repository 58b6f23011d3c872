/* The report for a terminal: columns as wide as their longest cell, names made harmless. */
#include "simulate/report_parts.h"

#include <math.h>
#include <stdio.h>

#define CELL_BYTES 256
#define NAME_COLUMNS 28
#define TITLE_COLUMNS 60 /* four bytes each still fit a cell */
#define TENANT_ROWS 100u

struct grid {
    struct arena arena;
    char (*cell)[CELL_BYTES]; /* rows * cols; the first row is the head */
    size_t rows, cols;
};

static struct grid grid_new(size_t rows, size_t cols)
{
    struct grid g = { .rows = rows, .cols = cols };
    g.cell = arena_alloc(&g.arena, rows * cols, CELL_BYTES);
    return g;
}

static void grid_free(struct grid *g)
{
    arena_free(&g->arena);
}

static void grid_put(struct grid *g, size_t row, size_t col, const char *text)
{
    snprintf(g->cell[row * g->cols + col], CELL_BYTES, "%s", text);
}

static size_t columns_of(const char *z)
{
    size_t n = 0;
    for (; *z; z++)
        n += ((unsigned char)*z & 0xc0) != 0x80;
    return n;
}

/* Bytes of the printable UTF-8 character at z, or 0: control characters (U+0080 … U+009F are some
 * too) and stray bytes could move a terminal's cursor. */
static size_t printable(const char *z)
{
    const unsigned char *u = (const unsigned char *)z;
    if (u[0] < 0x80)
        return u[0] >= ' ' && u[0] != 0x7f;
    size_t n = u[0] >= 0xf0 && u[0] < 0xf5 ? 4 : u[0] >= 0xe0 ? 3 : u[0] >= 0xc2 ? 2 : 0;
    if (u[0] >= 0xf5 || (u[0] == 0xc2 && u[1] < 0xa0))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* A name of at most `most` characters, a longer one ending in "…". */
static void grid_put_short(struct grid *g, size_t row, const char *z, size_t most)
{
    char *to = g->cell[row * g->cols];
    size_t columns = 0;
    for (z = z ? z : ""; *z; columns++) {
        size_t n = printable(z);
        if (columns + 1 == most && z[n ? n : 1]) {
            memcpy(to, "…", strlen("…"));
            to += strlen("…");
            break;
        }
        if (n)
            memcpy(to, z, n);
        else
            *to = '?';
        to += n ? n : 1;
        z += n ? n : 1;
    }
    *to = '\0';
}

static void grid_put_name(struct grid *g, size_t row, const char *z)
{
    grid_put_short(g, row, z, NAME_COLUMNS);
}

/* The first column to the left, figures to the right. */
static void grid_print(const struct grid *g, struct buf *out)
{
    for (size_t row = 0; row < g->rows; row++) {
        for (size_t col = 0; col < g->cols; col++) {
            size_t width = 0;
            for (size_t i = 0; i < g->rows; i++)
                width = MAX(width, columns_of(g->cell[i * g->cols + col]));
            const char *text = g->cell[row * g->cols + col];
            int pad = (int)(width - columns_of(text));
            if (col)
                buf_printf(out, "   %*s%s", pad, "", text);
            else
                buf_printf(out, "%s%*s", text, pad, "");
        }
        buf_addc(out, '\n');
    }
}

static void print_title(const struct report *r, struct buf *out)
{
    char span[TEXT_MAX], gpus[TEXT_MAX], jobs[TEXT_MAX], nodes[TEXT_MAX];
    AUTO(grid_free) struct grid name = grid_new(1, 1);
    grid_put_short(&name, 0, r->trace, TITLE_COLUMNS);
    buf_printf(out, "%s%s: %s jobs in %s on %s nodes with %s GPUs\n\n", name.cell[0],
               r->simulated ? " (simulated)" : "", text_count((double)r->jobs, jobs),
               text_duration((double)(r->end_ms - r->begin_ms) / 1000, span),
               text_count(r->nodes, nodes), text_count(r->gpus, gpus));
}

static void put_policy(struct grid *g, size_t row, const struct report *r, struct figures of)
{
    char text[TEXT_MAX];
    grid_put_name(g, row, r->policy);
    for (size_t f = 0; f < of.n; f++)
        grid_put(g, row, f + 1, of.at[f].text(figure_of(&of.at[f], r), text));
}

static void print_speed(const struct report *r, size_t n, struct buf *out)
{
    char text[TEXT_MAX];
    struct figures of = report_speed();
    AUTO(grid_free) struct grid g = grid_new(n + 1, of.n + 2);
    grid_put(&g, 0, 0, "policy");
    grid_put(&g, 0, of.n + 1, "unfinished");
    for (size_t f = 0; f < of.n; f++)
        grid_put(&g, 0, f + 1, of.at[f].name);
    for (size_t i = 0; i < n; i++) {
        put_policy(&g, i + 1, &r[i], of);
        grid_put(&g, i + 1, of.n + 1, text_count((double)r[i].unfinished, text));
    }
    grid_print(&g, out);
}

static void print_fairness(const struct report *r, size_t n, struct buf *out)
{
    struct figures of = report_fairness(&r[n - 1]);
    AUTO(grid_free) struct grid g = grid_new(n + 1, of.n + 1);
    grid_put(&g, 0, 0, "policy");
    for (size_t f = 0; f < of.n; f++)
        grid_put(&g, 0, f + 1, of.at[f].name);
    for (size_t i = 0; i < n; i++)
        put_policy(&g, i + 1, &r[i], of);
    buf_addc(out, '\n');
    grid_print(&g, out);
    if (r[n - 1].rho_note)
        buf_printf(out, "\nrho: %s\n", r[n - 1].rho_note);
}

static void print_tenants(const struct report *r, struct buf *out)
{
    static const char *const heads[] = { "tenant",       "weight",    "jobs",
                                         "GPU-hours",    "entitled",  "got / entitled",
                                         "satisfaction", "avg queue", "p99 queue" };
    char text[TEXT_MAX];
    AUTO(grid_free) struct grid g = grid_new((size_t)r->tenants + 1, ARRAY_LEN(heads));
    for (size_t i = 0; i < ARRAY_LEN(heads); i++)
        grid_put(&g, 0, i, heads[i]);
    for (uint32_t i = 0; i < r->tenants; i++) {
        const struct report_tenant *t = &r->tenant[i];
        grid_put_name(&g, i + 1, t->name);
        grid_put(&g, i + 1, 1, text_weight(t->weight_milli, text));
        grid_put(&g, i + 1, 2, text_count((double)t->jobs, text));
        grid_put(&g, i + 1, 3, text_count(t->gpu_hours, text));
        grid_put(&g, i + 1, 4, text_count(t->entitled_hours, text));
        grid_put(&g, i + 1, 5, text_percent(report_got(t), text));
        grid_put(&g, i + 1, 6, text_percent(t->satisfaction, text));
        grid_put(&g, i + 1, 7, text_duration(t->avg_queue_s, text));
        grid_put(&g, i + 1, 8, text_duration(t->p99_queue_s, text));
    }
    buf_addc(out, '\n');
    grid_print(&g, out);
}

static void print_lent(const struct report *r, struct buf *out)
{
    char most[TEXT_MAX], part[TEXT_MAX], got[TEXT_MAX], outside[TEXT_MAX];
    if (!isfinite(r->harvest))
        return;
    buf_printf(out,
               "\nlent machines: %s GPU-hours worked, %s of the %s of a clairvoyant schedule; "
               "%s held outside their windows\n",
               text_count(r->harvest, got), text_percent(r->harvest_ratio, part),
               text_count(r->harvest_most, most), text_duration(r->outside_window_s, outside));
}

void report_table(const struct report *r, size_t n, struct buf *out)
{
    if (n == 0)
        return;
    print_title(&r[n - 1], out);
    print_speed(r, n, out);
    print_fairness(r, n, out);
    print_lent(&r[n - 1], out);
    if (r[n - 1].tenants > TENANT_ROWS)
        buf_printf(out, "\n%u tenants are too many to list here; --json has them.\n",
                   r[n - 1].tenants);
    else if (r[n - 1].tenants)
        print_tenants(&r[n - 1], out);
}
