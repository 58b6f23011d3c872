/* command - the commands of nightshift-sim; each reads its options and prints its result. */
#ifndef NS_SIMULATE_COMMAND_H
#define NS_SIMULATE_COMMAND_H

#include "base/opts.h"

struct command {
    const char *name, *help;
    const struct opt *opts;
    size_t opts_n;
    int (*run)(int argc, char *const *argv, struct err *e);
    void (*more)(struct buf *out); /* below the options in --help; or NULL */
};

extern const struct command command_lab, command_replay;    /* command_replay.c */
extern const struct command command_packing, command_scale; /* command_bench.c */
extern const struct command command_verify, command_docs;   /* command_journal.c */

/* Writes the text to standard output, all of it. */
int command_print(const struct buf *b, struct err *e) MUST_USE;

#endif
