/* telling - what is told as lines of JSON, a page at a time, while others are answered. */
#ifndef NS_API_TELLING_H
#define NS_API_TELLING_H

#include "api/state.h"

struct audit_place {
    struct store_audit_ends ends;
    uint64_t after;
    bool begun;
};
union telling_place {
    struct store_journal_place journal;
    struct audit_place audit;
};
struct telling_kind {
    const char *log_name; /* of a failure */
    int (*page)(struct api *a, union telling_place *at, struct buf *out, bool *more, struct err *e);
};
int telling_begin(struct call *c, const struct telling_kind *kind, const union telling_place *at,
                  struct err *e) MUST_USE;

#endif
