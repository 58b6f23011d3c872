/* clock - the time as something handed in, so that a test can turn it.
 *
 * now_ms is the wall clock in milliseconds since 1970 (UTC).  For measuring how long something took
 * use clock_mono_ns, which never jumps.
 */
#ifndef NS_SYS_CLOCK_H
#define NS_SYS_CLOCK_H

#include "base/base.h"

struct clock {
    int64_t (*now_ms)(void *self);
    void *self;
};

struct clock clock_wall(void);
/* The wall clock, so many ms further as the file says, which is read at each look: for tests that let
 * hours pass.  With "=MS" in it the clock stands there.  The path is borrowed; without such a file it
 * is the wall clock. */
struct clock clock_shifted(const char *path);
struct clock clock_manual(int64_t *now_ms); /* shows whatever *now_ms holds */
int64_t clock_now_ms(const struct clock *c);
int64_t clock_mono_ns(void);
int64_t clock_cpu_ns(
    void); /* what this thread has computed: while others have the processor it stands */

#endif
