#include "simulate/csv.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/parse.h"
#include "sys/file.h"

#define ABSENT UINT32_MAX
#define PATH_SHOWN 120 /* bytes of a long path: the message behind it must stay readable */

static const char *shown(const char *file)
{
    size_t n = strlen(file);
    if (n > PATH_SHOWN)
        file += n - PATH_SHOWN;
    while ((*file & 0xc0) == 0x80) /* not from the middle of a character */
        file++;
    return file;
}

int csv_wrap(const char *file, size_t line, const char *field, struct err *e)
{
    const char *tail = shown(file);
    return err_wrap(e, "%s%s:%zu: field '%.60s'", tail == file ? "" : "...", tail, line, field);
}

/* The message in e becomes one about this field. */
static int wrap_field(const struct csv *c, size_t column, struct err *e)
{
    char name[64];
    struct str known = csv_name(c, column);
    snprintf(name, sizeof name, "%.*s", (int)MIN(known.n, sizeof name - 1), known.p);
    return csv_wrap(c->file, c->line, name, e);
}

int csv_fail(const struct csv *c, size_t column, struct err *e, const char *fmt, ...)
{
    char text[sizeof e->msg];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err_set(e, ERR_INVALID, "%s", text);
    return wrap_field(c, column, e);
}

struct str csv_name(const struct csv *c, size_t column)
{
    if (column < c->columns)
        return str_of(c->table->column[column].name);
    return column - c->columns < c->fields ? c->name[column - c->columns] : STR("");
}

bool csv_has(const struct csv *c, size_t column)
{
    return column < c->columns && c->at[column] != ABSENT;
}

struct str csv_text(const struct csv *c, size_t column)
{
    size_t i = column < c->columns ? c->at[column] : column - c->columns;
    return i < c->fields ? c->field[i] : STR("");
}

int csv_i64(const struct csv *c, size_t column, int64_t min, int64_t max, int64_t *out,
            struct err *e)
{
    if (parse_i64(csv_text(c, column), min, max, out, e) < 0)
        return wrap_field(c, column, e);
    return 0;
}

int csv_u32(const struct csv *c, size_t column, uint32_t min, uint32_t max, uint32_t *out,
            struct err *e)
{
    int64_t v;
    if (csv_i64(c, column, min, max, &v, e) < 0)
        return -1;
    *out = (uint32_t)v;
    return 0;
}

int csv_f64(const struct csv *c, size_t column, double min, double max, double *out, struct err *e)
{
    if (parse_f64(csv_text(c, column), min, max, out, e) < 0)
        return wrap_field(c, column, e);
    return 0;
}

/* ---- one line into fields ---- */

struct cut {
    struct str *field;
    size_t n;
    char *unquoted; /* room for CSV_LINE_MAX bytes */
    size_t used;
    const char *wrong; /* what is wrong with the last field */
};

/* A field that begins with a quote, up to its closing one.  Its text is never longer than its
 * spelling, so the room for one line is enough. */
static bool cut_quoted(struct cut *k, struct str *line)
{
    char *to = k->unquoted + k->used;
    size_t i = 1, n = 0;
    for (; i < line->n; i++) {
        if (line->p[i] == '"') {
            if (i + 1 == line->n || line->p[i + 1] != '"')
                break;
            i++;
        }
        to[n++] = line->p[i];
    }
    if (i >= line->n) {
        k->wrong = "its quote is not closed on this line";
        return false;
    }
    k->field[k->n] = (struct str){ to, n };
    k->used += n;
    *line = (struct str){ line->p + i + 1, line->n - i - 1 };
    if (line->n && line->p[0] != ',') {
        k->wrong = "text follows its closing quote";
        return false;
    }
    return true;
}

static bool cut_plain(struct cut *k, struct str *line)
{
    const char *comma = line->n ? memchr(line->p, ',', line->n) : NULL;
    size_t n = comma ? (size_t)(comma - line->p) : line->n;
    if (n && memchr(line->p, '"', n)) {
        k->wrong = "a quote in a field that does not begin with one";
        return false;
    }
    k->field[k->n] = (struct str){ line->p, n };
    *line = (struct str){ line->p + n, line->n - n };
    return true;
}

/* false: field k->n (from 0) is the wrong one. */
static bool cut_line(struct cut *k, struct str line)
{
    for (;;) {
        if (k->n == CSV_FIELDS_MAX) {
            k->wrong = "too many fields on this line";
            return false;
        }
        bool quoted = line.n && line.p[0] == '"';
        if (!(quoted ? cut_quoted(k, &line) : cut_plain(k, &line)))
            return false;
        k->n++;
        if (line.n == 0)
            return true;
        line = (struct str){ line.p + 1, line.n - 1 }; /* the comma */
    }
}

/* Takes the next line and cuts it; 0 at the end of the text. */
static int next_line(struct csv *c, struct cut *k, struct err *e)
{
    struct str line;
    if (!str_next_line(&c->rest, &line))
        return 0;
    c->line++;
    if (line.n >= CSV_LINE_MAX)
        k->wrong = "the line is longer than 8191 bytes";
    else if (line.n && memchr(line.p, '\0', line.n))
        k->wrong = "the line holds a NUL byte";
    else if (line.n == 0 && str_trim(c->rest).n == 0)
        return 0; /* blank lines at the end are no rows */
    else if (cut_line(k, line))
        return 1;
    char number[32];
    snprintf(number, sizeof number, "%zu", k->n + 1);
    if (k->n < c->fields)
        return csv_fail(c, c->columns + k->n, e, "%s", k->wrong);
    err_set(e, ERR_INVALID, "%s", k->wrong);
    return csv_wrap(c->file, c->line, number, e);
}

static int hint_broken(struct err *e)
{
    return err_hint(
        e, "a row is one line; a field with a comma or a quote is written \"a, \"\"b\"\"\"");
}

/* ---- the header ---- */

static int hint_columns(const struct csv *c, struct err *e)
{
    char list[sizeof e->hint] = "";
    size_t n = 0;
    for (size_t i = 0; i < c->columns && n < sizeof list; i++)
        if (!(c->table->column[i].flags & CSV_OPTIONAL))
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "",
                                  c->table->column[i].name);
    return err_hint(e, "the first line must name the columns: %s", list);
}

static int find_columns(struct csv *c, struct err *e)
{
    for (size_t i = 0; i < c->columns; i++) {
        const struct csv_column *want = &c->table->column[i];
        c->at[i] = ABSENT;
        for (size_t f = 0; f < c->fields; f++) {
            if (!str_is(c->name[f], want->name))
                continue;
            if (c->at[i] != ABSENT) {
                csv_fail(c, i, e, "the header names it twice");
                return hint_columns(c, e);
            }
            c->at[i] = (uint32_t)f;
        }
        if (c->at[i] == ABSENT && !(want->flags & CSV_OPTIONAL)) {
            csv_fail(c, i, e, "the header does not name it");
            return hint_columns(c, e);
        }
    }
    return 0;
}

static size_t count_lines(struct str s, size_t max)
{
    size_t n = 0;
    while (s.n && n <= max) {
        const char *end = memchr(s.p, '\n', s.n);
        size_t used = end ? (size_t)(end - s.p) + 1 : s.n;
        s = (struct str){ s.p + used, s.n - used };
        n++;
    }
    return n;
}

int csv_open(struct csv *c, const struct csv_source *from, const struct csv_table *t, struct err *e)
{
    c->file = from->file;
    c->line = 0;
    c->table = t;
    c->columns = t->columns;
    c->fields = 0;
    c->rest = from->text;
    if (c->rest.n >= 3 && memcmp(c->rest.p, "\xef\xbb\xbf", 3) == 0) /* spreadsheets write it */
        c->rest = (struct str){ c->rest.p + 3, c->rest.n - 3 };
    struct cut k = { .field = c->name, .unquoted = c->unquoted_header };
    int rc = next_line(c, &k, e);
    if (rc < 0)
        return hint_broken(e);
    if (rc == 0) {
        c->line = 1;
        csv_fail(c, 0, e, "the file is empty");
        return hint_columns(c, e);
    }
    c->fields = k.n;
    if (find_columns(c, e) < 0)
        return -1;
    c->room = MIN(count_lines(c->rest, t->rows_max), t->rows_max);
    return 0;
}

static int check_row(const struct csv *c, size_t found, struct err *e)
{
    if (found < c->fields) {
        csv_fail(c, c->columns + found, e, "missing: %zu fields, the header has %zu", found,
                 c->fields);
        return hint_broken(e);
    }
    for (size_t i = 0; i < c->columns; i++) {
        if (c->at[i] == ABSENT || c->table->column[i].flags & CSV_EMPTY || csv_text(c, i).n)
            continue;
        csv_fail(c, i, e, "it is empty");
        return err_hint(e, "every row needs a value here");
    }
    return 1;
}

int csv_next(struct csv *c, struct err *e)
{
    struct cut k = { .field = c->field, .unquoted = c->unquoted };
    int rc = next_line(c, &k, e);
    if (rc < 0)
        return hint_broken(e);
    if (rc == 0)
        return 0;
    if (k.n > c->fields) {
        char number[32];
        snprintf(number, sizeof number, "%zu", c->fields + 1);
        err_set(e, ERR_INVALID, "one too many: %zu fields, the header has %zu", k.n, c->fields);
        csv_wrap(c->file, c->line, number, e);
        return hint_broken(e);
    }
    if (c->line - 1 > c->table->rows_max) {
        csv_fail(c, 0, e, "more than %zu rows", c->table->rows_max);
        return err_hint(e, "cut the table into smaller ones");
    }
    return check_row(c, k.n, e);
}

/* ---- the files of a data folder ---- */

int csv_load(const struct csv_folder *in, const char *name, size_t limit, struct csv_file *out,
             struct err *e)
{
    for (int i = 0; i < 4; i++) {
        struct buf path = BUF(16384);
        buf_printf(&path, "%s/%s%s%s%s", in->dir, i < 2 ? in->sub : "", i < 2 ? "/" : "", name,
                   i % 2 ? ".gz" : "");
        struct csv_file f = { .path = path.p };
        if (buf_check(&path, e) == 0 && file_read(f.path, limit, &f.text, e) == 0) {
            *out = f;
            return 0;
        }
        csv_file_free(&f);
        if (e->code != ERR_NOT_FOUND)
            return -1;
    }
    err_set(e, ERR_NOT_FOUND, "no '%s' and no '%s.gz' in '%.100s' or its folder '%s'", name, name,
            in->dir, in->sub);
    return err_hint(e, "name the folder that holds %s/", in->sub);
}

struct csv_source csv_file_source(const struct csv_file *f)
{
    return (struct csv_source){ f->path, buf_str(&f->text) };
}

void csv_file_free(struct csv_file *f)
{
    free(f->path);
    buf_free(&f->text);
    *f = (struct csv_file){ 0 };
}
