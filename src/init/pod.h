/* pod - what the keeper does for a task, done by ourselves where there is no keeper: in a container
 * of Kubernetes.
 *
 * The task's files lie in a folder of an emptyDir: ctl.sock, status and log.0 … log.3.  A socket's
 * name has at most 107 bytes and the folder's may be longer, so it is always used from within the
 * folder; /proc is not needed for that.
 */
#ifndef NS_INIT_POD_H
#define NS_INIT_POD_H

#include "base/err.h"
#include "init/supervisor.h"

#define POD_LOG_BYTES                                                                              \
    (UINT64_C(1) << 20) /* only for those who attach: the node keeps the log too */

/* Makes the folder when there is none, and its files anew.  All of them or none: on failure *out is
 * as it was. */
int pod_open(const char *dir, struct supervisor_files *out, struct err *e) MUST_USE;

/* To the supervisor of that folder, which becomes our own.  The caller closes it. */
int pod_connect(const char *dir, struct err *e) MUST_USE;

/* Our own program, to be run from there; a file of that name is replaced in one step. */
int pod_install(const char *file, struct err *e) MUST_USE;

#endif
