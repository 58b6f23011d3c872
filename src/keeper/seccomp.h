/* seccomp - the system calls no task may make, as the "seccomp" object of an OCI configuration.
 *
 * A list of what is refused, not of what is allowed: jobs are any program people have, debuggers
 * included, so only calls that change the machine, make namespaces or reach large and little used
 * parts of the kernel are refused.  Most answer EPERM, some ENOSYS so that libraries fall back.
 */
#ifndef NS_KEEPER_SECCOMP_H
#define NS_KEEPER_SECCOMP_H

#include "base/json.h"

void seccomp_write(struct json_out *w, const char *key);

#endif
