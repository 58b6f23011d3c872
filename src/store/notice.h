/* notice - what people are to be told, and how that went; its rules are those of src/notice.
 *
 * A row that waits goes with the commit of what it tells of.  Of those that are over a user has the last few.
 */
#ifndef NS_STORE_NOTICE_H
#define NS_STORE_NOTICE_H

#include "store/store.h"

#define NOTICES_OVER_KEPT 200 /* of each user */

/* Stored by number. */
#define STORE_NOTICE_STATES(X)                                                                     \
    X(WAITING, "waiting")                                                                          \
    X(SENT, "sent")                                                                                \
    X(GIVEN_UP, "given up") /* it was tried for too long, or may not be sent */                    \
    X(DROPPED, "dropped")   /* there were too many, or nobody wants it any more */
enum store_notice_state {
#define X(id, name) STORE_NOTICE_##id,
    STORE_NOTICE_STATES(X)
#undef X
    STORE_NOTICE_STATE_COUNT
};

struct store_notice {
    struct str id, user;
    uint32_t way, event;
    enum store_notice_state state;
    int64_t made_ms, due_ms;
    uint32_t tries;
    struct str subject, data, why;
};

/* Adds it, or replaces it. */
void store_put_notice(struct store_batch *b, const struct store_notice *n);
void store_delete_notices(struct store_batch *b, struct str user); /* all of theirs */

struct store_notices {
    struct store_notice *v;
    size_t n;
};
/* Those that wait, the oldest first; those of a user, the newest first, without their data. */
int store_notices_waiting(struct store *s, uint32_t limit, struct arena *a,
                          struct store_notices *out, struct err *e) MUST_USE;
int store_notices_of(struct store *s, struct str user, uint32_t limit, struct arena *a,
                     struct store_notices *out, struct err *e) MUST_USE;
int store_notice_known(struct store *s, struct str id, bool *out, struct err *e) MUST_USE;

#endif
