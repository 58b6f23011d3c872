/* reach - may this address be dialled: asked with the very address of each connection, after every look-up. */
#ifndef NS_SEND_REACH_H
#define NS_SEND_REACH_H

#include <sys/socket.h>

#include "sys/ip.h"

/* As ip_kind, but this machine's own addresses are IP_HERE whatever they look like, and so are those of jobs. */
enum ip_kind reach_kind(const uint8_t ip[static IP_BYTES]);

bool reach_allowed(const struct sockaddr *to, enum ip_kind least);

#endif
