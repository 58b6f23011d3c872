/* lent - what `pools` and `reservations` share: machines that somebody has at times, those times, and the
 * jobs that have to leave. */
#ifndef NS_CLI_LENT_H
#define NS_CLI_LENT_H

#include "cli/cli.h"

/* Lines of `show`, each behind its title. */
void lent_add_line(struct buf *b, const char *title, struct str text);
void lent_add_nodes(struct buf *b, const struct json *nodes);
void lent_add_jobs(struct buf *b, const struct json *jobs,
                   bool stay_only); /* all that run there, or those that stay on */

int lent_path(const char *of, const char *name, const char *verb, struct buf *path, struct err *e)
    MUST_USE;

/* As people write them; an hour of --until is the next after --from.  NULL: not said. */
struct lent_times {
    const char *from, *until, *for_time;
};
int lent_put_times(const struct lent_times *t, struct json_out *w, struct err *e) MUST_USE;

/* Says which machines it had, and what they are now. */
int lent_remove(struct cli *c, const char *of, const char *name, const char *now, struct err *e)
    MUST_USE;

/* "pc1 is held by its owner (ana) since 12:30: a talk": a line; `held` as the server has it. */
void lent_add_held(struct buf *out, struct str node, const struct json *held);

#endif
