/* opts - command line options as a table that carries their help.
 *
 * `--name value`, `--name=value` and flags; with a letter also `-n value`, `-nvalue` and `-abc` for
 * three flags.  What the table does not know is an error that names the nearest known option.
 * Values are checked and stored at an offset of the caller's struct, which holds the defaults.
 */
#ifndef NS_BASE_OPTS_H
#define NS_BASE_OPTS_H

#include "base/buf.h"
#include "base/err.h"

enum opt_type {
    OPT_FLAG,
    OPT_TEXT,
    OPT_NUMBER,
    OPT_CHOICE,
    OPT_LIST /* may be given again and again */
};

#define OPT_LIST_MAX 256
struct opt_list {
    const char *item[OPT_LIST_MAX];
    size_t n;
};

struct opt {
    const char *name; /* without the dashes; "gpus,g": it has a letter too */
    enum opt_type type;
    size_t offset; /* of a bool, const char *, uint64_t, struct opt_list; OPT_CHOICE: the text */
    const char *value; /* how help calls the value; OPT_CHOICE: the words, "a|b|c" */
    const char *help;
    uint64_t min, max; /* OPT_NUMBER */
};

struct str opt_name(const struct opt *o);
char opt_letter(const struct opt *o); /* 0: none */

/* On failure *into may be half filled: it is the caller's to throw away. */
int opts_parse(const struct opt *table, size_t n, int argc, char *const *argv, void *into,
               struct err *e) MUST_USE;

/* The same for a line that has arguments besides the options.  After `--` all is argument. */
struct opt_line {
    int argc;
    char *const *argv;
    bool leading;      /* the first argument ends the options, as with `env` and `nice` */
    const char **rest; /* the caller's, room for argc */
    size_t n_rest;
};
int opts_parse_line(const struct opt *table, size_t n, struct opt_line *line, void *into,
                    struct err *e) MUST_USE;

/* One line an option. */
void opts_help(const struct opt *table, size_t n, struct buf *out);

/* The entry of `words` that is closest to `word` by letters added, dropped or changed; NULL when
 * none is close. */
const char *opts_nearest(const char *word, const char *const *words, size_t n);

#endif
