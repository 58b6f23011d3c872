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
/* A clock so many ms further as the file says, which is read at each look: for tests that let hours pass.  With
 * "=MS" in it the wall clock stands there, and every other with it.  The path is borrowed, and so is *s; without such a file it is that clock. */
struct clock_shift {
    struct clock of;
    const char *path;
};
struct clock clock_shifted(struct clock_shift *s, struct clock of, const char *path);
struct clock clock_manual(int64_t *now_ms); /* shows whatever *now_ms holds */
int64_t clock_now_ms(const struct clock *c);
int64_t clock_mono_ns(void);
int64_t clock_cpu_ns(
    void); /* what this thread has computed: while others have the processor it stands */

#endif
