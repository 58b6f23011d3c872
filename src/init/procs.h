/* procs - everything that descends from us, and signals to it.
 *
 * As process 1 of a pid namespace all processes in it are ours, but visitors: those that somebody
 * outside has put into it, as `kubectl exec` does.  Without such a namespace we are the subreaper of
 * our descendants, so none can leave us, and they are found through /proc.
 */
#ifndef NS_INIT_PROCS_H
#define NS_INIT_PROCS_H

#include <sys/types.h>

#include "base/base.h"

void procs_adopt(void); /* once, before the first child */

/* To every process group below us, once each, but those of the given sessions.  `first` is the group
 * that gets it in any case. */
void procs_signal(int signo, pid_t first, const pid_t *not_sessions, size_t n);

void procs_kill_session(pid_t session);

/* SIGKILL to all there are, as process 1 to visitors too unless they are spared.  One that is being
 * born meanwhile may escape: repeat until there is no child left to wait for.  Where /proc does not
 * show them it is the group `first` alone (0: none). */
void procs_kill_all(pid_t first, bool spare_visitors);

#endif
