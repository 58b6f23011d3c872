/* table - rows under titles, aligned, never wider than the terminal.
 *
 * Cells are copied and cleaned of control characters.  When a table is too wide, the columns that
 * may shrink do, the widest first; what does not fit ends with "…".
 */
#ifndef NS_CLI_TABLE_H
#define NS_CLI_TABLE_H

#include "base/arena.h"
#include "base/buf.h"

enum tint {
    TINT_NONE,
    TINT_GOOD,
    TINT_BAD,
    TINT_WAIT,
    TINT_COLD,
    TINT_FAINT,
    TINT_STRONG
};
const char *tint_begin(enum tint t); /* the escape sequence; "" for TINT_NONE */
#define TINT_END "\x1b[0m"

struct column {
    const char *title;
    bool right;   /* numbers */
    bool shrinks; /* may be cut */
};

struct table;

struct table *table_new(const struct column *columns, size_t n); /* the columns are borrowed */
struct table *table_free(struct table *t);                       /* NULL ok; returns NULL */
void table_free_p(struct table **t);

/* Cell by cell, from left to right and row by row. */
void table_add(struct table *t, struct str text);
void table_addz(struct table *t, const char *text);
void table_add_tinted(struct table *t, struct str text, enum tint tint);
void table_printf(struct table *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
size_t table_rows(const struct table *t);

struct table_look {
    unsigned columns; /* of the terminal; 0: as wide as it likes */
    bool headers, colour;
};
void table_print(const struct table *t, const struct table_look *look, struct buf *out);

#endif
