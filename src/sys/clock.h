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
struct clock clock_manual(int64_t *now_ms); /* shows whatever *now_ms holds */
int64_t clock_now_ms(const struct clock *c);
int64_t clock_mono_ns(void);

#endif
