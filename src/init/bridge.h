/* bridge - our stdin and stdout, connected to the supervisor of a task's folder.
 *
 * The control plane runs it inside a pod to speak wire/stream.h with the supervisor there; it does not
 * look inside.  The end of stdin is passed on, and the supervisor takes it for a client that has gone:
 * that is how it learns of a connection to the pod that broke.  The supervisor's end is ours, whatever
 * may still come from stdin; stdout ends at once, and we when stdin does or a second later.
 */
#ifndef NS_INIT_BRIDGE_H
#define NS_INIT_BRIDGE_H

#include "base/err.h"

int bridge_run(const char *dir, struct err *e) MUST_USE;

#endif
