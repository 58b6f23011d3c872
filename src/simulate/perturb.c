#include <math.h>

#include "base/rng.h"
#include "simulate/trace.h"

#define HOUR_MS INT64_C(3600000)

/* A sequence of its own for each kind of change: one does not alter what another draws. */
static struct rng begin(uint64_t seed, uint64_t kind)
{
    struct rng r = { seed };
    struct rng own = { rng_u64(&r) + kind };
    rng_u64(&own);
    return own;
}

static void jitter(struct trace *t, const struct trace_change *c)
{
    struct rng r = begin(c->seed, 1);
    for (uint32_t i = 0; i < t->jobs; i++) {
        double by = 1 + (2 * rng_unit(&r) - 1) * c->jitter_pct / 100;
        t->job[i].duration_ms = MAX(llround((double)t->job[i].duration_ms * by), 1LL);
    }
}

static void shift(struct trace *t, const struct trace_change *c)
{
    struct rng r = begin(c->seed, 2);
    AUTO(free_p) int64_t *by_ms = xcalloc((size_t)t->tenants + 1, sizeof *by_ms);
    for (uint32_t i = 0; i < t->tenants; i++)
        by_ms[i] = llround(rng_unit(&r) * (double)(c->shift_hours * HOUR_MS));
    for (uint32_t i = 0; i < t->jobs; i++)
        t->job[i].submit_ms += by_ms[t->job[i].tenant];
}

int trace_change(struct trace *t, const struct trace_change *c, struct err *e)
{
    if (!c->jitter_pct && !c->shift_hours)
        return 0;
    if (c->jitter_pct) {
        jitter(t, c);
        t->name = arena_printf(&t->arena, "%s, jitter %u %%", t->name, c->jitter_pct);
    }
    if (c->shift_hours) {
        shift(t, c);
        t->name = arena_printf(&t->arena, "%s, shift %u h", t->name, c->shift_hours);
    }
    t->name = arena_printf(&t->arena, "%s, seed %llu", t->name, (unsigned long long)c->seed);
    return trace_finish(t, e);
}
