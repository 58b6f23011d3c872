/* life - what happened to one job, from submit to end, a line each. */
#ifndef NS_CLI_LIFE_H
#define NS_CLI_LIFE_H

#include "cli/cli.h"

/* One event of it as a line, without its end. */
void life_line(const struct json *event, struct buf *out);
/* All of them, page by page; json: one object a line. */
int life_print(struct cli *c, uint64_t job, bool json, struct err *e) MUST_USE;

#endif
