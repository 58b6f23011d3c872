#include "keeper/net_guard.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>

#include "keeper/net_rules.h"
#include "sys/weak.h"

#define REJECT "reject with icmpx type admin-prohibited\n"

static bool within(uint32_t ip, struct cidr c)
{
    return cidr_overlap((struct cidr){ ip, 32 }, c);
}

/* Those of our own bridges are in the range anyway. */
static bool counts(const struct net_guard *g, uint32_t ip)
{
    return ip != 0 && !ip4_is_loopback(ip) && !within(ip, g->range);
}

static void add_sorted(uint32_t ip, uint32_t *list, unsigned *n)
{
    unsigned at = 0;
    while (at < *n && list[at] < ip)
        at++;
    if (*n == NET_GUARD_ADDRESSES || (at < *n && list[at] == ip))
        return;
    memmove(&list[at + 1], &list[at], (*n - at) * sizeof *list);
    list[at] = ip;
    ++*n;
}

bool net_guard_look(struct net_guard *g)
{
    uint32_t found[NET_GUARD_ADDRESSES];
    unsigned n = 0;
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) < 0)
        return false;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        struct sockaddr_in in;
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
            continue;
        memcpy(&in, i->ifa_addr, sizeof in);
        if (counts(g, ntohl(in.sin_addr.s_addr)))
            add_sorted(ntohl(in.sin_addr.s_addr), found, &n);
    }
    freeifaddrs(all);
    if (n == g->hosts && memcmp(found, g->host, n * sizeof *found) == 0)
        return false;
    memcpy(g->host, found, n * sizeof *found);
    g->hosts = n;
    return true;
}

static void out_of_task(const struct net_guard *g, struct cidr subnet, struct buf *out)
{
    char a[IP4_TEXT], b[IP4_TEXT];
    const char *gateway = ip4_format(subnet.base + 1, a);
    if (g->dns->forward)
        buf_printf(out, "    ip daddr %s meta l4proto { tcp, udp } th dport 53 accept\n", gateway);
    for (unsigned i = 0; i < g->dns->n; i++)
        buf_printf(out, "    ip daddr %s meta l4proto { tcp, udp } th dport 53 accept\n",
                   ip4_format(g->dns->server[i], b));
    buf_printf(out, "    ip daddr %s " REJECT, gateway);
    buf_printf(out, "    ip daddr %s/%u accept\n", ip4_format(subnet.base, b), subnet.bits);
    buf_printf(out, "    ip daddr %s/%u " REJECT, ip4_format(g->range.base, b), g->range.bits);
    for (unsigned i = 0; i < g->hosts; i++)
        buf_printf(out, "    ip daddr %s " REJECT, ip4_format(g->host[i], b));
    buf_addz(out, "    ip daddr { " NET_RULES_CLOUD " } " REJECT);
}

int net_guard_text(const struct net_guard *g, struct cidr subnet, struct buf *out, struct err *e)
{
    char text[IP4_TEXT];
    buf_addz(out, "table inet nightshift_task\n"
                  "delete table inet nightshift_task\n"
                  "table inet nightshift_task {\n");
    if (weak_here("task_firewall")) {
        buf_addz(out, "}\n");
        return buf_check(out, e);
    }
    buf_printf(out,
               "  chain input {\n"
               "    type filter hook input priority filter; policy drop;\n"
               "    iifname \"lo\" accept\n"
               "    ct state established,related accept\n"
               "    ip saddr %s/%u accept\n"
               "    ip6 saddr fe80::/10 accept\n"
               "    meta l4proto ipv6-icmp accept\n"
               "  }\n",
               ip4_format(subnet.base, text), subnet.bits);
    buf_addz(out, "  chain output {\n"
                  "    type filter hook output priority filter; policy accept;\n"
                  "    oifname \"lo\" accept\n"
                  "    ct state established,related accept\n");
    for (const char *const *a = g->allow; a && *a; a++)
        if (net_rules_allow(str_of(*a), out, e) < 0)
            return -1;
    out_of_task(g, subnet, out);
    buf_addz(out, "  }\n}\n");
    return buf_check(out, e);
}
