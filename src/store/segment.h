/* segment - the journal's segments as they lie there, whole or not: for whoever puts a damaged one right. */
#ifndef NS_STORE_SEGMENT_H
#define NS_STORE_SEGMENT_H

#include "store/store.h"

/* begins: so many lines make anew what the segment before it ends with, which has lines_before; 0: nobody knows, or the clock
 * was set there. */
struct store_segment {
    uint64_t number, begins, lines_before;
};
/* `back` segments before the newest; number 0: there is none. */
int store_segment(struct store *s, uint32_t back, struct store_segment *out, struct err *e)
    MUST_USE;

struct store_seen {
    uint64_t at; /* its place in the segment, from 0 */
    bool whole;  /* as it was written */
    int64_t t_ms;
    struct str line;
};
typedef int store_seen_fn(void *ctx, const struct store_seen *line, struct err *e);
/* What is there, in order; a -1 from fn ends it. */
int store_segment_lines(struct store *s, uint64_t number, store_seen_fn *fn, void *ctx,
                        struct err *e) MUST_USE;

void store_put_line(struct store_batch *b, uint64_t number, const struct store_seen *line);
void store_segment_begins(struct store_batch *b, const struct store_segment *seg); /* the newest */

#endif
