/* resolv.conf, the kernel's routes and a plugin's answer: any bytes, bounded results. */
#include "keeper/net_dns.h"
#include "keeper/net_slot.h"
#include "tests/fuzz/target.h"

static void need(bool ok)
{
    if (!ok)
        abort();
}

FUZZ_TARGET(data, size)
{
    struct str text = { size ? (const char *)data : "", size };
    struct net_dns d, again;
    struct route r[16];
    char address[IP4_TEXT];
    struct err e = { 0 };
    uint32_t ip;
    AUTO(buf_free) struct buf out = BUF(4096);
    net_dns_parse(text, &d);
    need(d.n <= NET_DNS_SERVERS && d.forward == (d.n == 0));
    net_dns_format(&d, "10.203.0.1", &out);
    need(!out.full && strstr(out.p, "nameserver "));
    net_dns_parse(buf_str(&out), &again);
    need(d.forward ? again.n == 1 : again.n == d.n);
    size_t n = routes_parse(text, r, ARRAY_LEN(r));
    for (size_t i = 0; i < n; i++)
        need(r[i].to.bits <= 32 && strlen(r[i].dev) < NET_DEV_MAX &&
             cidr_overlap(r[i].to, r[i].to));
    if (net_slot_result(text, address, &e) == 0)
        need(ip4_parse(str_of(address), &ip));
    return 0;
}
