/* progress - how far something long has come, on stderr.
 *
 * On a terminal one line that is redrawn at most ten times a second and never wider than the
 * window; elsewhere silence, and one line at the end when it took over a second.
 */
#ifndef NS_SYS_PROGRESS_H
#define NS_SYS_PROGRESS_H

#include "base/buf.h"

struct progress;

struct progress *progress_begin(const char *label, uint64_t total); /* total 0: not known */
void progress_set(struct progress *p, uint64_t done);               /* cheap: call it often */
struct progress *progress_done(struct progress *p);                 /* NULL ok; returns NULL */
void progress_done_p(struct progress **p);

/* The line itself, as a pure function. */
struct progress_view {
    const char *label;
    uint64_t done, total;
    int64_t elapsed_ns;
    unsigned columns;
    bool colour;
};
void progress_line(const struct progress_view *v, struct buf *out);

#endif
