/* net_guard - the second filter: rules inside a task's own network namespace, which it cannot change.
 *
 * They hold on their own: with the machine's rules gone, a task still reaches its tenant's tasks, name
 * servers and the outside, not other tenants and not this machine, and is reached by its tenant's tasks
 * and this machine only.  The text is a pure function of its inputs.
 */
#ifndef NS_KEEPER_NET_GUARD_H
#define NS_KEEPER_NET_GUARD_H

#include "base/buf.h"
#include "keeper/net_addr.h"
#include "keeper/net_dns.h"

#define NET_GUARD_ADDRESSES 64

struct net_guard {
    const char *nsenter, *nft;
    struct cidr range; /* of all tenants */
    const struct net_dns *dns;
    const char *const *allow;           /* as in net_rules.h */
    uint32_t host[NET_GUARD_ADDRESSES]; /* this machine's addresses, in order */
    unsigned hosts;
};

/* subnet: the tenant's; its first address is this machine. */
int net_guard_text(const struct net_guard *g, struct cidr subnet, struct buf *out, struct err *e)
    MUST_USE;

/* Reads this machine's addresses anew; true when they are others than before. */
bool net_guard_look(struct net_guard *g);

#endif
