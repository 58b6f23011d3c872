/* here - the programs beside this one. */
#ifndef NS_CLI_HERE_H
#define NS_CLI_HERE_H

#include "base/json.h"

/* What nightshiftd says of this machine when no server runs: `nightshiftd --check --json`.  json_free
 * it; NULL: it is not installed, or refuses. */
struct json_doc *here_check(struct err *e);

/* Becomes the program argv[0] that lies beside this one; returns only when that fails. */
int here_daemon(char *const *argv, struct err *e) MUST_USE; /* becomes nightshiftd */
int here_exec(char *const *argv, struct err *e) MUST_USE;

#endif
