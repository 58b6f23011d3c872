/* date - days of the Gregorian calendar as numbers, instants as RFC 3339 text, and back.
 *
 * Day 0 is 1970-01-01; years are 1 to 9999.  Instants are ms since 1970 in UTC, and text always
 * says its zone (Z or ±hh:mm), so nothing here depends on where the program runs.  Rules of time
 * zones are tz.h's, the clock is the caller's.
 */
#ifndef NS_BASE_DATE_H
#define NS_BASE_DATE_H

#include "base/err.h"
#include "base/str.h"

#define DAY_MS INT64_C(86400000)

struct date {
    int32_t year;
    uint8_t month, day; /* from 1 */
};

bool date_is_leap(int32_t year);
uint8_t date_month_days(int32_t year, uint8_t month);
int64_t date_year_days(int32_t year); /* the day number of its 1 January */
int64_t date_days(struct date d);
struct date date_of_days(int64_t days);
uint8_t date_weekday(int64_t days); /* 0 is Sunday, as in POSIX */

/* Takes 2026-03-01 off the front of *rest; false when there is no day of the calendar. */
bool date_take(struct str *rest, struct date *out);

/* 2026-03-01T12:30:00Z, 2026-03-01T13:30:00.250+01:00; from 1970 on.  A leap second is the second
 * after it. */
int date_parse(struct str s, int64_t *out_ms, struct err *e) MUST_USE;

/* In UTC, with milliseconds where there are any, or always.  What date_parse could not read again
 * is "?" to the first, an instant out of all years to the second. */
const char *date_format(int64_t ms, char out[static 32]);
const char *date_stamp(int64_t ms, char out[static 32]);

/* Rounds down, also below zero; for d > 0. */
static inline int64_t floor_div(int64_t n, int64_t d)
{
    return n / d - (n % d < 0);
}

#endif
