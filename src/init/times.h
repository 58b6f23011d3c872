/* times - the two clocks: what the wall says, and what never jumps. */
#ifndef NS_INIT_TIMES_H
#define NS_INIT_TIMES_H

#include <stdint.h>
#include <time.h>

static inline int64_t wall_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static inline int64_t mono_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#endif
