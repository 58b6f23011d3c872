/* listen - sockets that wait for callers: a unix socket's file, or an address and port.
 *
 * Both give a descriptor that is non-blocking and close-on-exec, or -1.  A socket file that nobody
 * listens on any more is replaced; one that answers is left alone, and so is anything that is not
 * a socket.
 */
#ifndef NS_HTTP_LISTEN_H
#define NS_HTTP_LISTEN_H

#include <sys/stat.h>

#include "base/err.h"

/* *out_file is what was made, for listen_unlink. */
int listen_unix(const char *path, uint32_t mode, struct stat *out_file, struct err *e) MUST_USE;
void listen_unlink(const char *path, const struct stat *file); /* unless it was replaced since */

/* Port 0: any free one.  *out_port is the one that was taken. */
int listen_tcp(const char *host, uint16_t port, uint16_t *out_port, struct err *e) MUST_USE;

#endif
