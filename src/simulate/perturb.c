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

static struct trace_job copy_job(struct trace *t, const struct trace_job *j, uint64_t id,
                                 struct rng *r)
{
    struct trace_job c = *j;
    c.id = id;
    c.submit_ms += llround(rng_unit(r) * (double)HOUR_MS);
    if (j->seen) {
        struct trace_seen *seen = arena_array(&t->arena, struct trace_seen, 1);
        *seen = *j->seen;
        seen->said.afters = 0;
        seen->said.known = true;
        seen->said.begin_ms = seen->said.since_ms = seen->said.wait_ms = 0;
        seen->ahead_ms = 0;
        c.seen = seen;
    }
    return c;
}

static uint64_t last_id(const struct trace *t)
{
    uint64_t id = 0;
    for (uint32_t i = 0; i < t->jobs; i++)
        id = MAX(id, t->job[i].id);
    for (uint32_t i = 0; i < t->steps; i++)
        if (t->step[i].kind == STEP_EVENT && t->step[i].ev.kind == EVENT_SUBMIT)
            id = MAX(id, t->step[i].ev.submit.id.v);
    return id;
}

/* Each job as often as said: whole times, and once more by chance for the rest. */
int trace_load(struct trace *t, uint32_t milli, uint64_t seed, struct err *e)
{
    struct rng r = begin(seed, 3);
    uint64_t id = last_id(t);
    uint32_t n = 0;
    uint64_t most = (uint64_t)t->jobs * (milli / 1000 + 1);
    if (milli == 0 || most > TRACE_JOBS_MAX)
        return err_set(e, ERR_INVALID,
                       milli ? "there would be too many jobs" : "no job would be left");
    struct trace_job *job = arena_array(&t->arena, struct trace_job, most + 1);
    for (uint32_t i = 0; i < t->jobs; i++) {
        uint64_t times = milli / 1000 + (rng_unit(&r) * 1000 < (double)(milli % 1000));
        for (uint64_t k = 0; k < times; k++)
            job[n++] = k ? copy_job(t, &t->job[i], ++id, &r) : t->job[i];
    }
    if (n == 0)
        return err_set(e, ERR_INVALID, "no job would be left");
    t->job = job;
    t->jobs = n;
    return trace_finish(t, e);
}
