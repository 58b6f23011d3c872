#include "base/calendar.h"
#include "base/date.h"

#define DAY_MIN 1440u
#define QUOTE(s) (int)MIN((s).n, (size_t)60), (s).p

static const char *const day_names[] = { "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun" };

/* The longest that calendar_format writes: a zone, spans of five separate days, exceptions with hours.
 */
#define SPAN_TEXT_MAX (sizeof "; Mon-Tue,Thu-Fri,Sun 20:00-08:00" - 1)
#define EXCEPTION_TEXT_MAX (sizeof "; closed 2026-11-21 18:00..2026-11-22 18:00" - 1)
_Static_assert(sizeof "zone=" + TZ_TEXT_MAX + CALENDAR_SPANS_MAX * SPAN_TEXT_MAX +
                       CALENDAR_EXCEPTIONS_MAX * EXCEPTION_TEXT_MAX <
                   CALENDAR_TEXT_MAX,
               "every calendar can be read again");

/* ---- reading ---- */

/* Two digits each: 7:30 would be a second spelling without a use.  00:00 to 24:00 */
static int read_clock(struct str s, uint32_t *out_min, struct err *e)
{
    struct str rest = s;
    uint32_t hour, minute;
    if (str_take_digits(&rest, 2, &hour) && str_take(&rest, ':') &&
        str_take_digits(&rest, 2, &minute) && rest.n == 0 && minute < 60 &&
        hour * 60 + minute <= DAY_MIN) {
        *out_min = hour * 60 + minute;
        return 0;
    }
    err_set(e, ERR_INVALID, "'%.*s' is not a time of day", QUOTE(s));
    return err_hint(e, "write 00:00 to 24:00, hours and minutes with two digits each");
}

static int read_date(struct str s, uint32_t *out_days, struct err *e)
{
    struct str rest = s;
    struct date d;
    if (date_take(&rest, &d) && rest.n == 0 && d.year >= CALENDAR_YEAR_MIN &&
        d.year <= CALENDAR_YEAR_MAX) {
        *out_days = (uint32_t)date_days(d);
        return 0;
    }
    err_set(e, ERR_INVALID, "'%.*s' is not a date from %d to %d", QUOTE(s), CALENDAR_YEAR_MIN,
            CALENDAR_YEAR_MAX);
    return err_hint(e, "write it like 2026-12-24");
}

/* 20:00-08:00 */
static int read_hours(struct str s, uint32_t *out_from, uint32_t *out_to, struct err *e)
{
    struct str from, to;
    uint32_t a = 0, b = 0;
    if (!str_cut(s, '-', &from, &to)) {
        err_set(e, ERR_INVALID, "'%.*s' are not hours", QUOTE(s));
        return err_hint(e, "write from and to, like 20:00-08:00; a whole day is 00:00-24:00");
    }
    if (read_clock(from, &a, e) < 0 || read_clock(to, &b, e) < 0)
        return -1;
    if (a == b || a == DAY_MIN) {
        err_set(e, ERR_INVALID, "'%.*s' is no stretch of time", QUOTE(s));
        return err_hint(e, "a whole day is 00:00-24:00; a span begins before 24:00");
    }
    *out_from = a;
    *out_to = b;
    return 0;
}

static int read_day(struct str s, uint32_t *out, struct err *e)
{
    for (uint32_t i = 0; i < ARRAY_LEN(day_names); i++)
        if (str_is(s, day_names[i])) {
            *out = i;
            return 0;
        }
    err_set(e, ERR_INVALID, "'%.*s' is neither a day, nor zone=, open or closed", QUOTE(s));
    return err_hint(e, "days are Mon Tue Wed Thu Fri Sat Sun, as in Mon-Fri or Sat,Sun");
}

/* Mon-Fri,Sun; a range may go over Sunday night. */
static int read_days(struct str s, uint8_t *out_mask, struct err *e)
{
    uint8_t mask = 0;
    for (bool more = true; more;) {
        struct str one, first, last;
        uint32_t from, to;
        more = str_cut(s, ',', &one, &s);
        if (!str_cut(one, '-', &first, &last))
            last = first;
        if (read_day(first, &from, e) < 0 || read_day(last, &to, e) < 0)
            return -1;
        for (uint32_t day = from;; day = (day + 1) % 7) {
            mask |= (uint8_t)(1u << day);
            if (day == to)
                break;
        }
    }
    *out_mask = mask;
    return 0;
}

static int read_span(struct str part, struct calendar *c, struct err *e)
{
    struct str days, hours;
    uint32_t from = 0, to = 0;
    uint8_t mask = 0;
    if (c->spans == CALENDAR_SPANS_MAX) {
        err_set(e, ERR_TOO_LARGE, "it has more than %d spans", CALENDAR_SPANS_MAX);
        return err_hint(e, "join days with the same hours, like Mon,Wed 20:00-08:00");
    }
    str_cut(part, ' ', &days, &hours);
    if (read_days(days, &mask, e) < 0 || read_hours(str_trim(hours), &from, &to, e) < 0)
        return -1;
    c->span[c->spans++] = (struct calendar_span){
        .from_min = (uint16_t)from,
        .to_min = (uint16_t)(to ? to : DAY_MIN), /* 20:00-00:00 is 20:00-24:00 */
        .days = mask,
    };
    return 0;
}

/* 2026-12-24 or 2026-12-24 18:00; without hours it is the day's midnight that `whole_min` says. */
static int read_moment(struct str s, uint32_t whole_min, uint32_t *out_min, struct err *e)
{
    struct str date, clock;
    uint32_t days, minute = whole_min;
    bool has_clock = str_cut(s, ' ', &date, &clock);
    if (read_date(date, &days, e) < 0 || (has_clock && read_clock(str_trim(clock), &minute, e) < 0))
        return -1;
    *out_min = days * DAY_MIN + minute;
    return 0;
}

/* MOMENT..MOMENT, a date alone, or a date with hours. */
static int read_stretch(struct str s, struct calendar_exception *x, struct err *e)
{
    struct str from, to, rest;
    uint32_t day = 0, a = 0, b = DAY_MIN;
    size_t dots = 0;
    while (dots + 1 < s.n && (s.p[dots] != '.' || s.p[dots + 1] != '.'))
        dots++;
    if (dots + 1 < s.n) {
        from = str_trim((struct str){ s.p, dots });
        to = str_trim((struct str){ s.p + dots + 2, s.n - dots - 2 });
        if (read_moment(from, 0, &x->from_min, e) < 0 ||
            read_moment(to, DAY_MIN, &x->to_min, e) < 0)
            return -1;
    } else {
        bool has_hours = str_cut(s, ' ', &from, &rest);
        if (read_date(from, &day, e) < 0 ||
            (has_hours && read_hours(str_trim(rest), &a, &b, e) < 0))
            return -1;
        x->from_min = day * DAY_MIN + a;
        x->to_min = day * DAY_MIN + b;
    }
    if (x->from_min < x->to_min)
        return 0;
    err_set(e, ERR_INVALID, "'%.*s' ends before it begins", QUOTE(s));
    return err_hint(e, "write both dates, like 2026-11-21 18:00..2026-11-22 02:00");
}

static int read_exception(struct str stretch, bool open, struct calendar *c, struct err *e)
{
    struct calendar_exception x = { .open = open };
    if (c->exceptions == CALENDAR_EXCEPTIONS_MAX) {
        err_set(e, ERR_TOO_LARGE, "it has more than %d exceptions", CALENDAR_EXCEPTIONS_MAX);
        return err_hint(e, "take out those that are over");
    }
    if (read_stretch(str_trim(stretch), &x, e) < 0)
        return -1;
    c->exception[c->exceptions++] = x;
    return 0;
}

/* A rule has its hours, a name of the database none without a slash (Etc/GMT+1 has both). */
static bool is_zone_name(struct str s)
{
    bool digit = false;
    if (s.n && s.p[0] == '<')
        return false;
    for (size_t i = 0; i < s.n && s.p[i] != ','; i++) {
        if (s.p[i] == '/')
            return true;
        digit = digit || (s.p[i] >= '0' && s.p[i] <= '9');
    }
    return !digit;
}

struct reading {
    calendar_zone_fn *named;
    void *ctx;
    struct calendar c;
    uint32_t parts;
};

static int read_zone(struct reading *r, struct str zone, struct err *e)
{
    if (r->parts > 1) {
        err_set(e, ERR_INVALID, "the zone comes first, and once");
        return err_hint(e,
                        "begin with it, like zone=CET-1CEST,M3.5.0,M10.5.0/3; Mon-Fri 20:00-08:00");
    }
    if (!is_zone_name(zone))
        return tz_parse(zone, &r->c.zone, e);
    if (r->named)
        return r->named(r->ctx, zone, &r->c.zone, e);
    err_set(e, ERR_INVALID, "'%.*s' is the name of a zone; here its rule is needed", QUOTE(zone));
    return err_hint(e, "the rule is the last line of /usr/share/zoneinfo/%.*s", QUOTE(zone));
}

static bool str_begins(struct str s, const char *with, struct str *out_rest)
{
    size_t n = strlen(with);
    if (s.n < n || memcmp(s.p, with, n) != 0)
        return false;
    *out_rest = (struct str){ s.p + n, s.n - n };
    return true;
}

static int read_part(struct reading *r, struct str part, struct err *e)
{
    struct str rest;
    r->parts++;
    if (str_begins(part, "zone=", &rest))
        return read_zone(r, str_trim(rest), e);
    if (str_begins(part, "open ", &rest))
        return read_exception(rest, true, &r->c, e);
    if (str_begins(part, "closed ", &rest))
        return read_exception(rest, false, &r->c, e);
    return read_span(part, &r->c, e);
}

int calendar_parse(struct str text, calendar_zone_fn *named, void *ctx, struct calendar *out,
                   struct err *e)
{
    struct reading r = { .named = named, .ctx = ctx, .c = calendar_always() };
    if (text.n > CALENDAR_TEXT_MAX) {
        err_set(e, ERR_TOO_LARGE, "the calendar has %zu bytes, more than %d", text.n,
                CALENDAR_TEXT_MAX);
        return err_hint(e, "take out exceptions that are over");
    }
    while (text.n) {
        struct str part;
        str_cut(text, ';', &part, &text);
        part = str_trim(part);
        if (part.n && read_part(&r, part, e) < 0)
            return err_wrap(e, "calendar, part %u '%.*s'", r.parts, QUOTE(part));
    }
    *out = r.c;
    return 0;
}

/* ---- and writing ---- */

static void add_days(struct buf *out, uint8_t mask)
{
    const char *sep = "";
    for (unsigned i = 0; i < 7; i++) {
        unsigned last = i;
        if (!(mask & 1u << i))
            continue;
        while (last < 6 && mask & 1u << (last + 1))
            last++;
        buf_printf(out, "%s%s", sep, day_names[i]);
        if (last > i)
            buf_printf(out, "-%s", day_names[last]);
        sep = ",";
        i = last;
    }
}

static void add_clock(struct buf *out, uint32_t minute)
{
    buf_printf(out, "%02u:%02u", minute / 60, minute % 60);
}

static void add_date(struct buf *out, uint32_t days)
{
    struct date d = date_of_days(days);
    buf_printf(out, "%04d-%02u-%02u", d.year, d.month, d.day);
}

static void add_exception(struct buf *out, const struct calendar_exception *x)
{
    uint32_t first = x->from_min / DAY_MIN, last = (x->to_min - 1) / DAY_MIN;
    uint32_t from = x->from_min % DAY_MIN, to = x->to_min - last * DAY_MIN;
    bool whole = from == 0 && to == DAY_MIN;
    buf_addz(out, x->open ? "; open " : "; closed ");
    add_date(out, first);
    if (!whole) {
        buf_addc(out, ' ');
        add_clock(out, from);
    }
    if (first != last) {
        buf_addz(out, "..");
        add_date(out, last);
    }
    if (!whole) {
        buf_addc(out, first == last ? '-' : ' ');
        add_clock(out, to);
    }
}

void calendar_format(const struct calendar *c, struct buf *out)
{
    buf_addz(out, "zone=");
    tz_format(&c->zone, out);
    for (uint32_t i = 0; i < c->spans; i++) {
        buf_addz(out, "; ");
        add_days(out, c->span[i].days);
        buf_addc(out, ' ');
        add_clock(out, c->span[i].from_min);
        buf_addc(out, '-');
        add_clock(out, c->span[i].to_min);
    }
    for (uint32_t i = 0; i < c->exceptions; i++)
        add_exception(out, &c->exception[i]);
}
