/* completion - scripts for shells, printed from the table of commands. */
#ifndef NS_CLI_COMPLETION_H
#define NS_CLI_COMPLETION_H

#include "base/buf.h"

int completion_print(const char *shell, struct buf *out, struct err *e) MUST_USE;

#endif
