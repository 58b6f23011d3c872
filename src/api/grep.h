/* grep - which lines of a job's output have a word in them.
 *
 * Records go in, whole lines come out: a job may write a line in parts, and another stream's lines may come
 * in between, so the parts of each stream are joined before they are looked at.  A line that is longer
 * than GREP_LINE_MAX is looked at in pieces of that size.  The word is text, never a pattern: a look at a
 * line takes time in proportion to its length, whatever the word is.
 *
 * It is pure: it keeps at most two unfinished lines, and of those before a match GREP_KEPT_MAX bytes.
 */
#ifndef NS_API_GREP_H
#define NS_API_GREP_H

#include "wire/joblog.h"

#define GREP_LINE_MAX (64u << 10)
#define GREP_CONTEXT_MAX 50u
#define GREP_KEPT_MAX (128u << 10)

struct grep_want {
    struct str word;  /* at least a byte; copied */
    bool ignore_case; /* of the letters A to Z */
    uint32_t context; /* lines before and after each match that come out too */
};

/* A line that comes out, valid during the call. */
struct grep_line {
    int64_t t_us; /* of its first part */
    enum joblog_stream stream;
    struct str text;
    bool full;  /* it ends here: false for a piece of one that goes on */
    bool match; /* else it stands beside one */
    bool gap;   /* with context: lines that stood between it and the one before are left out */
    size_t at;  /* where the word is in it */
};
typedef void grep_fn(void *ctx, const struct grep_line *l);

struct grep;

struct grep *grep_new(const struct grep_want *w);
struct grep *grep_free(struct grep *g); /* NULL ok; returns NULL */
void grep_feed(struct grep *g, const struct joblog_record *r, grep_fn *fn, void *ctx);
void grep_end(struct grep *g, grep_fn *fn, void *ctx); /* lines that nobody ended are looked at */
bool grep_is_between(const struct grep *g);            /* no line is begun and not ended */

#endif
