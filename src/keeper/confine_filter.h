/* confine_filter - the system calls that are left to a program that only turns files into files.
 *
 * A list of what is allowed, with everything that is unknown answered as a kernel would that does not have it.
 * No process, socket or terminal can be made.  What a program writes is counted as such by the kernel
 * (/proc/PID/io), because the ways around write are not there: no shared mapping, no asynchronous
 * I/O, no fallocate, no ioctl.
 */
#ifndef NS_KEEPER_CONFINE_FILTER_H
#define NS_KEEPER_CONFINE_FILTER_H

#include "base/base.h"

/* For this process and for ever; it must have given up new privileges.  Async-signal-safe; -1 with errno. */
int confine_filter(void) MUST_USE;

#endif
