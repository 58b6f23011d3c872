#include "keeper/net_watch.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sys/file.h"

#define ATTR_HEAD sizeof(struct nlattr)
#define RECEIVE_BYTES (64u << 10)
#define QUEUE_BYTES (4 << 20) /* somebody else's rules may be many */

struct net_watch {
    const char *table;
    int tables, addresses;
    struct loop_watch *on_tables, *on_addresses;
    net_watch_fn *fn;
    void *ctx;
};

/* In every message of nf_tables that is about something in a table, attribute 1 is the table's name. */
_Static_assert(NFTA_TABLE_NAME == 1 && NFTA_CHAIN_TABLE == 1 && NFTA_RULE_TABLE == 1 &&
                   NFTA_SET_TABLE == 1 && NFTA_SET_ELEM_LIST_TABLE == 1,
               "the table's name is always the first");

static bool names_table(const struct nlmsghdr *h, const char *table)
{
    size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct nfgenmsg));
    if (NFNL_SUBSYS_ID(h->nlmsg_type) != NFNL_SUBSYS_NFTABLES ||
        NFNL_MSG_TYPE(h->nlmsg_type) == NFT_MSG_NEWGEN)
        return false;
    while (at + ATTR_HEAD <= h->nlmsg_len) {
        struct nlattr a;
        memcpy(&a, (const char *)h + at, sizeof a);
        if (a.nla_len < ATTR_HEAD || at + a.nla_len > h->nlmsg_len)
            return true; /* not as it should be: look */
        if ((a.nla_type & NLA_TYPE_MASK) == NFTA_TABLE_NAME) {
            size_t n = a.nla_len - ATTR_HEAD, want = strlen(table) + 1;
            return n == want && memcmp((const char *)h + at + ATTR_HEAD, table, want) == 0;
        }
        at += ((size_t)a.nla_len + 3) & ~(size_t)3;
    }
    return false;
}

bool net_watch_names(const void *messages, size_t n, const char *table)
{
    const char *p = messages;
    while (n >= NLMSG_HDRLEN) {
        struct nlmsghdr h;
        memcpy(&h, p, sizeof h);
        if (h.nlmsg_len < NLMSG_HDRLEN || h.nlmsg_len > n)
            return true;
        if (names_table((const void *)p, table))
            return true;
        size_t step = MIN((size_t)NLMSG_ALIGN(h.nlmsg_len), n);
        p += step;
        n -= step;
    }
    return false;
}

/* Everything that waits in one socket; true when it is about us, or when some of it was lost. */
static bool drain(int fd, const char *table)
{
    char room[RECEIVE_BYTES] __attribute__((aligned(8)));
    bool found = false;
    for (;;) {
        ssize_t n = recv(fd, room, sizeof room, MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == ENOBUFS) {
            found = true;
            continue;
        }
        if (n <= 0)
            return found;
        found =
            found || !table || (size_t)n > sizeof room || net_watch_names(room, (size_t)n, table);
    }
}

unsigned net_watch_drain(struct net_watch *w)
{
    unsigned what = drain(w->tables, w->table) ? NET_WATCH_TABLE : 0;
    return what | (drain(w->addresses, NULL) ? NET_WATCH_ADDRESSES : 0);
}

static void on_news(void *ctx, unsigned events)
{
    struct net_watch *w = ctx;
    unsigned what = net_watch_drain(w);
    (void)events;
    if (what)
        w->fn(w->ctx, what);
}

static int listen_to(int family, unsigned groups, struct err *e)
{
    struct sockaddr_nl at = { .nl_family = AF_NETLINK, .nl_groups = groups };
    int bytes = QUEUE_BYTES;
    AUTO(file_close_p) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, family);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0)
        return err_set(e, ERR_UNAVAILABLE, "cannot listen to the kernel's network news: %s",
                       strerror(errno));
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) < 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    int taken = fd;
    fd = -1;
    return taken;
}

struct net_watch *net_watch_new(struct loop *l, const char *table, net_watch_fn *fn, void *ctx,
                                struct err *e)
{
    struct net_watch *w = xcalloc(1, sizeof *w);
    *w = (struct net_watch){ .table = table, .tables = -1, .addresses = -1, .fn = fn, .ctx = ctx };
    w->tables = listen_to(NETLINK_NETFILTER, 1u << (NFNLGRP_NFTABLES - 1), e);
    w->addresses = w->tables < 0 ? -1 : listen_to(NETLINK_ROUTE, RTMGRP_IPV4_IFADDR, e);
    if (w->addresses < 0)
        return net_watch_free(w);
    w->on_tables = loop_fd(l, w->tables, on_news, w, e);
    w->on_addresses = w->on_tables ? loop_fd(l, w->addresses, on_news, w, e) : NULL;
    if (!w->on_addresses || loop_fd_set(w->on_tables, LOOP_READ, e) < 0 ||
        loop_fd_set(w->on_addresses, LOOP_READ, e) < 0)
        return net_watch_free(w);
    return w;
}

struct net_watch *net_watch_free(struct net_watch *w)
{
    if (!w)
        return NULL;
    loop_unwatch(w->on_tables);
    loop_unwatch(w->on_addresses);
    file_close_p(&w->tables);
    file_close_p(&w->addresses);
    free(w);
    return NULL;
}
