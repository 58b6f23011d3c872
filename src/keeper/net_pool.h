/* net_pool - namespaces made ahead, handed out, taken back, removed; by number of the tenant.
 *
 * net.h promises to callers what this does; here tenants are numbers, and everything about names,
 * rules and name servers is somebody else's.
 */
#ifndef NS_KEEPER_NET_POOL_H
#define NS_KEEPER_NET_POOL_H

#include "keeper/net.h"
#include "keeper/net_slot.h"

struct net_pool;

struct net_pool_limits {
    unsigned idle, max_idle, parallel;
    uint64_t idle_ms;
};

struct net_pool *net_pool_new(const struct net_site *s, const struct net_pool_limits *l,
                              struct log *log); /* the site outlives it */
struct net_pool *net_pool_free(struct net_pool *p);

int net_pool_adopt(struct net_pool *p, const char *path, struct err *e) MUST_USE;
void net_pool_sweep(struct net_pool *p);
void net_pool_take(struct net_pool *p, uint32_t number, net_done_fn *fn, void *ctx);
void net_pool_give_back(struct net_pool *p, const char *path);
int net_pool_find(const struct net_pool *p, const char *path, struct net_place *out, struct err *e)
    MUST_USE;

/* Every bridge is told at once, and every new one when it comes up. */
void net_pool_set_loopback_dns(struct net_pool *p, bool on);

/* Cuts all bridges, and makes nothing new, until told otherwise. */
void net_pool_cut(struct net_pool *p, bool cut);

/* The site's guard has changed: it is loaded into every namespace anew. */
void net_pool_guard(struct net_pool *p);

/* 0: the number's addresses are this keeper's, and stay so while it has a namespace or a bridge. */
int net_pool_claim(struct net_pool *p, uint32_t number, struct err *e) MUST_USE;

/* fn is called, from the loop or from within the call, when nothing is left. */
int net_pool_empty(struct net_pool *p, loop_fn *fn, void *ctx, struct err *e) MUST_USE;
struct net_counts net_pool_counts(const struct net_pool *p);

#endif
