/* text - words for terminals: widths in columns, times as people say them.
 *
 * Text from outside never reaches a terminal with its control characters: they become '?'.
 */
#ifndef NS_CLI_TEXT_H
#define NS_CLI_TEXT_H

#include "base/buf.h"

unsigned text_width(struct str s); /* columns; East Asian wide characters take two */

/* At most `columns` wide: what is longer ends with "…".  Returns the columns it took. */
unsigned text_add_fit(struct buf *out, struct str s, unsigned columns);
void text_add_clean(struct buf *out, struct str s); /* all of it */

/* 0s, 45s, 3m12s, 2h, 2h05m, 1d4h: two units at most. */
const char *text_duration(int64_t ms, char out[static 24]);

/* 2026-03-01 12:30, local time; "-" for 0. */
const char *text_time(int64_t t_ms, char out[static 24]);
/* As people say it when it is near: 22:00 (today), Mon 20:00 (within six days); "never" for 0. */
const char *text_soon(int64_t t_ms, int64_t now_ms, char out[static 24]);
const char *text_time_seconds(int64_t t_ms, char out[static 24]); /* 2026-03-01T12:30:00 */

/* 16384 MiB -> "16G", 1536 -> "1.5G", 512 -> "512M". */
const char *text_mib(uint64_t mib, char out[static 24]);

/* Thousandths: 2000 -> "2", 500 -> "0.5". */
const char *text_milli(uint64_t milli, char out[static 24]);

/* A bar of `width` columns, `used` of `total` of it filled. */
void text_add_bar(struct buf *out, uint64_t used, uint64_t total, unsigned width);

/* Marks of bars and lists; plain ones where the locale says that others cannot be shown. */
enum text_mark {
    MARK_FULL,
    MARK_PART,
    MARK_EMPTY,
    MARK_GOOD,
    MARK_BAD
};
const char *text_mark(enum text_mark m);

#endif
