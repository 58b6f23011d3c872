/* kubelet - one question to the kubelet's pod-resources socket: gRPC over HTTP/2, as little of it as that needs.
 *
 * A connection a question, without TLS, since it is a socket of this machine.  Blocks, at most as long as it is told
 * to, so it belongs on a thread that may.  ERR_NOT_FOUND: there is no kubelet here.
 */
#ifndef NS_NODE_KUBELET_H
#define NS_NODE_KUBELET_H

#include "base/buf.h"

#define KUBELET_LIST "/v1.PodResourcesLister/List"
#define KUBELET_ALLOCATABLE "/v1.PodResourcesLister/GetAllocatableResources"

/* The message of the answer, bounded by out's limit; the question is empty. */
int kubelet_ask(const char *socket_path, const char *method, int timeout_ms, struct buf *out,
                struct err *e) MUST_USE;

#endif
