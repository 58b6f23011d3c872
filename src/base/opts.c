#include "base/opts.h"

#include "base/parse.h"

#define WORD_MAX 64 /* longer ones are not compared */

static size_t edit_distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1], na = strlen(a), nb = strlen(b);
    if (na > WORD_MAX || nb > WORD_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            size_t drop = MIN(row[j], row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = MIN(change, drop);
        }
    }
    return row[nb];
}

const char *opts_nearest(const char *word, const char *const *words, size_t n)
{
    const char *best = NULL;
    size_t least = strlen(word) / 2 + 1;
    for (size_t i = 0; i < n; i++) {
        size_t d = edit_distance(word, words[i]);
        if (d < least) {
            least = d;
            best = words[i];
        }
    }
    return best;
}

struct str opt_name(const struct opt *o)
{
    struct str name, letter;
    str_cut(str_of(o->name), ',', &name, &letter);
    return name;
}

char opt_letter(const struct opt *o)
{
    struct str name, letter;
    return str_cut(str_of(o->name), ',', &name, &letter) && letter.n ? letter.p[0] : '\0';
}

static const struct opt *find(const struct opt *table, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(name, opt_name(&table[i])))
            return &table[i];
    return NULL;
}

static const struct opt *find_letter(const struct opt *table, size_t n, char letter)
{
    for (size_t i = 0; i < n; i++)
        if (opt_letter(&table[i]) == letter)
            return &table[i];
    return NULL;
}

static bool has_letters(const struct opt *table, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (opt_letter(&table[i]))
            return true;
    return false;
}

static int unknown(const struct opt *table, size_t n, const char *arg, struct str name,
                   struct err *e)
{
    char text[WORD_MAX][WORD_MAX + 1], word[WORD_MAX + 1] = "";
    const char *names[WORD_MAX];
    size_t known = 0;
    for (; known < n && known < ARRAY_LEN(names); known++) {
        struct str s = opt_name(&table[known]);
        size_t len = MIN(s.n, (size_t)WORD_MAX);
        memcpy(text[known], s.p, len);
        text[known][len] = '\0';
        names[known] = text[known];
    }
    memcpy(word, name.p, MIN(name.n, sizeof word - 1));
    const char *near = opts_nearest(word, names, known);
    err_set(e, ERR_INVALID, "unknown option '%s'", arg);
    return near ? err_hint(e, "did you mean --%s?", near) : err_hint(e, "see --help");
}

static int check_choice(const struct opt *o, const char *text, struct err *e)
{
    struct str rest = str_of(o->value), one;
    while (rest.n) {
        str_cut(rest, '|', &one, &rest);
        if (str_is(one, text))
            return 0;
    }
    err_set(e, ERR_INVALID, "--%.*s: '%s' is not one of them", STR_ARG(opt_name(o)), text);
    return err_hint(e, "choose %s", o->value);
}

static int store_number(const struct opt *o, const char *text, uint64_t *at, struct err *e)
{
    uint64_t v;
    if (parse_u64(str_of(text), o->max, &v, e) < 0)
        return err_wrap(e, "--%.*s", STR_ARG(opt_name(o)));
    if (v < o->min)
        return err_set(e, ERR_INVALID, "--%.*s: %s is too small; it must be at least %llu",
                       STR_ARG(opt_name(o)), text, (unsigned long long)o->min);
    *at = v;
    return 0;
}

static int store(const struct opt *o, const char *text, void *into, struct err *e)
{
    void *at = (char *)into + o->offset;
    struct opt_list *list = at;
    switch (o->type) {
    case OPT_FLAG: *(bool *)at = true; return 0;
    case OPT_CHOICE:
        if (check_choice(o, text, e) < 0)
            return -1;
        *(const char **)at = text;
        return 0;
    case OPT_TEXT: *(const char **)at = text; return 0;
    case OPT_NUMBER: return store_number(o, text, at, e);
    case OPT_LIST:
        if (list->n == OPT_LIST_MAX)
            return err_set(e, ERR_TOO_LARGE, "--%.*s is given more than %d times",
                           STR_ARG(opt_name(o)), OPT_LIST_MAX);
        list->item[list->n++] = text;
        return 0;
    }
    return err_set(e, ERR_INTERNAL, "--%s: no such type", o->name);
}

/* How the value of `o` was written: behind its name, or as the next argument. */
static const char *next_value(const struct opt *o, struct opt_line *line, int *i, struct err *e)
{
    if (*i + 1 < line->argc)
        return line->argv[++*i];
    struct str name = opt_name(o);
    err_set(e, ERR_INVALID, "--%.*s needs a value: --%.*s %s", STR_ARG(name), STR_ARG(name),
            o->value);
    return NULL;
}

static int parse_long(const struct opt *table, size_t n, struct opt_line *line, int *i, void *into,
                      struct err *e)
{
    struct str name, value;
    const char *arg = line->argv[*i];
    bool attached = str_cut(str_of(arg + 2), '=', &name, &value);
    const struct opt *o = find(table, n, name);
    if (!o)
        return unknown(table, n, arg, name, e);
    if (o->type == OPT_FLAG && attached)
        return err_set(e, ERR_INVALID, "--%.*s takes no value", STR_ARG(name));
    const char *text = "";
    if (o->type != OPT_FLAG)
        text = attached ? value.p : next_value(o, line, i, e);
    return text ? store(o, text, into, e) : -1;
}

/* -g 2, -g2, and flags together: -it */
static int parse_letters(const struct opt *table, size_t n, struct opt_line *line, int *i,
                         void *into, struct err *e)
{
    const char *arg = line->argv[*i];
    for (const char *p = arg + 1; *p; p++) {
        const struct opt *o = find_letter(table, n, *p);
        if (!o) {
            err_set(e, ERR_INVALID, "unknown option '-%c'%s%s", *p, arg[2] ? " in " : "",
                    arg[2] ? arg : "");
            return err_hint(e, "see --help");
        }
        if (o->type == OPT_FLAG) {
            if (store(o, "", into, e) < 0)
                return -1;
            continue;
        }
        const char *text = p[1] ? p + 1 : next_value(o, line, i, e);
        return text ? store(o, text, into, e) : -1;
    }
    return 0;
}

static int take_argument(struct opt_line *line, const char *arg, struct err *e)
{
    if (!line->rest) {
        err_set(e, ERR_INVALID, "unexpected argument '%s'", arg);
        return err_hint(e, "options start with --; see --help");
    }
    line->rest[line->n_rest++] = arg;
    return 0;
}

int opts_parse_line(const struct opt *table, size_t n, struct opt_line *line, void *into,
                    struct err *e)
{
    bool letters = line->rest || has_letters(table, n), ended = false;
    line->n_rest = 0;
    for (int i = 0; i < line->argc; i++) {
        const char *arg = line->argv[i];
        if (line->rest && !ended && strcmp(arg, "--") == 0) {
            ended = true;
            continue;
        }
        int rc;
        if (!ended && strncmp(arg, "--", 2) == 0 && arg[2]) {
            rc = parse_long(table, n, line, &i, into, e);
        } else if (!ended && letters && arg[0] == '-' && arg[1] && arg[1] != '-') {
            rc = parse_letters(table, n, line, &i, into, e);
        } else {
            rc = take_argument(line, arg, e);
            ended = ended || line->leading;
        }
        if (rc < 0)
            return -1;
    }
    return 0;
}

int opts_parse(const struct opt *table, size_t n, int argc, char *const *argv, void *into,
               struct err *e)
{
    struct opt_line line = { .argc = argc, .argv = argv };
    return opts_parse_line(table, n, &line, into, e);
}

void opts_help(const struct opt *table, size_t n, struct buf *out)
{
    bool letters = has_letters(table, n);
    for (size_t i = 0; i < n; i++) {
        const struct opt *o = &table[i];
        size_t begin = out->n;
        if (opt_letter(o))
            buf_printf(out, "    -%c, ", opt_letter(o));
        else
            buf_addz(out, letters ? "        " : "    ");
        buf_printf(out, "--%.*s%s%s", STR_ARG(opt_name(o)), o->type == OPT_FLAG ? "" : " ",
                   o->type == OPT_FLAG ? "" : o->value);
        size_t wide = out->n - begin;
        buf_printf(out, "%*s%s\n", wide < 29 ? (int)(30 - wide) : 2, "", o->help);
    }
}
