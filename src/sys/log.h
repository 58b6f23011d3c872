/* log - events with keys for operators, one line each.
 *
 *   2026-03-01T12:30:00.250Z warn job.lost job=17 node=3 image="my image"
 *
 * The format is a list of key=value, checked by the compiler like printf's.  Each value is quoted
 * on its own when it needs to be (blanks, quotes, control characters, broken UTF-8), so no string
 * can forge a key or a second line.  As JSON the same event is one object, numbers as numbers.
 * A log may be used from any thread; the line goes out in one write.
 */
#ifndef NS_SYS_LOG_H
#define NS_SYS_LOG_H

#include <stdio.h>

#include "base/base.h"
#include "sys/clock.h"

/* syslog.h has LOG_DEBUG and the rest as macros, hence the last letter. */
enum log_level {
    LOG_DEBUG_,
    LOG_INFO_,
    LOG_WARN_,
    LOG_ERROR_
};
enum log_form {
    LOG_TEXT,
    LOG_JSON
};

struct log;

struct log *log_new(FILE *to, enum log_level least, enum log_form form, struct clock clock);
struct log *log_free(struct log *l); /* NULL ok; returns NULL; does not close the file */
void log_free_p(struct log **l);

/* Conversions: d i u x (with h hh l ll z j), f g e, s c p, %%; a precision counts, a width does
 * not.  A NULL log takes events and drops them. */
void log_event(struct log *l, enum log_level level, const char *name, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

void log_plain(struct log *l, enum log_level level, const char *name); /* without keys */

bool log_level_parse(const char *word, enum log_level *out); /* debug info warn error */

#endif
