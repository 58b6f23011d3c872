/* net_wall - the machine's rules for the tenants' networks: loaded, watched, and loaded again.
 *
 * Somebody may flush or change them at any time (an administrator, another firewall).  The kernel tells
 * of it, and they are compared with what they were when we had loaded them.  Where they cannot be loaded
 * again the wall is down: nobody gets a network, our bridges are cut, and we try once a second.
 */
#ifndef NS_KEEPER_NET_WALL_H
#define NS_KEEPER_NET_WALL_H

#include "keeper/net_rules.h"
#include "sys/log.h"
#include "sys/loop.h"

struct net_wall;

struct net_wall_config {
    struct loop *loop;
    struct log *log;
    const struct net_rules *rules; /* stays the caller's, who may change it before net_wall_load */
    const char *nft, *file;
    void (*changed)(void *ctx, bool holds); /* it is down, or holds (again) */
    void (*moved)(void *ctx);               /* this machine's addresses have changed */
    void *ctx;
};

struct net_wall *net_wall_new(const struct net_wall_config *c, struct err *e);
struct net_wall *net_wall_free(struct net_wall *w); /* NULL ok; the rules stay */

int net_wall_load(struct net_wall *w, struct err *e) MUST_USE; /* the rules are others now */

/* 0: everything that anybody did up to now has been looked at, and the rules are there. */
int net_wall_check(struct net_wall *w, struct err *e) MUST_USE;

bool net_wall_holds(const struct net_wall *w);
uint64_t net_wall_reloads(const struct net_wall *w); /* that were not wanted by us */

#endif
