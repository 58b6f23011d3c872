/* opts - command line options as a table that carries their help.
 *
 * `--name value`, `--name=value` and flags; what the table does not know is an error that names
 * the nearest known option.  Values are checked and stored at an offset of the caller's struct,
 * which holds the defaults.
 */
#ifndef NS_BASE_OPTS_H
#define NS_BASE_OPTS_H

#include "base/buf.h"
#include "base/err.h"

enum opt_type {
    OPT_FLAG,
    OPT_TEXT,
    OPT_NUMBER,
    OPT_CHOICE
};

struct opt {
    const char *name; /* without the dashes */
    enum opt_type type;
    size_t offset;     /* of a bool, const char *, uint64_t; OPT_CHOICE stores the text */
    const char *value; /* how help calls the value; OPT_CHOICE: the words, "a|b|c" */
    const char *help;
    uint64_t min, max; /* OPT_NUMBER */
};

/* On failure *into may be half filled: it is the caller's to throw away. */
int opts_parse(const struct opt *table, size_t n, int argc, char *const *argv, void *into,
               struct err *e) MUST_USE;

/* One line an option. */
void opts_help(const struct opt *table, size_t n, struct buf *out);

/* The entry of `words` that is closest to `word` by letters added, dropped or changed; NULL when
 * none is close. */
const char *opts_nearest(const char *word, const char *const *words, size_t n);

#endif
