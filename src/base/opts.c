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

static const struct opt *find(const struct opt *table, size_t n, struct str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_is(name, table[i].name))
            return &table[i];
    return NULL;
}

static int unknown(const struct opt *table, size_t n, const char *arg, struct str name,
                   struct err *e)
{
    const char *names[WORD_MAX];
    char word[WORD_MAX + 1] = "";
    size_t known = 0;
    for (size_t i = 0; i < n && i < ARRAY_LEN(names); i++)
        names[known++] = table[i].name;
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
    err_set(e, ERR_INVALID, "--%s: '%s' is not one of them", o->name, text);
    return err_hint(e, "choose %s", o->value);
}

static int store(const struct opt *o, const char *text, void *into, struct err *e)
{
    void *at = (char *)into + o->offset;
    uint64_t v;
    switch (o->type) {
    case OPT_FLAG: *(bool *)at = true; return 0;
    case OPT_CHOICE:
        if (check_choice(o, text, e) < 0)
            return -1;
        *(const char **)at = text;
        return 0;
    case OPT_TEXT: *(const char **)at = text; return 0;
    case OPT_NUMBER:
        if (parse_u64(str_of(text), o->max, &v, e) < 0)
            return err_wrap(e, "--%s", o->name);
        if (v < o->min)
            return err_set(e, ERR_INVALID, "--%s: %s is too small; it must be at least %llu",
                           o->name, text, (unsigned long long)o->min);
        *(uint64_t *)at = v;
        return 0;
    }
    return err_set(e, ERR_INTERNAL, "--%s: no such type", o->name);
}

int opts_parse(const struct opt *table, size_t n, int argc, char *const *argv, void *into,
               struct err *e)
{
    for (int i = 0; i < argc; i++) {
        struct str name, value;
        if (strncmp(argv[i], "--", 2) != 0 || argv[i][2] == 0) {
            err_set(e, ERR_INVALID, "unexpected argument '%s'", argv[i]);
            return err_hint(e, "options start with --; see --help");
        }
        bool attached = str_cut(str_of(argv[i] + 2), '=', &name, &value);
        const struct opt *o = find(table, n, name);
        if (!o)
            return unknown(table, n, argv[i], name, e);
        if (o->type == OPT_FLAG && attached)
            return err_set(e, ERR_INVALID, "--%s takes no value", o->name);
        if (o->type != OPT_FLAG && !attached && i + 1 == argc)
            return err_set(e, ERR_INVALID, "--%s needs a value: --%s %s", o->name, o->name,
                           o->value);
        const char *text = o->type == OPT_FLAG ? "" : attached ? value.p : argv[++i];
        if (store(o, text, into, e) < 0)
            return -1;
    }
    return 0;
}

void opts_help(const struct opt *table, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct opt *o = &table[i];
        size_t begin = out->n;
        buf_printf(out, "    --%s%s%s", o->name, o->type == OPT_FLAG ? "" : " ",
                   o->type == OPT_FLAG ? "" : o->value);
        size_t wide = out->n - begin;
        buf_printf(out, "%*s%s\n", wide < 30 ? (int)(30 - wide) : 2, "", o->help);
    }
}
