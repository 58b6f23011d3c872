#include "base/date.h"

static const uint16_t days_before_month[] = { 0,   31,  59,  90,  120, 151, 181,
                                              212, 243, 273, 304, 334, 365 };

bool date_is_leap(int32_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

uint8_t date_month_days(int32_t year, uint8_t month)
{
    int days = days_before_month[month] - days_before_month[month - 1];
    return (uint8_t)(days + (month == 2 && date_is_leap(year)));
}

/* How many leap years there were up to and with `year`. */
static int64_t leap_years(int64_t year)
{
    return year / 4 - year / 100 + year / 400;
}

int64_t date_year_days(int32_t year)
{
    return 365 * ((int64_t)year - 1970) + leap_years(year - 1) - leap_years(1969);
}

int64_t date_days(struct date d)
{
    bool after_leap_day = d.month > 2 && date_is_leap(d.year);
    return date_year_days(d.year) + days_before_month[d.month - 1] + after_leap_day + d.day - 1;
}

struct date date_of_days(int64_t days)
{
    /* 400 years are 146,097 days; the guess is at most one year off. */
    struct date d = { (int32_t)(1970 + floor_div(days * 400, 146097)), 1, 1 };
    while (date_year_days(d.year) > days)
        d.year--;
    while (date_year_days(d.year + 1) <= days)
        d.year++;
    int64_t rest = days - date_year_days(d.year);
    while (rest >= date_month_days(d.year, d.month))
        rest -= date_month_days(d.year, d.month++);
    d.day = (uint8_t)(rest + 1);
    return d;
}

uint8_t date_weekday(int64_t days)
{
    return (uint8_t)(days + 4 - 7 * floor_div(days + 4, 7)); /* day 0 was a Thursday */
}
