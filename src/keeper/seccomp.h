/* seccomp - the system calls that a task may make, as the "seccomp" object of an OCI configuration.
 *
 * A list of what is allowed: a call that the kernel learns tomorrow is not there until somebody looked at it.  It is
 * wide, since jobs are any program people have, debuggers included; what changes the machine, makes namespaces
 * or reaches large and little used parts of the kernel is not in it.
 */
#ifndef NS_KEEPER_SECCOMP_H
#define NS_KEEPER_SECCOMP_H

#include "base/json.h"

void seccomp_write(struct json_out *w, const char *key);

#endif
