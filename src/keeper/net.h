/* net - a network for each tenant, a network namespace with an address of its own for each task.
 *
 * A tenant has a bridge and a subnet that stay its own (STATE/net/tenants.json), unless another has its
 * addresses while it uses none of them.  Its
 * tasks reach each other and the outside (NAT, IPv4; IPv6 is link-local only); they reach neither
 * another tenant nor this machine itself, except what `allow` lists and the name server that their
 * resolv.conf names.  Each task's loopback is private.  This machine reaches every task.
 *
 * Making a namespace costs tens of milliseconds (CNI plugins), so a few wait ready for each tenant
 * that recently took some, more when takes come faster.  One that comes back is used again, by the
 * same tenant only, and only if no process and no socket was left in it; else it is removed.
 *
 * Measured on two busy cores: a take from the ready ones 0.1 ms, one that has to be made 25 to 50 ms.
 * Rules are one nftables table of ours, watched and loaded again when somebody changes it (net_wall.h),
 * and a second filter inside each namespace, which holds without them (net_guard.h).  Where iptables' FORWARD chain drops what it does not know
 * (Docker, ufw), our bridges are made known to it at start, so start after those.  firewalld has to
 * be told by the administrator (trusted zone).
 *
 * Nothing is only in memory: what net_new finds in RUN is claimed with net_adopt for the tasks that
 * live, and net_sweep takes the rest back.  Only one struct net a run folder may exist at a time.
 */
#ifndef NS_KEEPER_NET_H
#define NS_KEEPER_NET_H

#include "base/buf.h"
#include "sys/log.h"
#include "sys/loop.h"

struct net;

struct net_config {
    struct loop *loop;
    struct log *log;       /* NULL ok */
    const char *run_dir;   /* RUN: namespaces in RUN/netns, leases and markers in RUN/net */
    const char *state_dir; /* STATE: STATE/net/tenants.json */

    /* Zero and NULL mean the default. */
    const char *range;              /* 10.203.0.0/16: cut into a subnet a tenant */
    unsigned subnet_bits;           /* 24: 253 tasks a tenant at once */
    const char *prefix;             /* nsb: bridges are nsb0, nsb1, …; at most 10 characters */
    const char *table;              /* nightshift: our table in nftables */
    const char *const *plugin_dirs; /* ends with NULL; where CNI plugins are looked for */
    const char *const *allow;       /* ends with NULL; what of this machine tasks may reach:
                                       "tcp:8080", "udp:53", "192.0.2.7:tcp:2049" */
    const char *resolv_conf;        /* /etc/resolv.conf */
    const uint32_t *account;        /* of this machine, besides root, that may connect to tasks */
    size_t accounts;
    uint32_t fetcher[2]; /* accounts that fetch images (net_rules.h); 0: there are none */
    void (*walls_changed)(void *ctx); /* see net_walls; NULL ok */
    void *ctx;
    unsigned idle, max_idle; /* 2, 16: ready namespaces for an active tenant */
    unsigned parallel;       /* 4: plugins running at once */
    uint64_t idle_ms;        /* 600,000: a tenant that took none for so long keeps none */
    uint64_t plugin_ms;      /* 20,000: a plugin that takes longer is killed */
};

/* Where a task's network is.  Borrowed for the call it is given in. */
struct net_place {
    const char *path; /* RUN/netns/<name>, for the runtime's network namespace */
    char address[16], gateway[16];
};

/* `place` is NULL when it failed, and then e says why. */
typedef void net_done_fn(void *ctx, const struct net_place *place, const struct err *e);

/* Blocks for some milliseconds (the firewall's rules).  NULL when this machine cannot do it: then
 * tasks that want the tenant's network are refused with e, never given the machine's own. */
struct net *net_new(const struct net_config *c, struct err *e);
struct net *net_free(struct net *n); /* NULL ok; the namespaces stay, no callback comes any more */
void net_free_p(struct net **n);

/* For a task found alive: its namespace stays taken.  Before net_sweep. */
int net_adopt(struct net *n, const char *path, struct err *e) MUST_USE;

/* Takes back what was not adopted and removes what an earlier keeper left half made.  Call it once,
 * after the last net_adopt and before the first net_take. */
void net_sweep(struct net *n);

/* fn is called once, from the loop or from within the call. */
void net_take(struct net *n, struct str tenant, net_done_fn *fn, void *ctx);
void net_give_back(struct net *n, const char *path); /* its processes are gone; idempotent */

int net_find(struct net *n, const char *path, struct net_place *out, struct err *e) MUST_USE;

/* What belongs into /etc/resolv.conf of a task at this place. */
void net_resolv_conf(struct net *n, const struct net_place *place, struct buf *out);

/* Ends with everything of ours removed: namespaces nobody uses, bridges, rules.  For uninstalling
 * and for tests; namespaces in use make it refuse. */
void net_remove_all(struct net *n, void (*fn)(void *ctx, const struct err *e), void *ctx);

/* Are the machine's rules there, and how often did somebody take them away? */
struct net_walls {
    bool there;
    uint64_t reloads;
};
struct net_walls net_walls(const struct net *n);

struct net_counts {
    unsigned used, back, idle, making, removing; /* back: not yet looked at */
    unsigned guarding; /* of them: whose filter is or will be loaded anew */
};
struct net_counts net_counts(const struct net *n);

#endif
