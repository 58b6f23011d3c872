#include "keeper/net_host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "sys/file.h"

#define CLAIMS "/run/nightshift-subnets"
#define ROUTES_MAX 1024
#define ROUTES_BYTES (1u << 20)

static struct route *read_routes(size_t *out_n)
{
    AUTO(buf_free) struct buf text = BUF(ROUTES_BYTES);
    struct err ignored;
    struct route *r = xcalloc(ROUTES_MAX, sizeof *r);
    *out_n = 0;
    if (file_read("/proc/net/route", ROUTES_BYTES, &text, &ignored) == 0)
        *out_n = routes_parse(buf_str(&text), r, ROUTES_MAX);
    return r;
}

int net_host_check(const struct net_site *s, uint32_t number, struct err *e)
{
    size_t n, lead = strlen(s->prefix);
    AUTO(free_p) struct route *r = read_routes(&n);
    struct cidr subnet = net_site_subnet(s, number);
    for (size_t i = 0; i < n; i++) {
        char text[IP4_TEXT];
        bool ours = strncmp(r[i].dev, s->prefix, lead) == 0;
        if (ours || r[i].to.bits < s->range.bits || !cidr_overlap(r[i].to, subnet))
            continue;
        err_set(e, ERR_CONFLICT, "the addresses %s/%u are already behind '%s' here",
                ip4_format(subnet.base, text), subnet.bits, r[i].dev);
        return err_hint(e, "choose another range of addresses for the tenants' networks");
    }
    return 0;
}

int net_host_claim(const struct net_site *s, uint32_t number, int *out_fd, struct err *e)
{
    char path[96], text[IP4_TEXT];
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct cidr subnet = net_site_subnet(s, number);
    struct stat ns;
    if (stat("/proc/self/ns/net", &ns) < 0)
        ns.st_ino = 0;
    if (mkdir(CLAIMS, 0700) < 0 && errno != EEXIST)
        return err_set(e, ERR_UNAVAILABLE, "cannot make '%s': %s", CLAIMS, strerror(errno));
    snprintf(path, sizeof path, CLAIMS "/%llu-%s-%u", (unsigned long long)ns.st_ino,
             ip4_format(subnet.base, text), subnet.bits);
    AUTO(file_close_p) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot open '%s': %s", path, strerror(errno));
    if (fcntl(fd, F_OFD_SETLK, &whole) < 0) {
        err_set(e, ERR_CONFLICT, "the addresses %s/%u are another keeper's on this machine", text,
                subnet.bits);
        return err_hint(e, "choose another range of addresses for the tenants' networks");
    }
    *out_fd = fd;
    fd = -1;
    return 0;
}

static unsigned mtu_of(const char *dev)
{
    char path[64];
    AUTO(buf_free) struct buf text = BUF(32);
    struct err ignored;
    uint64_t mtu = 0;
    snprintf(path, sizeof path, "/sys/class/net/%s/mtu", dev);
    if (file_read(path, 32, &text, &ignored) < 0 ||
        parse_u64(str_trim(buf_str(&text)), 65535, &mtu, &ignored) < 0 || mtu < 576)
        return 0;
    return (unsigned)mtu;
}

unsigned net_host_mtu(void)
{
    size_t n;
    unsigned least = 0;
    AUTO(free_p) struct route *r = read_routes(&n);
    for (size_t i = 0; i < n; i++) {
        unsigned mtu = r[i].to.bits == 0 ? mtu_of(r[i].dev) : 0;
        if (mtu > 0 && (least == 0 || mtu < least))
            least = mtu;
    }
    return least;
}

static int put_text(const char *path, const char *text)
{
    AUTO(file_close_p) int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) > 0 ? 0 : -1;
}

int net_host_forward(bool *out_changed, struct err *e)
{
    static const char path[] = "/proc/sys/net/ipv4/ip_forward";
    AUTO(buf_free) struct buf text = BUF(8);
    if (file_read(path, 8, &text, e) < 0)
        return err_wrap(e, "asking whether this machine routes");
    *out_changed = !str_is(str_trim(buf_str(&text)), "1");
    if (*out_changed && put_text(path, "1") < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot let this machine route: %s: %s", path,
                       strerror(errno));
    return 0;
}

void net_host_quiet(const struct net_site *s, uint32_t number)
{
    char path[128], bridge[NET_DEV_MAX];
    snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/disable_ipv6",
             net_site_bridge(s, number, bridge));
    (void)put_text(path, "1"); /* a kernel without IPv6 has nothing to switch off */
}

void net_host_loopback_dns(const struct net_site *s, uint32_t number, bool on)
{
    char path[128], bridge[NET_DEV_MAX];
    snprintf(path, sizeof path, "/proc/sys/net/ipv4/conf/%s/route_localnet",
             net_site_bridge(s, number, bridge));
    (void)put_text(path, on ? "1" : "0"); /* no bridge yet: set when it comes up */
}
