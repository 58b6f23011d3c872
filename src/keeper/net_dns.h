/* net_dns - which name servers a task can use, from this machine's resolv.conf.
 *
 * A task's loopback is its own, so servers on 127.x are of no use to it: then the list of real
 * servers that systemd-resolved and NetworkManager keep is taken, and when there is none either,
 * `forward` is set: what a task asks of its gateway is sent on to this machine's own resolver.
 * IPv6 servers are left out, as tasks have no route to them.
 */
#ifndef NS_KEEPER_NET_DNS_H
#define NS_KEEPER_NET_DNS_H

#include "base/buf.h"
#include "keeper/net_addr.h"

#define NET_DNS_SERVERS 3 /* as many as the C library reads */

struct net_dns {
    uint32_t server[NET_DNS_SERVERS];
    unsigned n;
    uint32_t loopback; /* the first server on 127.x, or 0 */
    bool forward;      /* to `loopback` */
    char search[512];  /* whole lines: search, options */
};

void net_dns_parse(struct str resolv_conf, struct net_dns *out);

/* `path` first, then what stands in for it when it names only loopback servers. */
void net_dns_read(const char *path, struct net_dns *out);

/* The text for a task behind this gateway. */
void net_dns_format(const struct net_dns *d, const char *gateway, struct buf *out);

bool net_dns_same_servers(const struct net_dns *a, const struct net_dns *b);

#endif
