/* net_slot - one namespace with its interface and address, as it lies on disk and in the kernel.
 *
 * A slot <bridge>.<k> is made in this order and removed in the reverse one, so that whatever a
 * killed keeper left behind can be found by its first file:
 *   RUN/net/conf/<slot>    what the CNI plugin is told; a running plugin holds a lock on it
 *   RUN/netns/<slot>       the namespace
 *   RUN/net/ipam/<bridge>/ the lease of its address (host-local's files)
 *   RUN/net/guard/<slot>   the rules that are loaded inside it
 *   RUN/net/ready/<slot>   its address: the slot is whole; a second line says that it is guarded
 */
#ifndef NS_KEEPER_NET_SLOT_H
#define NS_KEEPER_NET_SLOT_H

#include "base/buf.h"
#include "keeper/net_addr.h"
#include "keeper/net_guard.h"
#include "keeper/tool.h"

#define NET_SLOT_NAME 32
#define NET_PATH_MAX 320

/* What all slots share. */
struct net_site {
    struct loop *loop;
    char run_dir[192];
    char prefix[NET_DEV_MAX];
    struct cidr range;
    unsigned subnet_bits;
    char bridge_plugin[TOOL_PATH_MAX];
    char cni_path[TOOL_PATH_MAX]; /* folders, ':' between them */
    uint64_t plugin_ms;
    struct net_guard guard; /* nsenter NULL: none, for tests of the plugins alone */
};

struct net_slot {
    char name[NET_SLOT_NAME];
    uint32_t number; /* of its tenant */
    char address[IP4_TEXT];
    bool guarded; /* the second filter is in it */
};

struct net_slot_job; /* a plugin at work */
typedef void net_slot_fn(void *ctx, const struct net_slot *slot, const struct err *e);

struct cidr net_site_subnet(const struct net_site *s, uint32_t number);
uint32_t net_site_tenants(const struct net_site *s); /* how many subnets there are */
uint32_t net_site_slots(const struct net_site *s);   /* how many tasks fit into one */
const char *net_site_bridge(const struct net_site *s, uint32_t number,
                            char out[static NET_DEV_MAX]);
const char *net_site_path(const struct net_site *s, const char *slot,
                          char out[static NET_PATH_MAX]);

int net_site_prepare(const struct net_site *s, struct err *e) MUST_USE; /* makes the folders */

bool net_slot_parse(const struct net_site *s, struct str name, struct net_slot *out);
bool net_slot_ready(const struct net_site *s, struct net_slot *slot); /* whole; fills address */
bool net_slot_busy(const struct net_site *s, const struct net_slot *slot); /* a plugin has it */

/* fn is called once, on the loop, with e NULL on success.  After a failure the slot is to be
 * deleted.  mtu 0: the kernel's own. */
struct net_slot_job *net_slot_add(const struct net_site *s, const struct net_slot *slot,
                                  unsigned mtu, net_slot_fn *fn, void *ctx, struct err *e);
/* The second filter anew, as the site has it now. */
struct net_slot_job *net_slot_guard(const struct net_site *s, const struct net_slot *slot,
                                    net_slot_fn *fn, void *ctx, struct err *e);
struct net_slot_job *net_slot_delete(const struct net_site *s, const struct net_slot *slot,
                                     net_slot_fn *fn, void *ctx, struct err *e);
int net_slot_force_delete(const struct net_site *s, const struct net_slot *slot, struct err *e)
    MUST_USE;                                               /* without the plugin, at once */
struct net_slot_job *net_slot_stop(struct net_slot_job *j); /* no call any more; NULL ok */

/* Calls fn for each slot that left a trace, once. */
void net_slot_each(const struct net_site *s, void (*fn)(void *ctx, const struct net_slot *slot),
                   void *ctx);
void net_slot_drop_leases(const struct net_site *s); /* those of slots that left no other trace */

/* The plugin's words, for tests. */
void net_slot_conf(const struct net_site *s, const struct net_slot *slot, unsigned mtu,
                   struct buf *out);
int net_slot_result(struct str json, char out_address[static IP4_TEXT], struct err *e) MUST_USE;

#endif
