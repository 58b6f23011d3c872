/* net_tenants - which tenant has which number, for good: STATE/net/tenants.json.
 *
 *   {"version":1,"tenants":[{"name":"vision","number":0},{"name":"speech","number":1}]}
 *
 * The number makes the bridge's name and the subnet, so it never changes and is never given twice.
 */
#ifndef NS_KEEPER_NET_TENANTS_H
#define NS_KEEPER_NET_TENANTS_H

#include "base/buf.h"

#define NET_TENANTS_MAX 1024
#define NET_TENANT_NAME_MAX 128
#define NET_TENANTS_BYTES (512u << 10)

struct net_tenants {
    struct net_tenant_row {
        char *name;
        uint32_t number; /* < NET_TENANTS_MAX */
    } * row;
    size_t n, cap;
};

int net_tenants_parse(struct str json, struct net_tenants *out, struct err *e) MUST_USE;
void net_tenants_format(const struct net_tenants *t, struct buf *out);
const struct net_tenant_row *net_tenants_find(const struct net_tenants *t, struct str name);
const struct net_tenant_row *net_tenants_number(const struct net_tenants *t, uint32_t number);
void net_tenants_add(struct net_tenants *t, struct str name, uint32_t number);
void net_tenants_clear(struct net_tenants *t);

#endif
