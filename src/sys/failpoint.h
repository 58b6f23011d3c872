/* failpoint - named places where a test can have the program killed, as a power cut would.
 *
 * With NIGHTSHIFT_FAILPOINT=name in the environment the first visit of that place ends the process
 * with SIGKILL, with name:3 the third; without it a visit does nothing.  From any thread.
 */
#ifndef NS_SYS_FAILPOINT_H
#define NS_SYS_FAILPOINT_H

void fail_point(const char *name);

#endif
