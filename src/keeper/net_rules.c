#include "keeper/net_rules.h"

#include <stdio.h>

#include "base/parse.h"
#include "keeper/tool.h"
#include "sys/file.h"
#include "sys/weak.h"

#define RULES_MAX (1u << 20)
#define NFT_MS 60000 /* the first rules after a boot load a dozen modules of the kernel */

static bool plain_word(const char *s, size_t max)
{
    size_t n = strlen(s);
    return n > 0 && n <= max && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

/* "tcp:8080" or "192.0.2.7:tcp:2049", as a rule. */
int net_rules_allow(struct str entry, struct buf *out, struct err *e)
{
    struct str rest = entry, part[3], tail;
    uint32_t ip = 0;
    uint64_t port = 0;
    struct err ignored;
    size_t n = 0;
    bool more = true;
    while (more && n < ARRAY_LEN(part)) {
        more = str_cut(rest, ':', &part[n++], &tail);
        rest = tail;
    }
    size_t at = n == 3 ? 1 : 0;
    bool ok = !more && n >= 2 && (str_is(part[at], "tcp") || str_is(part[at], "udp")) &&
              parse_u64(part[at + 1], 65535, &port, &ignored) == 0 && port > 0 &&
              (n == 2 || ip4_parse(part[0], &ip));
    if (!ok) {
        err_set(e, ERR_INVALID, "'%.*s' does not say what tasks may reach", STR_ARG(entry));
        return err_hint(e, "write it like tcp:8080 or 192.0.2.7:tcp:2049");
    }
    char text[IP4_TEXT];
    buf_addz(out, "    ");
    if (n == 3)
        buf_printf(out, "ip daddr %s ", ip4_format(ip, text));
    buf_printf(out, "%.*s dport %u accept\n", STR_ARG(part[at]), (unsigned)port);
    return 0;
}

/* With br_netfilter a bridge's own frames come through here too; nft cannot compare two names with
 * each other, hence the list of pairs. */
static void same_bridge(const struct net_rules *r, struct buf *out)
{
    buf_addz(out, "  set same {\n    type ifname . ifname\n    elements = {\n");
    for (uint32_t i = 0; i < r->tenants; i++)
        buf_printf(out, "      \"%s%u\" . \"%s%u\",\n", r->prefix, i, r->prefix, i);
    buf_addz(out, "    }\n  }\n");
}

static void name_servers(const struct net_rules *r, struct buf *out)
{
    char text[IP4_TEXT];
    for (unsigned i = 0; i < r->dns->n; i++)
        buf_printf(out, "    ip daddr %s meta l4proto { tcp, udp } th dport 53 accept\n",
                   ip4_format(r->dns->server[i], text));
    if (r->dns->forward)
        buf_printf(out,
                   "    ip daddr %s meta l4proto { tcp, udp } th dport 53 ct status dnat accept\n",
                   ip4_format(r->dns->loopback, text));
}

/* A name server may be there; nothing else is for tasks: the keys are the machine's. */
static void cloud(const struct net_rules *r, struct buf *out)
{
    buf_addz(out, "  chain cloud {\n");
    name_servers(r, out);
    if (!weak_here("cloud_firewall"))
        buf_addz(out, "    ip daddr { " NET_RULES_CLOUD " } reject with icmpx type "
                      "admin-prohibited\n");
    buf_addz(out, "  }\n");
}

static void forward_dns(const struct net_rules *r, struct buf *out)
{
    char base[IP4_TEXT], text[IP4_TEXT];
    buf_addz(out, "  chain dns {\n"
                  "    type nat hook prerouting priority dstnat; policy accept;\n");
    buf_printf(out,
               "    iifname \"%s*\" ip daddr %s/%u fib daddr type local "
               "meta l4proto { tcp, udp } th dport 53 dnat ip to %s\n",
               r->prefix, ip4_format(r->range.base, base), r->range.bits,
               ip4_format(r->dns->loopback, text));
    buf_addz(out, "  }\n");
}

/* From one bridge to another nothing, from outside only answers. */
static void into_bridges(const struct net_rules *r, struct buf *out)
{
    buf_printf(out,
               "  chain forward {\n"
               "    type filter hook forward priority filter; policy accept;\n"
               "    iifname . oifname @same accept\n"
               "    iifname \"%s*\" jump cloud\n"
               "    iifname \"%s*\" oifname \"%s*\" reject with icmpx type admin-prohibited\n"
               "    oifname \"%s*\" ct state established,related accept\n"
               "    oifname \"%s*\" drop\n"
               "  }\n",
               r->prefix, r->prefix, r->prefix, r->prefix, r->prefix);
}

/* Of this machine's accounts only root and those that are named open connections to tasks. */
static void out_to_tasks(const struct net_rules *r, struct buf *out)
{
    buf_addz(out, "  chain output {\n"
                  "    type filter hook output priority filter; policy accept;\n"
                  "    ct state established,related accept\n");
    if (r->fetcher[0])
        buf_printf(out,
                   "    meta skuid %u jump fetcher\n"
                   "    meta skuid %u jump trusted_fetcher\n",
                   r->fetcher[0], r->fetcher[1]);
    buf_printf(out, "    oifname \"%s*\" meta skuid != { 0", r->prefix);
    for (size_t i = 0; i < r->accounts; i++)
        buf_printf(out, ", %u", r->account[i]);
    buf_addz(out, " } reject with icmpx type admin-prohibited\n  }\n");
}

/* On their own rows: what an image's name makes this machine dial. */
static void fetchers(const struct net_rules *r, struct buf *out)
{
    char base[IP4_TEXT], text[IP4_TEXT];
    const char *range = ip4_format(r->range.base, base);
    if (!r->fetcher[0])
        return;
    buf_addz(out, "  chain fetcher_dns {\n");
    for (unsigned i = 0; i < r->dns->n; i++)
        buf_printf(out, "    ip daddr %s meta l4proto { tcp, udp } th dport 53 accept\n",
                   ip4_format(r->dns->server[i], text));
    /* Of this machine's own resolver, and of name servers that have IPv6 only. */
    buf_printf(out,
               "    ip daddr 127.0.0.0/8 meta l4proto { tcp, udp } th dport 53 accept\n"
               "    meta l4proto { tcp, udp } th dport 53 ip6 daddr ::/0 accept\n"
               "  }\n"
               "  chain never {\n"
               "    ip daddr { %s/%u, " NET_RULES_CLOUD ", 224.0.0.0/3 } reject with icmpx type "
               "admin-prohibited\n"
               "    ip6 daddr { fe80::/10, ff00::/8, fd00:ec2::254 } reject with icmpx type "
               "admin-prohibited\n"
               "  }\n"
               "  chain trusted_fetcher {\n"
               "    jump fetcher_dns\n"
               "    jump never\n"
               "    accept\n"
               "  }\n"
               "  chain fetcher {\n"
               "    jump fetcher_dns\n"
               "    jump never\n"
               "    fib daddr type local reject with icmpx type admin-prohibited\n"
               "    ip daddr { 0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 172.16.0.0/12, "
               "192.168.0.0/16, 198.18.0.0/15 } reject with icmpx type admin-prohibited\n"
               "    ip6 daddr { ::/127, fc00::/7, 64:ff9b::/96, 2002::/16 } reject with icmpx type "
               "admin-prohibited\n"
               "    accept\n"
               "  }\n",
               range, r->range.bits);
}

int net_rules_text(const struct net_rules *r, struct buf *out, struct err *e)
{
    char base[IP4_TEXT];
    if (!plain_word(r->table, 30) || !plain_word(r->prefix, 10))
        return err_set(e, ERR_INVALID, "'%s' and '%s' must be short words of a-z, 0-9 and _",
                       r->table, r->prefix);
    buf_printf(out, "table inet %s\ndelete table inet %s\ntable inet %s {\n", r->table, r->table,
               r->table);
    same_bridge(r, out);
    /* To this machine: nothing but what is listed, and answers. */
    buf_addz(out, "  chain host {\n    ct state established,related accept\n");
    for (const char *const *a = r->allow; a && *a; a++)
        if (net_rules_allow(str_of(*a), out, e) < 0)
            return -1;
    name_servers(r, out);
    buf_addz(out, "    reject with icmpx type admin-prohibited\n  }\n");
    if (!weak_here("host_firewall"))
        buf_printf(out,
                   "  chain input {\n"
                   "    type filter hook input priority filter; policy accept;\n"
                   "    iifname \"%s*\" jump host\n"
                   "  }\n",
                   r->prefix);
    cloud(r, out);
    if (!weak_here("tenant_firewall"))
        into_bridges(r, out);
    fetchers(r, out);
    if (!weak_here("account_firewall"))
        out_to_tasks(r, out);
    buf_printf(out,
               "  chain nat {\n"
               "    type nat hook postrouting priority srcnat; policy accept;\n"
               "    ip saddr %s/%u oifname != \"%s*\" oifname != \"nsi*\" masquerade\n"
               "  }\n",
               ip4_format(r->range.base, base), r->range.bits, r->prefix);
    if (r->dns->forward)
        forward_dns(r, out);
    buf_addz(out, "}\n");
    return buf_check(out, e);
}

static int run(const char *const *argv, const char *doing, struct err *e)
{
    AUTO(buf_free) struct buf out = BUF(0);
    struct process_exit how;
    if (tool_wait(argv, NFT_MS, &out, &how, e) < 0)
        return err_wrap(e, "%s", doing);
    if (how.code == 0 && how.signal == 0)
        return 0;
    struct str said = buf_str(&out), line = { "", 0 };
    str_next_line(&said, &line);
    return err_set(e, ERR_UNAVAILABLE, "%s: '%s' said: %.*s", doing, argv[0], STR_ARG(line));
}

int net_rules_load(const struct net_rules *r, const char *nft, const char *path, struct err *e)
{
    AUTO(buf_free) struct buf text = BUF(RULES_MAX);
    const char *argv[] = { nft, "-f", path, NULL };
    if (net_rules_text(r, &text, e) < 0 || file_write(path, buf_str(&text), e) < 0)
        return -1;
    if (run(argv, "loading firewall rules", e) < 0)
        return err_hint(e, "nftables must work in this kernel (modules nf_tables, nft_masq)");
    return 0;
}

int net_rules_list(const char *table, const char *nft, struct buf *out, struct err *e)
{
    const char *argv[] = { nft, "-n", "list", "table", "inet", table, NULL };
    struct process_exit how;
    if (tool_wait(argv, NFT_MS, out, &how, e) < 0)
        return err_wrap(e, "reading firewall rules");
    if (how.code || how.signal)
        return err_set(e, ERR_NOT_FOUND, "there is no table '%s' in the firewall", table);
    return 0;
}

int net_rules_remove(const char *table, const char *nft, struct err *e)
{
    /* Adding it first makes this succeed when there is none. */
    char text[128];
    snprintf(text, sizeof text, "table inet %s; delete table inet %s", table, table);
    const char *argv[] = { nft, text, NULL };
    return run(argv, "removing firewall rules", e);
}

/* What FORWARD must let through: out of our bridges, and answers back to them. */
static void forward_args(const char *iptables, const char *verb, const char *dev, bool out_of,
                         const char *argv[static 16])
{
    const char *there[] = { iptables, "-w", "5", verb, "FORWARD", "-i", dev, "-j", "ACCEPT", NULL };
    const char *back[] = { iptables,
                           "-w",
                           "5",
                           verb,
                           "FORWARD",
                           "-o",
                           dev,
                           "-m",
                           "conntrack",
                           "--ctstate",
                           "RELATED,ESTABLISHED",
                           "-j",
                           "ACCEPT",
                           NULL };
    memcpy(argv, out_of ? there : back, out_of ? sizeof there : sizeof back);
}

static bool forward_drops(const char *iptables)
{
    AUTO(buf_free) struct buf out = BUF(0);
    const char *argv[] = { iptables, "-w", "5", "-S", "FORWARD", NULL };
    struct process_exit how;
    struct err ignored;
    if (tool_wait(argv, NFT_MS, &out, &how, &ignored) < 0 || how.code || how.signal || !out.p)
        return false; /* iptables that does not work filters nothing */
    return strstr(out.p, "-P FORWARD DROP") || strstr(out.p, "-j REJECT") ||
           strstr(out.p, "-j DROP") || strstr(out.p, "DOCKER");
}

int net_rules_open_forward(const char *prefix, bool *out_did, struct err *e)
{
    char iptables[TOOL_PATH_MAX], dev[NET_DEV_MAX + 1];
    const char *argv[16];
    struct err ignored;
    *out_did = false;
    if (tool_find("iptables", NULL, "iptables", iptables, &ignored) < 0 || !forward_drops(iptables))
        return 0;
    snprintf(dev, sizeof dev, "%s+", prefix);
    for (int out_of = 0; out_of < 2; out_of++) {
        forward_args(iptables, "-C", dev, out_of, argv);
        if (run(argv, "looking into iptables", &ignored) == 0)
            continue;
        forward_args(iptables, "-I", dev, out_of, argv);
        if (run(argv, "letting tasks out through iptables", e) < 0)
            return -1;
        *out_did = true;
    }
    return 0;
}

void net_rules_close_forward(const char *prefix)
{
    char iptables[TOOL_PATH_MAX], dev[NET_DEV_MAX + 1];
    const char *argv[16];
    struct err ignored;
    if (tool_find("iptables", NULL, "iptables", iptables, &ignored) < 0)
        return;
    snprintf(dev, sizeof dev, "%s+", prefix);
    for (int out_of = 0; out_of < 2; out_of++) {
        forward_args(iptables, "-D", dev, out_of, argv);
        (void)run(argv, "tidying iptables", &ignored); /* fails when it was never there */
    }
}
