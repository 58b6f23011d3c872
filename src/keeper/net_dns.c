#include "keeper/net_dns.h"

#include "sys/file.h"

#define RESOLV_MAX (64u << 10)

static void add_server(struct str word, struct net_dns *d)
{
    uint32_t ip;
    if (!ip4_parse(word, &ip) || ip == 0)
        return;
    if (ip4_is_loopback(ip))
        d->loopback = d->loopback ? d->loopback : ip;
    else if (d->n < NET_DNS_SERVERS)
        d->server[d->n++] = ip;
}

static void keep_line(struct str line, struct net_dns *d)
{
    size_t used = strlen(d->search);
    if (memchr(line.p, 0, line.n) || line.n + 2 > sizeof d->search - used)
        return;
    memcpy(d->search + used, line.p, line.n);
    d->search[used + line.n] = '\n';
    d->search[used + line.n + 1] = 0;
}

void net_dns_parse(struct str text, struct net_dns *out)
{
    struct net_dns d = { 0 };
    struct str line, word, rest;
    while (str_next_line(&text, &line)) {
        line = str_trim(line);
        rest = line;
        if (!str_next_word(&rest, &word))
            continue;
        if (str_is(word, "nameserver") && str_next_word(&rest, &word))
            add_server(word, &d);
        else if (str_is(word, "search") || str_is(word, "domain") || str_is(word, "options"))
            keep_line(line, &d);
    }
    /* With no server at all the C library asks the loopback. */
    if (d.n == 0 && d.loopback == 0)
        d.loopback = 0x7f000001;
    d.forward = d.n == 0;
    *out = d;
}

void net_dns_read(const char *path, struct net_dns *out)
{
    static const char *const stand_ins[] = { "/run/systemd/resolve/resolv.conf",
                                             "/run/NetworkManager/no-stub-resolv.conf",
                                             "/run/NetworkManager/resolv.conf" };
    AUTO(buf_free) struct buf text = BUF(RESOLV_MAX);
    struct err ignored;
    struct net_dns other;
    if (file_read(path, RESOLV_MAX, &text, &ignored) == 0)
        net_dns_parse(buf_str(&text), out);
    else
        net_dns_parse((struct str){ "", 0 }, out);
    for (size_t i = 0; i < ARRAY_LEN(stand_ins) && out->forward; i++) {
        if (file_read(stand_ins[i], RESOLV_MAX, &text, &ignored) < 0)
            continue;
        net_dns_parse(buf_str(&text), &other);
        if (!other.forward)
            *out = other;
    }
}

void net_dns_format(const struct net_dns *d, const char *gateway, struct buf *out)
{
    char text[IP4_TEXT];
    buf_addz(out, d->search);
    for (unsigned i = 0; i < d->n; i++)
        buf_printf(out, "nameserver %s\n", ip4_format(d->server[i], text));
    if (d->forward)
        buf_printf(out, "nameserver %s\n", gateway);
}

bool net_dns_same_servers(const struct net_dns *a, const struct net_dns *b)
{
    return a->n == b->n && a->forward == b->forward && a->loopback == b->loopback &&
           memcmp(a->server, b->server, a->n * sizeof a->server[0]) == 0;
}
