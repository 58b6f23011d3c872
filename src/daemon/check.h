/* check - `nightshiftd --check`: the checks of doctor.h, with the daemon's settings. */
#ifndef NS_DAEMON_CHECK_H
#define NS_DAEMON_CHECK_H

#include "daemon/config.h"

/* Prints what was found.  Returns the exit status: 1 when something is to be fixed. */
int check_run(const struct config *c, const char *libexec);

#endif
