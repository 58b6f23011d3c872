/* csv - tables with a header row, read strictly: nothing is guessed, nothing is skipped in silence.
 *
 * A reader lists the columns it knows; the header decides where they are and others are ignored.
 * Fields may be quoted ("a, b", "" for a quote), a row is one line, lines may end in CRLF.  Every
 * error says FILE:LINE and the field, is ERR_INVALID, and has a hint.  Lines, fields and rows are
 * bounded; the text is borrowed and nothing is allocated.
 */
#ifndef NS_SIMULATE_CSV_H
#define NS_SIMULATE_CSV_H

#include "base/buf.h"

#define CSV_FIELDS_MAX 128
#define CSV_LINE_MAX 8192

enum {
    CSV_OPTIONAL = 1, /* the table may lack the column: its fields are empty then */
    CSV_EMPTY = 2     /* a row may leave it empty */
};

struct csv_column {
    const char *name;
    unsigned flags;
};

/* A text and the name people know it by. */
struct csv_source {
    const char *file;
    struct str text;
};

struct csv_table {
    const struct csv_column *column;
    size_t columns;  /* <= CSV_FIELDS_MAX */
    size_t rows_max; /* more are an error */
};

/* Points into itself once opened: not to be copied. */
struct csv {
    const char *file;
    size_t line; /* of the current row; the header is line 1 */
    size_t room; /* no more rows than this can come: what to allocate */
    size_t columns, fields;
    const struct csv_table *table;
    struct str rest;
    struct str name[CSV_FIELDS_MAX], field[CSV_FIELDS_MAX];
    uint32_t at[CSV_FIELDS_MAX]; /* the field of each column */
    char unquoted_header[CSV_LINE_MAX], unquoted[CSV_LINE_MAX];
};

int csv_open(struct csv *c, const struct csv_source *from, const struct csv_table *t, struct err *e)
    MUST_USE;
int csv_next(struct csv *c, struct err *e) MUST_USE; /* 1: a row, 0: the end, -1: broken */

/* A column is its index in the table's list; `columns` + i is the i-th field of the file, for
 * tables whose column names are data.  The text is valid until the next row. */
struct str csv_name(const struct csv *c, size_t column);
struct str csv_text(const struct csv *c, size_t column);
bool csv_has(const struct csv *c, size_t column); /* the header names it */
int csv_i64(const struct csv *c, size_t column, int64_t min, int64_t max, int64_t *out,
            struct err *e) MUST_USE;
int csv_u32(const struct csv *c, size_t column, uint32_t min, uint32_t max, uint32_t *out,
            struct err *e) MUST_USE;
int csv_f64(const struct csv *c, size_t column, double min, double max, double *out, struct err *e)
    MUST_USE;

/* Makes a message about a field of this row: FILE:LINE: field 'NAME': … */
int csv_fail(const struct csv *c, size_t column, struct err *e, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* Puts the same in front of a message that is there already.  Both return -1. */
int csv_wrap(const char *file, size_t line, const char *field, struct err *e);

/* ---- the files of a data folder ---- */

struct csv_file {
    char *path;
    struct buf text;
};

struct csv_folder {
    const char *dir, *sub; /* DIR/SUB is looked into before DIR */
};

/* Reads NAME or NAME.gz.  ERR_NOT_FOUND when there is neither; the caller frees *out. */
int csv_load(const struct csv_folder *in, const char *name, size_t limit, struct csv_file *out,
             struct err *e) MUST_USE;
struct csv_source csv_file_source(const struct csv_file *f);
void csv_file_free(struct csv_file *f);

#endif
