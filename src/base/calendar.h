/* calendar - when machines may work: a week of spans in a time zone, and the exceptions from it.
 *
 * A plain value: copied by assignment, compared by calendar_equal, without pointers.  Without spans
 * it is open all week.  Exceptions win over the week, and later ones over earlier ones.
 *
 * A span or an exception holds every instant at which the clock on the wall shows a time of it, and
 * is in one piece (tz.h).  So where the clock jumps ahead, an edge among the times left out is the
 * jump; where it is set back, what begins among the doubled times begins the first time and what
 * ends there ends the second time.  It is the same for open and closed, so spans that touch never
 * come apart.
 *
 * Instants are ms since 1970 (UTC).  Before 1970 and after 2200 a calendar stays as it is there.
 */
#ifndef NS_BASE_CALENDAR_H
#define NS_BASE_CALENDAR_H

#include "base/tz.h"

#define CALENDAR_SPANS_MAX 32
#define CALENDAR_EXCEPTIONS_MAX 64
#define CALENDAR_TEXT_MAX 4096 /* bytes; every calendar can be written in so many */
#define CALENDAR_YEAR_MIN 1970
#define CALENDAR_YEAR_MAX 2200

/* Minutes of a day; a span whose end is not after its beginning ends the day after. */
struct calendar_span {
    uint16_t from_min, to_min; /* 0 to 1439; 1 to 1440, and not the same */
    uint8_t days;              /* on which it begins, one at least: bit 0 is Monday */
    uint8_t zero;
};

struct calendar_exception {
    uint32_t from_min, to_min; /* local, since 1970-01-01 00:00 */
    uint8_t open;
    uint8_t zero[3];
};

/* No padding and zeros in what is unused, so that equal calendars are equal bytes. */
struct calendar {
    struct tz zone;
    struct calendar_exception exception[CALENDAR_EXCEPTIONS_MAX];
    struct calendar_span span[CALENDAR_SPANS_MAX];
    uint32_t exceptions, spans;
};
_Static_assert(sizeof(struct calendar) ==
                   sizeof(struct tz) + 12 * CALENDAR_EXCEPTIONS_MAX + 6 * CALENDAR_SPANS_MAX + 8,
               "no hidden padding");

struct calendar calendar_always(void); /* open, in UTC */
bool calendar_equal(const struct calendar *a, const struct calendar *b);

bool calendar_is_open(const struct calendar *c, int64_t now_ms);
int64_t calendar_next_change(const struct calendar *c, int64_t now_ms); /* INT64_MAX: never */

/* When the open stretch that holds `now` ends; now when it is closed, INT64_MAX when never. */
int64_t calendar_closes_ms(const struct calendar *c, int64_t now_ms);
/* When it is open again; now when it is, INT64_MAX when never. */
int64_t calendar_opens_ms(const struct calendar *c, int64_t now_ms);

/* The text form (docs/ops/windows.md), which the journal, the settings and the API carry:
 *
 *     zone=CET-1CEST,M3.5.0,M10.5.0/3; Mon-Fri 20:00-08:00; closed 2026-12-24..2026-12-26
 *
 * `named` turns a name like Europe/Berlin into a zone, for callers who may look at a disk; without
 * it a name is refused.  What is written has the rule, so a journal needs no other file. */
typedef int calendar_zone_fn(void *ctx, struct str name, struct tz *out, struct err *e);
int calendar_parse(struct str text, calendar_zone_fn *named, void *ctx, struct calendar *out,
                   struct err *e) MUST_USE;
void calendar_format(const struct calendar *c, struct buf *out);

#endif
