/* submit - specs to the server, jobs back. */
#ifndef NS_CLI_SUBMIT_H
#define NS_CLI_SUBMIT_H

#include "cli/cli.h"
#include "cli/flags.h"

struct submitted {
    uint64_t id, count; /* ids id … id + count - 1 */
};

/* *out_field (may be NULL): the field that the server refused, in the cli's arena, or "". */
int submit_spec(struct cli *c, struct str spec, struct submitted *out, const char **out_field,
                struct answer *answer, struct err *e) MUST_USE;

/* The spec of `argv` under the flags, as `run` makes it: the folder and variables of here. */
int submit_run_spec(const struct flags *f, struct words argv, struct buf *out, struct err *e)
    MUST_USE;

/* Asks the server to check it without making a job.  Texts live in the cli's arena. */
struct submit_checked {
    const char *field; /* that it refused, or "" */
    const char *told;  /* when it would start, in a sentence; "": the server does not say */
    bool known;        /* false: a server that cannot check */
};
int submit_check(struct cli *c, struct str spec, struct submit_checked *out, struct err *e)
    MUST_USE;

/* Jobs to start after, as people name them: lists are split (17,any:18), elements of arrays (17_3)
 * are looked up, 17_* is 17.  Texts live in the cli's arena. */
int submit_find_after(struct cli *c, struct opt_list *after, struct err *e) MUST_USE;

#endif
