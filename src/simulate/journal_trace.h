/* journal_trace - one's own journal: as a trace for what-if, and verified decision by decision. */
#ifndef NS_SIMULATE_JOURNAL_TRACE_H
#define NS_SIMULATE_JOURNAL_TRACE_H

#include "simulate/trace.h"

/* What happened before and after is left out; zeros: nothing is.  What was there when it begins is
 * there at its beginning. */
struct journal_span {
    int64_t from_ms, to_ms;
};

/* Jobs with the time they ran; those that never ran are counted as skipped, and are steps. */
int trace_read_journal(const char *file, const struct journal_span *span, struct trace *out,
                       struct err *e) MUST_USE;
int trace_parse_journal(const char *file, struct str text, const struct journal_span *span,
                        struct trace *out, struct err *e) MUST_USE;

struct journal_check {
    uint64_t events, passes, decisions;
};

/* Makes every pass again and compares; ERR_CONFLICT names the first line that differs. */
int journal_verify(const char *file, struct journal_check *out, struct err *e) MUST_USE;
int journal_verify_text(const char *file, struct str text, struct journal_check *out, struct err *e)
    MUST_USE;

#endif
