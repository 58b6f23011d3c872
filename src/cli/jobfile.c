#include "cli/jobfile.h"

#include "base/yaml.h"

/* A line "---" (or "--- " and more) begins a document: inside one, text is indented. */
static bool is_separator(struct str line)
{
    return line.n >= 3 && memcmp(line.p, "---", 3) == 0 && (line.n == 3 || line.p[3] == ' ');
}

static bool says_something(struct str text)
{
    struct str line;
    while (str_next_line(&text, &line)) {
        line = str_trim(line);
        if (line.n && line.p[0] != '#' && !is_separator(line))
            return true;
    }
    return false;
}

bool jobfile_next(struct jobfile *f, struct str *out_text, size_t *out_line)
{
    while (f->rest.n) {
        struct str rest = f->rest, line, text = { f->rest.p, 0 };
        size_t begin = f->line, lines = 0;
        while (str_next_line(&rest, &line)) {
            if (lines && is_separator(line))
                break;
            text.n = f->rest.n - rest.n;
            lines++;
        }
        f->rest = (struct str){ text.p + text.n, f->rest.n - text.n };
        f->line += lines;
        if (says_something(text)) {
            *out_text = text;
            *out_line = begin;
            return true;
        }
    }
    return false;
}

struct json_doc *jobfile_read(struct str text, size_t line, struct err *e)
{
    /* Empty lines in front make the reader count as the file does. */
    AUTO(buf_free) struct buf b = BUF(JOBFILE_MAX * 2);
    for (size_t i = 0; i < line; i++)
        buf_addc(&b, '\n');
    buf_add(&b, text);
    return buf_check(&b, e) < 0 ? NULL : yaml_read(buf_str(&b), e);
}

static bool line_has_key(struct str line, struct str key)
{
    struct str name, value;
    line = str_trim(line);
    while (line.n && (line.p[0] == '-' || line.p[0] == ' ' || line.p[0] == '{'))
        line = (struct str){ line.p + 1, line.n - 1 };
    if (!str_cut(line, ':', &name, &value))
        return false;
    name = str_trim(name);
    if (name.n >= 2 && (name.p[0] == '"' || name.p[0] == '\''))
        name = (struct str){ name.p + 1, name.n - 2 };
    return str_eq(name, key);
}

size_t jobfile_line_of(struct str text, size_t line, const char *field)
{
    struct str rest = str_of(field), part, index, at;
    size_t found = 0;
    while (rest.n) {
        str_cut(rest, '.', &part, &rest);
        str_cut(part, '[', &part, &index);
        bool here = false;
        while (!here && str_next_line(&text, &at)) {
            line++;
            here = line_has_key(at, part);
        }
        if (!here)
            return found; /* the nearest that was found */
        found = line;
    }
    return found;
}
