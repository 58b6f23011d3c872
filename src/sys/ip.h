/* ip - addresses of the Internet, and whose they are: this machine's, a local network's or everybody's.
 *
 * An address is 16 bytes; one of IPv4 stands behind ::ffff:, and so do those that IPv6 carries inside it (mapped,
 * translated, 6to4), so that another spelling is not another address.  Pure: no name is looked up.
 */
#ifndef NS_SYS_IP_H
#define NS_SYS_IP_H

#include "base/str.h"

#define IP_BYTES 16

enum ip_kind {
    IP_HERE, /* this machine or its link: loopback, unspecified, link-local; nobody's: multicast, reserved */
    IP_PRIVATE, /* a local network: RFC 1918, RFC 6598, RFC 4193 */
    IP_PUBLIC
};

enum ip_kind ip_kind(const uint8_t ip[static IP_BYTES]);
void ip_from_v4(const uint8_t v4[static 4], uint8_t out[static IP_BYTES]);
/* "10.0.0.1", "::1" or "[::1]"; false: it is no address, perhaps a name. */
bool ip_parse(struct str text, uint8_t out[static IP_BYTES]);

#endif
