/* when - points in time that people write: 2026-03-01, 2026-03-01T12:30, 12:30 (today), now, 3d (ago). */
#ifndef NS_CLI_WHEN_H
#define NS_CLI_WHEN_H

#include "base/err.h"

/* Local time.  `now_ms` is what "now" and "ago" are counted from. */
int when_parse(const char *text, int64_t now_ms, int64_t *out_ms, struct err *e) MUST_USE;

#endif
