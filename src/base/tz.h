/* tz - a time zone as a value: the rule that POSIX writes as "CET-1CEST,M3.5.0,M10.5.0/3".
 *
 * One rule for all years, past and future; no database, no environment, no clock.  The hours of a
 * change may be negative or exceed a day, from -167 to 167 (RFC 8536).  A rule with daylight time
 * names both its changes: what POSIX leaves to the system is refused.
 *
 * Instants are ms since 1970 in UTC, local times ms since 1970 as the clock on the wall shows it;
 * both within the years 2 to 9998.  The clock on the wall leaves times out and shows times twice.
 * tz_first_ms is when it shows a time or a later one for the first time, tz_last_ms when it shows
 * an earlier one no more: the same instant for nearly all times, the end of the gap for times left
 * out.  So [tz_first_ms(a), tz_last_ms(b)) holds every instant at which the clock shows a time of
 * [a, b), and is in one piece.
 */
#ifndef NS_BASE_TZ_H
#define NS_BASE_TZ_H

#include "base/buf.h"

#define TZ_NAME_MAX 15
#define TZ_TEXT_MAX 96 /* a rule as text, with its NUL */

enum tz_day {
    TZ_DAY_WEEK,   /* Mm.w.d: weekday d (0 is Sunday) of week w of month m; week 5 is the last */
    TZ_DAY_JULIAN, /* Jn: 1 to 365, 29 February is never counted */
    TZ_DAY_ZERO,   /* n: 0 to 365, 29 February counts */
};

struct tz_change {
    int32_t time_s; /* after that day's midnight, by the clock on the wall until then */
    uint16_t day;   /* of JULIAN and ZERO */
    uint8_t kind, month, week, weekday;
    uint8_t zero[2];
};

/* No padding and zeros in what is unused, so that equal zones are equal bytes. */
struct tz {
    int32_t std_s, dst_s; /* east of Greenwich */
    struct tz_change start, end;
    char std[TZ_NAME_MAX + 1], dst[TZ_NAME_MAX + 1]; /* dst is empty: no daylight time */
};
_Static_assert(sizeof(struct tz) == 2 * 4 + 2 * 12 + 2 * (TZ_NAME_MAX + 1), "no hidden padding");

struct tz tz_utc(void);
int tz_parse(struct str rule, struct tz *out, struct err *e) MUST_USE;
void tz_format(const struct tz *z, struct buf *out); /* appends the shortest spelling of it */

int64_t tz_local_ms(const struct tz *z, int64_t utc_ms);
int64_t tz_first_ms(const struct tz *z, int64_t local_ms);
int64_t tz_last_ms(const struct tz *z, int64_t local_ms);

/* The next change of the clock after that instant, INT64_MAX when none comes within 30 years. */
int64_t tz_next_change_ms(const struct tz *z, int64_t utc_ms);

#endif
