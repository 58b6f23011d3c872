/* failpoint - places where a test may have the process die as if by kill -9.
 *
 * NIGHTSHIFT_FAILPOINT=name kills at the first visit of that place, name:3 at the third.  Unarmed, a
 * place costs one look into the environment.  What a crash there leaves behind is what the next
 * start of the program has to cope with; the tests visit every place there is.
 */
#ifndef NS_SYS_FAILPOINT_H
#define NS_SYS_FAILPOINT_H

void fail_point(const char *name);

#endif
