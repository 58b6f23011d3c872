/* hostlist - "pc[01-12],srv1" and back; the way people already write sets of machines.
 *
 * Brackets may hold several ranges (pc[1-3,7]) and may stand more than once in a name; leading
 * zeros fix the width.  The number of names is bounded by the caller, each has at most 255
 * characters.
 */
#ifndef NS_BASE_HOSTLIST_H
#define NS_BASE_HOSTLIST_H

#include "base/arena.h"
#include "base/buf.h"

/* On success the names live in `a`, in the order written. */
int hostlist_expand(struct str list, size_t max, struct arena *a, const char ***out_names,
                    size_t *out_n, struct err *e) MUST_USE;

/* Appends the shortest list we know for these names (runs of one prefix folded), order kept. */
void hostlist_fold(const char *const *names, size_t n, struct buf *out);

#endif
