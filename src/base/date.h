/* date - days of the Gregorian calendar as numbers, and back; day 0 is 1970-01-01.
 *
 * For the years 1 to 9999.  No time zone and no clock: those are tz.h's and the caller's.
 */
#ifndef NS_BASE_DATE_H
#define NS_BASE_DATE_H

#include "base/base.h"

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

/* Rounds down, also below zero; for d > 0. */
static inline int64_t floor_div(int64_t n, int64_t d)
{
    return n / d - (n % d < 0);
}

#endif
