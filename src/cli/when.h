/* when - points in time that people write: 2026-03-01, 2026-03-01T12:30, 12:30 (today), yesterday 14:00,
 * now, 3d or 3d ago, 2026-03-01T12:30:00+01:00. */
#ifndef NS_CLI_WHEN_H
#define NS_CLI_WHEN_H

#include "base/err.h"

/* When a job begins: with its zone (2026-03-01T22:00:00+01:00), local (2026-03-01 22:00), or
 * now+2h. */
int when_begin(const char *text, int64_t now_ms, int64_t *out_ms, struct err *e) MUST_USE;
/* The next time that a clock here shows 22:00 or 22:00:30, on any day or on that of 'tue 10:00'. */
bool when_next(const char *text, int64_t now_ms, int64_t *out_ms);
/* Either of them; what a clock shows is looked for after `after_ms`. */
int when_coming(const char *text, int64_t now_ms, int64_t after_ms, int64_t *out_ms, struct err *e)
    MUST_USE;

/* Local time.  `now_ms` is what "now" and "ago" are counted from. */
int when_parse(const char *text, int64_t now_ms, int64_t *out_ms, struct err *e) MUST_USE;

#endif
