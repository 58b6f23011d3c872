#include "simulate/report_grid.h"

#include <stdio.h>

#define NAME_COLUMNS 28
#define TITLE_COLUMNS 60 /* four bytes each still fit a cell */

struct grid grid_new(size_t rows, size_t cols)
{
    struct grid g = { .rows = rows, .cols = cols };
    g.cell = arena_alloc(&g.arena, rows * cols, CELL_BYTES);
    return g;
}

void grid_free(struct grid *g)
{
    arena_free(&g->arena);
}

void grid_put(struct grid *g, size_t row, size_t col, const char *text)
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

void grid_put_name(struct grid *g, size_t row, const char *z)
{
    grid_put_short(g, row, z, NAME_COLUMNS);
}

void grid_put_title(struct grid *g, size_t row, const char *z)
{
    grid_put_short(g, row, z, TITLE_COLUMNS);
}

/* The first column to the left, figures to the right. */
void grid_print(const struct grid *g, struct buf *out)
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
