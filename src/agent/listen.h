/* listen - a few short conversations on the agent's loop: a request comes in, an answer goes out, it is closed.
 *
 * Everything has a bound: how many at once, how long a request is, how long one takes.  What is beyond is closed
 * without a word, and never holds up the measuring.  On a unix socket it is known who asks.
 */
#ifndef NS_AGENT_LISTEN_H
#define NS_AGENT_LISTEN_H

#include "base/buf.h"
#include "sys/loop.h"

#define LISTEN_MAX 8            /* at once */
#define LISTEN_REQUEST_MAX 4096 /* bytes */
#define LISTEN_WAIT_MS 5000
#define LISTEN_ANSWER_MAX (2u << 20)

struct listen;

struct listen_config {
    struct loop *loop;
    const char *address; /* "HOST:PORT", or a path for a unix socket; borrowed */
    const char *group;   /* of a unix socket, besides root; NULL: none */
    const char *end;     /* a request is whole when it has this */
    void (*answer)(void *ctx, uint32_t uid, struct str request, struct buf *out);
    void *ctx;
};

struct listen *listen_new(const struct listen_config *c, struct err *e);
struct listen *listen_free(struct listen *l); /* NULL ok; returns NULL; removes its socket */
int listen_port(const struct listen *l);      /* the one it got; 0: a unix socket */

#endif
