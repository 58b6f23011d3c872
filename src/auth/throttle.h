/* throttle - how soon somebody may try a password again.
 *
 * Failures are counted three ways: of a user from one place, of a place, and of a user from everywhere.  The
 * first makes guessing one account slow, the second guessing many.  The third slows an attack from many places,
 * and is the one that could be turned against the victim: it never makes anybody wait longer than a minute, and
 * a browser that has signed this user in before does not see it at all.
 * A place is an address, or an IPv6 network.  Counts fade.  The tables have a fixed size; when one is full the
 * least guilty goes.  Pure: time is handed in.
 */
#ifndef NS_AUTH_THROTTLE_H
#define NS_AUTH_THROTTLE_H

#include "base/base.h"

#define THROTTLE_PAIR_FREE 5   /* failures of a user from one place that cost nothing */
#define THROTTLE_PLACE_FREE 50 /* of a place, whoever it tries */
#define THROTTLE_USER_FREE 100 /* of a user, from wherever */
#define THROTTLE_PAIR_MAX_MS (INT64_C(15) * 60 * 1000)
#define THROTTLE_PLACE_MAX_MS (INT64_C(15) * 60 * 1000)
#define THROTTLE_USER_MAX_MS (INT64_C(60) * 1000)
#define THROTTLE_FADES_MS (INT64_C(30) * 60 * 1000) /* after this long half of a count is left */

struct throttle;
struct throttle *throttle_new(size_t entries);      /* of each table, rounded up */
struct throttle *throttle_free(struct throttle *t); /* NULL ok; returns NULL */
void throttle_free_p(struct throttle **t);

struct attempt {
    uint64_t user, place; /* hashes */
    bool known; /* a browser in which this user has signed in before; then it is the place */
};
int64_t throttle_wait_ms(struct throttle *t, const struct attempt *a, int64_t now_ms); /* 0: now */
void throttle_failed(struct throttle *t, const struct attempt *a, int64_t now_ms);
/* One failure less: what takes time is counted when it begins, or many at once would all be the first. */
void throttle_undo(struct throttle *t, const struct attempt *a);
void throttle_passed(struct throttle *t, const struct attempt *a); /* the pair begins anew */

#endif
