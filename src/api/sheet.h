/* sheet - rows of named cells, as objects of a JSON list or as lines of CSV.
 *
 * The same calls write either, and the first line of CSV: the names of the cells of a row.  Text that a
 * spreadsheet would take for a formula gets a ' in front of it, as spreadsheets themselves do.
 */
#ifndef NS_API_SHEET_H
#define NS_API_SHEET_H

#include "base/json.h"

enum sheet_form {
    SHEET_JSON,
    SHEET_CSV,
    SHEET_TITLES /* the names alone, of a row whose values do not matter */
};

struct sheet {
    enum sheet_form form;
    struct json_out *w; /* JSON: inside a list */
    struct buf *b;      /* CSV */
    bool cells;         /* of this line */
};

void sheet_row(struct sheet *s);
void sheet_text(struct sheet *s, const char *name, struct str text);
void sheet_hours(struct sheet *s, const char *name, double hours);
void sheet_count(struct sheet *s, const char *name, uint64_t n);
void sheet_none(struct sheet *s, const char *name); /* an empty cell; JSON leaves it out */
void sheet_row_end(struct sheet *s);

#endif
