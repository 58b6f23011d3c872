#include "api/sheet.h"

void sheet_row(struct sheet *s)
{
    s->cells = false;
    if (s->form == SHEET_JSON)
        json_begin(s->w, NULL, '{');
}

void sheet_row_end(struct sheet *s)
{
    if (s->form == SHEET_JSON)
        json_end(s->w, '}');
    else
        buf_addz(s->b, "\r\n"); /* RFC 4180 */
}

/* Of a line: true when it has a value, and not its name. */
static bool cell(struct sheet *s, const char *name)
{
    if (s->cells)
        buf_addc(s->b, ',');
    s->cells = true;
    if (s->form == SHEET_TITLES)
        buf_addz(s->b, name);
    return s->form == SHEET_CSV;
}

static bool needs_quotes(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (strchr(",\"\r\n", s.p[i])) /* also the byte 0 */
            return true;
    return false;
}

static void add_csv(struct buf *b, struct str s)
{
    bool quotes = needs_quotes(s);
    if (quotes)
        buf_addc(b, '"');
    if (s.n && s.p[0] && strchr("=+-@\t\r", s.p[0]))
        buf_addc(b, '\'');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"')
            buf_addc(b, '"');
        buf_addc(b, s.p[i]);
    }
    if (quotes)
        buf_addc(b, '"');
}

void sheet_text(struct sheet *s, const char *name, struct str text)
{
    if (s->form == SHEET_JSON)
        json_put_str(s->w, name, text);
    else if (cell(s, name))
        add_csv(s->b, text);
}

void sheet_hours(struct sheet *s, const char *name, double hours)
{
    if (s->form == SHEET_JSON)
        json_put_f64(s->w, name, hours, 6);
    else if (cell(s, name))
        buf_printf(s->b, "%.6f", hours);
}

void sheet_count(struct sheet *s, const char *name, uint64_t n)
{
    if (s->form == SHEET_JSON)
        json_put_u64(s->w, name, n);
    else if (cell(s, name))
        buf_printf(s->b, "%llu", (unsigned long long)n);
}

void sheet_none(struct sheet *s, const char *name)
{
    if (s->form != SHEET_JSON)
        (void)cell(s, name);
}
