/* date - points in time as RFC 3339 text, to milliseconds since 1970 and back.
 *
 * The calendar is the Gregorian one, for ever; a zone is always said (Z or ±hh:mm), so nothing here
 * depends on where the program runs.  A leap second is the second after it.
 */
#ifndef NS_BASE_DATE_H
#define NS_BASE_DATE_H

#include "base/err.h"
#include "base/str.h"

/* 2026-03-01T12:30:00Z, 2026-03-01T13:30:00.250+01:00; years 1970 to 9999. */
int date_parse(struct str s, int64_t *out_ms, struct err *e) MUST_USE;

/* In UTC, with milliseconds where there are any.  Times outside of those years are "?". */
const char *date_format(int64_t ms, char out[static 32]);

#endif
