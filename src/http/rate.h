/* rate - token buckets: how often each of many peers may do something.
 *
 * A peer may do `burst` things at once and `per_s` a second after that.  The table has a fixed
 * size: a new peer takes the place of one whose bucket is full again, which loses nothing.  When
 * there is none, the newcomer shares the fullest bucket it could have, so that nobody gets fresh
 * tokens by coming under ever new names.  Pure: the time is handed in and must not go back.
 */
#ifndef NS_HTTP_RATE_H
#define NS_HTTP_RATE_H

#include "base/base.h"

struct rate;

/* At most `peers` are told apart (rounded up); all three are at least 1. */
struct rate *rate_new(uint32_t per_s, uint32_t burst, size_t peers);
struct rate *rate_free(struct rate *r); /* NULL ok; returns NULL */
void rate_free_p(struct rate **r);

/* Takes a token of this peer's.  0 when there was one; else milliseconds until there will be. */
uint64_t rate_take(struct rate *r, uint64_t peer, int64_t now_ms);

#endif
