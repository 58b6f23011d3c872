#include "base/calendar.h"

#include "base/date.h"

#define MINUTE_MS INT64_C(60000)
#define DAY_MIN 1440
#define WEEK_MIN (7 * DAY_MIN)
#define MONDAY_MIN (-3 * DAY_MIN) /* the Monday before 1970-01-01, a Thursday */

struct calendar calendar_always(void)
{
    return (struct calendar){ .zone = tz_utc() };
}

bool calendar_equal(const struct calendar *a, const struct calendar *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* ---- the week: the union of its spans, in local minutes since Monday 00:00 ---- */

/* In order, none touching another. */
struct week {
    uint32_t n;
    struct {
        int32_t from, to;
    } at[CALENDAR_SPANS_MAX * 8];
};

/* Puts [from, to) at its place and swallows what it touches. */
static void week_add(struct week *w, int32_t from, int32_t to)
{
    uint32_t i = 0, j;
    while (i < w->n && w->at[i].to < from)
        i++;
    for (j = i; j < w->n && w->at[j].from <= to; j++) {
        from = MIN(from, w->at[j].from);
        to = MAX(to, w->at[j].to);
    }
    memmove(&w->at[i + 1], &w->at[j], (w->n - j) * sizeof w->at[0]);
    w->n = w->n - (j - i) + 1;
    w->at[i].from = from;
    w->at[i].to = to;
}

static void week_add_span(struct week *w, const struct calendar_span *s)
{
    int32_t length = s->to_min - s->from_min + (s->to_min > s->from_min ? 0 : DAY_MIN);
    for (int32_t day = 0; day < 7; day++) {
        int32_t from = day * DAY_MIN + s->from_min, to = from + length;
        if (!(s->days & 1u << day))
            continue;
        week_add(w, from, MIN(to, WEEK_MIN));
        if (to > WEEK_MIN)
            week_add(w, 0, to - WEEK_MIN);
    }
}

static void week_init(struct week *w, const struct calendar *c)
{
    w->n = 0;
    for (uint32_t i = 0; i < c->spans; i++)
        week_add_span(w, &c->span[i]);
    if (c->spans == 0)
        week_add(w, 0, WEEK_MIN);
}

static bool week_is_whole(const struct week *w)
{
    return w->at[0].from == 0 && w->at[0].to == WEEK_MIN;
}

/* The spans of all weeks are counted through: number `k` begins and ends at these instants. */
static int64_t span_from_ms(const struct tz *z, const struct week *w, int64_t k)
{
    int64_t week = floor_div(k, w->n), minute = w->at[k - week * w->n].from;
    return tz_first_ms(z, (MONDAY_MIN + week * WEEK_MIN + minute) * MINUTE_MS);
}

static int64_t span_to_ms(const struct tz *z, const struct week *w, int64_t k)
{
    int64_t week = floor_div(k, w->n), minute = w->at[k - week * w->n].to;
    return tz_last_ms(z, (MONDAY_MIN + week * WEEK_MIN + minute) * MINUTE_MS);
}

/* The number of the last span that begins by then, by the clock on the wall. */
static int64_t span_at(const struct week *w, int64_t local_ms)
{
    int64_t minute = floor_div(local_ms, MINUTE_MS) - MONDAY_MIN;
    int64_t week = floor_div(minute, WEEK_MIN);
    uint32_t i = 0;
    while (i < w->n && w->at[i].from <= minute - week * WEEK_MIN)
        i++;
    return week * w->n + i - 1;
}

struct turn {
    bool open;
    int64_t until_ms; /* it holds at least so long; INT64_MAX: for ever */
};

/* The spans are in order, so only the one that began last by the clock on the wall can hold the
 * instant, or the next one, where the clock was set back.  What follows may be of the same kind:
 * beyond Sunday's midnight, and where the clock jumps over what lies between. */
static struct turn week_turn(const struct tz *z, const struct week *w, int64_t t_ms)
{
    if (week_is_whole(w))
        return (struct turn){ true, INT64_MAX };
    int64_t k = span_at(w, tz_local_ms(z, t_ms));
    while (span_to_ms(z, w, k) <= t_ms)
        k++;
    int64_t from = span_from_ms(z, w, k);
    return from <= t_ms ? (struct turn){ true, span_to_ms(z, w, k) } : (struct turn){ false, from };
}

/* ---- exceptions over the week ---- */

struct layers {
    const struct calendar *c;
    struct week week;
    struct {
        int64_t from_ms, to_ms;
    } exception[CALENDAR_EXCEPTIONS_MAX];
};

static void layers_init(struct layers *l, const struct calendar *c)
{
    l->c = c;
    week_init(&l->week, c);
    for (uint32_t i = 0; i < c->exceptions; i++) {
        const struct calendar_exception *x = &c->exception[i];
        l->exception[i].from_ms = tz_first_ms(&c->zone, x->from_min * MINUTE_MS);
        l->exception[i].to_ms = tz_last_ms(&c->zone, x->to_min * MINUTE_MS);
    }
}

static struct turn turn_at(const struct layers *l, int64_t t_ms)
{
    struct turn t = { false, INT64_MAX };
    uint32_t i = l->c->exceptions;
    /* From the last, which wins over all before it: whatever lies below the first that holds the
     * instant does not show. */
    for (; i > 0; i--) {
        int64_t from_ms = l->exception[i - 1].from_ms, to_ms = l->exception[i - 1].to_ms;
        if (from_ms <= t_ms && t_ms < to_ms) {
            t.open = l->c->exception[i - 1].open;
            t.until_ms = MIN(t.until_ms, to_ms);
            return t;
        }
        if (from_ms > t_ms)
            t.until_ms = MIN(t.until_ms, from_ms);
    }
    struct turn week = week_turn(&l->c->zone, &l->week, t_ms);
    return (struct turn){ week.open, MIN(t.until_ms, week.until_ms) };
}

static int64_t year_ms(int32_t year)
{
    return date_year_days(year) * DAY_MS;
}

static int64_t within_years(int64_t t_ms)
{
    t_ms = MAX(t_ms, year_ms(CALENDAR_YEAR_MIN));
    return MIN(t_ms, year_ms(CALENDAR_YEAR_MAX + 1) - 1);
}

bool calendar_is_open(const struct calendar *c, int64_t now_ms)
{
    struct layers l;
    layers_init(&l, c);
    return turn_at(&l, within_years(now_ms)).open;
}

/* Between two changes lie only edges of exceptions, and what week_turn could not see: so the number
 * of exceptions bounds the loop, however far away the change is. */
int64_t calendar_next_change(const struct calendar *c, int64_t now_ms)
{
    struct layers l;
    layers_init(&l, c);
    struct turn now = turn_at(&l, within_years(now_ms)), t = now;
    int64_t at_ms = now_ms;
    while (t.open == now.open) {
        at_ms = t.until_ms;
        if (at_ms >= year_ms(CALENDAR_YEAR_MAX + 1))
            return INT64_MAX;
        t = turn_at(&l, at_ms);
    }
    return at_ms;
}

int64_t calendar_closes_ms(const struct calendar *c, int64_t now_ms)
{
    return calendar_is_open(c, now_ms) ? calendar_next_change(c, now_ms) : now_ms;
}

int64_t calendar_opens_ms(const struct calendar *c, int64_t now_ms)
{
    return calendar_is_open(c, now_ms) ? now_ms : calendar_next_change(c, now_ms);
}
