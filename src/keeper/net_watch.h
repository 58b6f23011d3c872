/* net_watch - the kernel's word that somebody changed firewall tables or addresses of this machine.
 *
 * Two netlink sockets.  A change is queued in them before whoever made it gets an answer, so draining
 * them is enough to know of everything that was done before.  What was lost because too much came at
 * once counts as a change of everything.
 */
#ifndef NS_KEEPER_NET_WATCH_H
#define NS_KEEPER_NET_WATCH_H

#include "base/err.h"
#include "base/str.h"
#include "sys/loop.h"

#define NET_WATCH_TABLE 1u     /* ours was touched, by whomever */
#define NET_WATCH_ADDRESSES 2u /* an IPv4 address came or went */

struct net_watch;
typedef void net_watch_fn(void *ctx, unsigned what);

/* fn is called from the loop, with what has changed since it was last drained. */
struct net_watch *net_watch_new(struct loop *l, const char *table, net_watch_fn *fn, void *ctx,
                                struct err *e);
struct net_watch *net_watch_free(struct net_watch *w); /* NULL ok; returns NULL */

unsigned net_watch_drain(struct net_watch *w);

/* Messages as they came, for tests: does one of them speak of this table? */
bool net_watch_names(const void *messages, size_t n, const char *table);

#endif
