/* net_host - what this machine's own network means for the tenants' ones. */
#ifndef NS_KEEPER_NET_HOST_H
#define NS_KEEPER_NET_HOST_H

#include "keeper/net_slot.h"

/* -1 when the tenant's subnet is already behind another interface here.  A route that is wider than
 * our whole range is no conflict: ours is then the more exact one. */
int net_host_check(const struct net_site *s, uint32_t number, struct err *e) MUST_USE;

/* Before a subnet's first interface is there, nobody could see that it is taken: of several keepers on
 * this machine one has it, as long as it holds *out_fd. */
int net_host_claim(const struct net_site *s, uint32_t number, int *out_fd, struct err *e) MUST_USE;

/* The least MTU of the default routes (frames larger than that would be lost behind them); 0 when
 * there is none. */
unsigned net_host_mtu(void);

/* Lets this machine route; says whether it had to be changed. */
int net_host_forward(bool *out_changed, struct err *e) MUST_USE;

/* This machine speaks IPv6 with none of a tenant's tasks: their link-local one is among themselves. */
void net_host_quiet(const struct net_site *s, uint32_t number);

/* Answers of a resolver on 127.x leave through the bridge only with this. */
void net_host_loopback_dns(const struct net_site *s, uint32_t number, bool on);

#endif
