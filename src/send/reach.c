#include "send/reach.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

/* What the bridges of jobs are called by default (node/instance.h). */
static const char *const job_bridges[] = { "nsi", "nsb" };

static bool ip_of(const struct sockaddr *a, uint8_t out[static IP_BYTES])
{
    if (a && a->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, a, sizeof v4);
        ip_from_v4((const uint8_t *)&v4.sin_addr, out);
        return true;
    }
    if (a && a->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, a, sizeof v6);
        memcpy(out, &v6.sin6_addr, IP_BYTES);
        return true;
    }
    return false;
}

static bool is_for_jobs(const char *device)
{
    for (size_t i = 0; i < ARRAY_LEN(job_bridges); i++)
        if (strncmp(device, job_bridges[i], strlen(job_bridges[i])) == 0)
            return true;
    return false;
}

static bool is_ours(const struct ifaddrs *i, const uint8_t ip[static IP_BYTES])
{
    uint8_t own[IP_BYTES], mask[IP_BYTES];
    bool same_net = true;
    if (!ip_of(i->ifa_addr, own))
        return false;
    if (memcmp(own, ip, IP_BYTES) == 0)
        return true;
    if (!is_for_jobs(i->ifa_name) || !ip_of(i->ifa_netmask, mask))
        return false;
    for (size_t k = 0; k < IP_BYTES; k++)
        same_net = same_net && ((own[k] ^ ip[k]) & mask[k]) == 0;
    return same_net;
}

enum ip_kind reach_kind(const uint8_t ip[static IP_BYTES])
{
    enum ip_kind kind = ip_kind(ip);
    struct ifaddrs *all = NULL;
    if (kind == IP_HERE || getifaddrs(&all) < 0)
        return IP_HERE; /* not known is not allowed */
    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        if (is_ours(i, ip))
            kind = IP_HERE;
    freeifaddrs(all);
    return kind;
}

bool reach_allowed(const struct sockaddr *to, enum ip_kind least)
{
    uint8_t ip[IP_BYTES];
    return ip_of(to, ip) && (least == IP_HERE || reach_kind(ip) >= least);
}
