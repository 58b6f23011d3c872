/* saving - `nightshiftd --backup`, `--restore` and `--verify`: the store as a file, without the daemon's help. */
#ifndef NS_DAEMON_SAVING_H
#define NS_DAEMON_SAVING_H

#include "daemon/config.h"

bool saving_wanted(const struct config *c);
/* Prints what was done. */
int saving_run(const struct config *c, struct err *e) MUST_USE;

#endif
