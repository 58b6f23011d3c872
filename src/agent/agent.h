/* agent - samples this machine once a second and tells the control plane.
 *
 * The loop decides; one thread samples, which may block in the driver, and one posts, which may block on the
 * network.  Each is handed what it works on and hands it back, so the machine is measured whether or
 * not anybody listens.  A driver that does not answer is itself reported.
 * It looks, and changes nothing by itself; what it is told to do is act.h's, and the owner's word is hold.h's.
 */
#ifndef NS_AGENT_AGENT_H
#define NS_AGENT_AGENT_H

#include "agent/post.h"
#include "agent/queue.h"
#include "node/load.h"
#include "sys/log.h"
#include "sys/loop.h"

struct agent;

struct agent_config {
    struct load_config load;
    struct post_config post;
    struct queue_bounds bounds;
    uint64_t interval_ms, report_ms; /* between samples, and between reports */
    struct clock clock;
    const char *metrics;       /* "ADDRESS:PORT" of its own /metrics; NULL: none */
    const char *control;       /* the socket on which the owner says hold; NULL: none */
    const char *control_group; /* who may besides root; NULL: nobody */
    const char *keep;          /* folder: the hold, and what is paused */
};

struct agent *agent_new(const struct agent_config *c, struct loop *l, struct log *log,
                        struct err *e);
struct agent *agent_free(struct agent *a); /* NULL ok; returns NULL */
void agent_stop(struct agent *a);          /* tells what is there once more, then ends the loop */

#endif
