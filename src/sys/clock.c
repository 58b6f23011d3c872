#include "sys/clock.h"

#include <time.h>

static int64_t wall_now_ms(void *self)
{
    (void)self;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t manual_now_ms(void *self)
{
    return *(int64_t *)self;
}

struct clock clock_wall(void)
{
    return (struct clock){ .now_ms = wall_now_ms };
}

struct clock clock_manual(int64_t *now_ms)
{
    return (struct clock){ .now_ms = manual_now_ms, .self = now_ms };
}

int64_t clock_now_ms(const struct clock *c)
{
    return c->now_ms(c->self);
}

int64_t clock_mono_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
