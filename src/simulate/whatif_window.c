/* What if machines were lent at other times? */
#include "base/calendar.h"
#include "simulate/whatif.h"
#include "sys/clock.h"
#include "sys/zone.h"

/* A place has the rule that it has today, as in the settings of a daemon. */
static int find_zone(void *ctx, struct str name, struct tz *out, struct err *e)
{
    const struct clock *wall = ctx;
    return zone_find("", name, clock_now_ms(wall), out, e);
}

static int unknown_pool(const struct trace *t, struct str pool, struct err *e)
{
    AUTO(buf_free) struct buf names = BUF(400);
    for (uint32_t w = 0; w < t->windows && names.n < 300; w++)
        buf_printf(&names, "%s%s", names.n ? ", " : "", t->window[w].pool);
    for (uint32_t i = 0; i < t->steps && names.n < 300; i++) {
        const struct trace_step *s = &t->step[i];
        if (s->kind == STEP_EVENT && s->ev.kind == EVENT_POOL &&
            !memmem(names.n ? names.p : "", names.n, s->ev.pool.name.p, s->ev.pool.name.n))
            buf_printf(&names, "%s%.*s", names.n ? ", " : "", STR_ARG(s->ev.pool.name));
    }
    err_set(e, ERR_INVALID, "there is no pool '%.*s'", STR_ARG(pool));
    if (names.n)
        return err_hint(e, "there are: %s", buf_str(&names).p);
    return err_hint(e, "no machine is lent here; nightshift-sim lab --lend has some that are");
}

int whatif_window(struct trace *t, struct str arg, struct err *e)
{
    AUTO(buf_free) struct buf kept = BUF(CALENDAR_TEXT_MAX);
    struct clock wall = clock_wall();
    struct str pool, text;
    struct calendar c;
    bool found = false;
    if (!str_cut(arg, '=', &pool, &text))
        return err_set(e, ERR_INVALID, "'%.*s' is not POOL=TEXT", STR_ARG(arg));
    if (text.n && calendar_parse(text, find_zone, &wall, &c, e) < 0)
        return -1;
    if (text.n)
        calendar_format(&c, &kept);
    const char *calendar = arena_strndup(&t->arena, kept.n ? kept.p : "", kept.n);
    for (uint32_t w = 0; w < t->windows; w++)
        if (str_is(pool, t->window[w].pool)) {
            t->window[w].calendar = calendar;
            found = true;
        }
    for (uint32_t i = 0; i < t->steps; i++) {
        struct trace_step *s = &t->step[i];
        if (s->kind != STEP_EVENT || s->ev.kind != EVENT_POOL || !str_eq(s->ev.pool.name, pool))
            continue;
        s->ev.pool.calendar = str_of(calendar); /* also what open and close said then */
        found = true;
    }
    return found ? 0 : unknown_pool(t, pool, e);
}
