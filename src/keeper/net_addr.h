/* net_addr - IPv4 addresses, subnets and the kernel's routes, as pure text and numbers. */
#ifndef NS_KEEPER_NET_ADDR_H
#define NS_KEEPER_NET_ADDR_H

#include "base/err.h"
#include "base/str.h"

#define IP4_TEXT 16
#define NET_DEV_MAX 16 /* IFNAMSIZ */

struct cidr {
    uint32_t base; /* host order; the bits after `bits` are 0 */
    unsigned bits;
};

struct route {
    struct cidr to; /* bits 0: the default route */
    char dev[NET_DEV_MAX];
};

bool ip4_parse(struct str s, uint32_t *out);
const char *ip4_format(uint32_t ip, char out[static IP4_TEXT]);
bool ip4_is_loopback(uint32_t ip);

/* "10.203.0.0/16"; refuses bits after the prefix, so that nobody is surprised by what it means. */
int cidr_parse(struct str s, struct cidr *out, struct err *e) MUST_USE;
bool cidr_overlap(struct cidr a, struct cidr b);

/* /proc/net/route; lines it cannot read are skipped. */
size_t routes_parse(struct str text, struct route *out, size_t max);

#endif
