/* server - keeper.sock: one connection at a time, one line a message in each direction.
 *
 * A new connection takes the place of the old one: a daemon that was restarted need not wait until
 * its former self is missed.  Lines longer than KEEPER_LINE_MAX end the connection, and so does a
 * reader that falls SERVER_OUT_MAX bytes behind: it comes back and asks with sync.
 */
#ifndef NS_KEEPER_SERVER_H
#define NS_KEEPER_SERVER_H

#include <sys/types.h>

#include "base/str.h"
#include "sys/log.h"
#include "sys/loop.h"

#define SERVER_OUT_MAX (64u << 20)

struct server;

struct server_config {
    struct loop *loop;
    struct log *log;
    const char *path; /* of the socket; what lies there is replaced */
    gid_t gid;        /* whose members may connect */
    void (*opened)(void *ctx);
    void (*line)(void *ctx, struct str line); /* without its line feed; borrowed */
    void *ctx;
};

struct server *server_new(const struct server_config *c, struct err *e);
struct server *server_free(struct server *s); /* NULL ok; returns NULL; removes the socket */

/* Whole lines, with the line feed.  Nobody connected: dropped. */
void server_send(struct server *s, struct str lines);

#endif
