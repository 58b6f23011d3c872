/* lane - the log of one replica, followed as frames and printed.
 *
 * It survives a lost connection: opened again it skips what it has printed already, stream by
 * stream.
 */
#ifndef NS_CLI_LANE_H
#define NS_CLI_LANE_H

#include "cli/client.h"
#include "wire/stream.h"

enum lane_is {
    LANE_OPEN,
    LANE_EXITED,  /* the job has ended: lane_exit */
    LANE_LOST,    /* the connection ended early: open it again */
    LANE_REFUSED, /* the server does not give it (yet) */
    LANE_CLOSED   /* nobody reads our output any more */
};

struct lane;

/* `label`: lines begin with "[replica] ". */
struct lane *lane_new(uint64_t job, uint32_t replica, bool label);
struct lane *lane_free(struct lane *l); /* NULL ok; returns NULL */
int lane_connect(struct lane *l, struct client *c, struct err *e) MUST_USE;
void lane_disconnect(struct lane *l);
int lane_fd(const struct lane *l); /* -1: not connected */
enum lane_is lane_step(struct lane *l, struct err *e);
bool lane_has_output(const struct lane *l); /* anything so far */
const struct stream_exit *lane_exit(const struct lane *l);

#endif
