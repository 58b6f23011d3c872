/* Machines that are lent: what they worked, and whether anybody stayed too long. */
#include <math.h>

#include "simulate/measure.h"

struct calendar window_calendar(const struct trace *t, uint32_t window)
{
    struct calendar c = calendar_always();
    struct err e;
    if (calendar_parse(str_of(t->window[window].calendar), NULL, NULL, &c, &e) < 0)
        c = calendar_always(); /* it has none: trace_finish refuses what is wrong */
    return c;
}

/* How much of a stretch lies where the calendar is closed. */
static int64_t closed_ms(const struct calendar *c, int64_t from_ms, int64_t to_ms)
{
    int64_t sum_ms = 0;
    while (from_ms < to_ms) {
        int64_t next_ms = MIN(calendar_next_change(c, from_ms), to_ms);
        sum_ms += calendar_is_open(c, from_ms) ? 0 : next_ms - from_ms;
        from_ms = next_ms;
    }
    return sum_ms;
}

void measure_lent(const struct trace *t, const struct outcome *o, struct report *r)
{
    r->harvest = r->harvest_most = r->harvest_ratio = r->outside_window_s = NAN;
    if (t->windows == 0 || t->jobs == 0)
        return;
    AUTO(free_p) struct calendar *c = xcalloc(t->windows, sizeof *c);
    for (uint32_t w = 0; w < t->windows; w++)
        c[w] = window_calendar(t, w);
    int64_t from_ms = t->job[0].submit_ms, to_ms = t->job[t->jobs - 1].submit_ms;
    double gpu_ms = 0, outside_ms = 0;
    for (size_t i = 0; i < o->leases; i++) {
        const struct lease *l = &o->lease[i];
        int64_t until_ms = MIN(l->to_ms, to_ms);
        gpu_ms += until_ms > l->from_ms ? l->gpus * (double)(until_ms - l->from_ms) : 0;
        outside_ms += l->gpus * (double)closed_ms(&c[l->window], l->from_ms, l->to_ms);
    }
    r->harvest = gpu_ms / 3.6e6;
    r->outside_window_s = outside_ms / 1e3;
    r->harvest_most = clairvoyant_hours(t, from_ms, to_ms);
    r->harvest_ratio = r->harvest / r->harvest_most;
}
