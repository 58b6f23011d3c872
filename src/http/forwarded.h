/* forwarded - addresses and networks, and who is calling when a proxy that we trust calls for others.
 *
 * A proxy adds the address of whoever called it at the end of X-Forwarded-For.  So the list is read from its
 * end, past the proxies that we trust, to the first address that is not one of them; what stands before it was
 * said by nobody whom we trust, and is not looked at.  Pure.
 */
#ifndef NS_HTTP_FORWARDED_H
#define NS_HTTP_FORWARDED_H

#include "base/err.h"
#include "base/str.h"

#define NETS_MAX 64
#define NET_TEXT_BYTES 48
#define FORWARDED_MAX 2048 /* bytes of all such headers together */

struct net_addr {
    uint8_t b[16]; /* IPv4 as ::ffff:192.0.2.1 */
};
bool net_addr_parse(struct str text, struct net_addr *out); /* without a port, brackets or a zone */
const char *net_addr_text(const struct net_addr *a, char out[static NET_TEXT_BYTES]);
uint64_t net_addr_key(const struct net_addr *a); /* for limits: of IPv6 the whole /64 */

struct net_list {
    struct {
        struct net_addr addr;
        unsigned bits;
    } at[NETS_MAX];
    size_t n;
};
/* "127.0.0.1, 10.0.0.0/8 fd00::/8": with commas or blanks between. */
int net_list_parse(struct str text, struct net_list *out, struct err *e) MUST_USE;
bool net_list_has(const struct net_list *l, const struct net_addr *a);

/* Who is calling by the words of a trusted proxy.  false: what had to be read is not an address. */
bool forwarded_for(const struct net_list *trusted, struct str header, struct net_addr *out);

#endif
