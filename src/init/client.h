/* client - one connection to ctl.sock: frames in, a bounded queue of frames out.
 *
 * Nobody ever waits for a client: what it does not take is queued, and when the queue is full it is
 * told so and cut.  Frames are wire/stream's.
 */
#ifndef NS_INIT_CLIENT_H
#define NS_INIT_CLIENT_H

#include "init/queue.h"
#include "wire/stream.h"

#define CLIENT_QUEUE_MAX (1u << 20)

enum client_role {
    CLIENT_NEW, /* its first frame has not come */
    CLIENT_WATCH,
    CLIENT_ATTACH,
    CLIENT_EXEC
};

struct client {
    int fd; /* -1: none */
    enum client_role role;
    bool closing; /* once the queue is empty */
    bool lingers; /* then wait until the other side has closed too: it has read all */
    struct stream_decoder in;
    struct queue out;
    int64_t moved_ms; /* when it came, or last took something */
};

void client_open(struct client *c, int fd, int64_t now_ms);
void client_close(struct client *c);

void client_send(struct client *c, enum stream_type type, struct str data); /* STDOUT, STDERR */
void client_send_logged(struct client *c, const struct joblog_place *at);
void client_send_started(struct client *c, int64_t t_ms);
void client_send_error(struct client *c, const char *text);
void client_end(struct client *c, const struct stream_exit *how); /* EXIT, then closed */
void client_refuse(struct client *c, const char *text);           /* ERROR, then closed */

/* false: it is gone, or all was said; close it. */
bool client_flush(struct client *c, int64_t now_ms) MUST_USE;

#endif
