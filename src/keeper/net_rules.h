/* net_rules - the firewall of the tenants' networks: one nftables table of ours.
 *
 * The text is a pure function of its inputs and replaces the table in one transaction, so there is
 * never a moment without rules.  Numbers and names are checked before they get into it.
 */
#ifndef NS_KEEPER_NET_RULES_H
#define NS_KEEPER_NET_RULES_H

#include "base/buf.h"
#include "keeper/net_addr.h"
#include "keeper/net_dns.h"

/* Accounts that fetch images: the first reaches the Internet only, the second also local networks and
 * this machine. */
#define NET_RULES_FETCHERS 2

/* Where a cloud tells a machine who it is, and gives it keys: to whoever asks from there. */
#define NET_RULES_CLOUD "169.254.0.0/16, 168.63.129.16, 100.100.100.200"

struct net_rules {
    const char *table, *prefix; /* plain words */
    struct cidr range;
    uint32_t tenants;         /* bridges are <prefix>0 … <prefix><tenants - 1> */
    const char *const *allow; /* ends with NULL, or NULL; see net.h */
    const struct net_dns *dns;
    const uint32_t *account; /* of this machine, besides root, that may connect to tasks */
    size_t accounts;
    uint32_t fetcher[NET_RULES_FETCHERS]; /* see image_jail.h; 0: there is none */
};

int net_rules_text(const struct net_rules *r, struct buf *out, struct err *e) MUST_USE;

/* Loads them with `nft`, through the file `path`.  Blocks for some milliseconds. */
int net_rules_load(const struct net_rules *r, const char *nft, const char *path, struct err *e)
    MUST_USE;
/* As the kernel has them, in nft's words; replaces *out. */
int net_rules_list(const char *table, const char *nft, struct buf *out, struct err *e) MUST_USE;
int net_rules_remove(const char *table, const char *nft, struct err *e) MUST_USE;

/* One entry of `allow`, as a rule. */
int net_rules_allow(struct str entry, struct buf *out, struct err *e) MUST_USE;

/* Docker and ufw drop what iptables' FORWARD chain does not know.  Where that is so, our bridges
 * are made known there (true in *out_did); without iptables there is nothing to do. */
int net_rules_open_forward(const char *prefix, bool *out_did, struct err *e) MUST_USE;
void net_rules_close_forward(const char *prefix);

#endif
