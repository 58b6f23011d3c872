/* whatif - a world a little different, as people write it: nodes+=2*rtx4090, weight:vision=3.
 *
 * The changes are one table, from which the help and the errors are made.  A change alters the
 * machines, tenants or jobs of a trace, and the steps of a journal that are about them.
 */
#ifndef NS_SIMULATE_WHATIF_H
#define NS_SIMULATE_WHATIF_H

#include "base/buf.h"
#include "simulate/trace.h"

/* NAME=VALUE of a number of the policy; durations also as 30s, 10m, 2h, 3d. */
int policy_set_parse(struct trace *t, struct str text, struct err *e) MUST_USE;

int whatif_apply(struct trace *t, const char *text, struct err *e) MUST_USE;

/* POOL=TEXT of a calendar (docs/ops/windows.md); an empty text: always open. */
int whatif_window(struct trace *t, struct str arg, struct err *e) MUST_USE;

/* What follows "What if": "there were 2 more machines like rtx4090". */
void whatif_words(const char *text, struct buf *out);

/* One line a change, for help. */
void whatif_print(struct buf *out);
/* The same as rows of Markdown. */
void whatif_print_reference(struct buf *out);

#endif
