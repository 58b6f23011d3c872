/* lane - the log of one replica, followed as frames and printed.
 *
 * It survives a lost connection: the log says now and then where it is, so it is taken up again at
 * the last such place, without what was printed since.
 */
#ifndef NS_CLI_LANE_H
#define NS_CLI_LANE_H

#include "cli/client.h"
#include "wire/stream.h"

enum lane_is {
    LANE_OPEN,
    LANE_EXITED,  /* the job has ended: lane_exit */
    LANE_DONE,    /* `once`: that was all, and the job goes on */
    LANE_LOST,    /* the connection ended early: open it again */
    LANE_REFUSED, /* the server does not give it (yet) */
    LANE_CLOSED   /* nobody reads our output any more */
};

struct lane;

struct lane_want {
    uint64_t job;
    uint32_t replica;
    bool label;             /* lines begin with "[replica] " */
    bool merged;            /* all of it goes to standard output */
    bool once;              /* what there is now; else until the job ends */
    bool records;           /* with time and stream */
    const char *tail, *run; /* as the user wrote them; NULL: all, the latest */
    const char *grep;       /* only lines with it; NULL: all */
    bool ignore_case;
    uint32_t context;    /* lines around each */
    const char *program; /* begins what is said about the log */
};
struct lane *lane_new(const struct lane_want *w);
struct lane *lane_free(struct lane *l); /* NULL ok; returns NULL */
void lane_free_p(struct lane **l);
int lane_connect(struct lane *l, struct client *c, struct err *e) MUST_USE;
void lane_disconnect(struct lane *l);
int lane_fd(const struct lane *l); /* -1: not connected */
enum lane_is lane_step(struct lane *l, struct err *e);
bool lane_has_output(const struct lane *l); /* anything so far */
const struct stream_exit *lane_exit(const struct lane *l);
const char *lane_note(const struct lane *l); /* about how the job ended; "": nothing */

#endif
