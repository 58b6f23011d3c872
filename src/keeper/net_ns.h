/* net_ns - network namespaces as files, and what the kernel tells about them.
 *
 * These calls enter a namespace with the calling thread and come back before they return; a thread
 * that could not come back would be in a task's network, so that aborts.
 */
#ifndef NS_KEEPER_NET_NS_H
#define NS_KEEPER_NET_NS_H

#include "base/err.h"

/* A new namespace bound to `path`: loopback up, any port may be bound and ping works without
 * privileges (it is the task's own).  Idempotent: what is bound there already stays. */
int net_ns_make(const char *path, struct err *e) MUST_USE;
int net_ns_remove(const char *path, struct err *e) MUST_USE; /* idempotent */
bool net_ns_is_bound(const char *path);

/* How many sockets are in it, held by a process or closing by themselves; -1 when it cannot be
 * known. */
int net_ns_sockets(const char *path);

/* Sets out_used[i] for those that a process lives in; one look at /proc for all of them. */
int net_ns_used(const char *const *paths, size_t n, bool *out_used, struct err *e) MUST_USE;

void net_bridge_set(const char *name, bool up);

/* A bridge of ours without ports goes; others and absent ones are left alone. */
void net_bridge_remove(const char *name);

#endif
