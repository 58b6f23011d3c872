/* session - a two-way pipe to a task: attach to the job, or run another command beside it.
 *
 * The owner polls: session_poll says for what, session_step does what can be done.  With a terminal
 * keys go through raw and the window's size follows; three times Ctrl-] within a second leaves.
 * What a job wrote before can be shown first: until session_release nothing is printed, and the
 * session says where in the log it begins, so nothing is missing in between and nothing comes twice.
 * The terminal is restored by session_free, and before every outcome is told.
 */
#ifndef NS_CLI_SESSION_H
#define NS_CLI_SESSION_H

#include <poll.h>

#include "cli/duplex.h"
#include "wire/stream.h"

enum session_is {
    SESSION_OPEN,
    SESSION_EXITED,   /* see session_exit_code */
    SESSION_DETACHED, /* by its keys */
    SESSION_LOST,     /* the connection ended without an exit */
    SESSION_REFUSED,  /* an error of the server or the task */
    SESSION_CLOSED    /* nobody reads our output any more */
};

struct session_want {
    uint64_t job;
    uint32_t replica;
    const struct stream_exec *exec; /* NULL: attach */
    bool tty;                       /* raw keys, size; standard input must be a terminal */
    bool input;                     /* standard input goes in */
    bool mute;                      /* what comes out is thrown away */
    bool hold;                      /* nothing is printed before session_release */
    int in, out, err;               /* descriptors, usually 0, 1, 2 */
};

struct session;
struct session *session_open(struct client *c, const struct session_want *w, struct err *e);
struct session *session_free(struct session *s); /* NULL ok; returns NULL */
void session_free_p(struct session **s);

#define SESSION_POLLS (DUPLEX_POLLS + 1)
void session_poll(const struct session *s, struct pollfd p[static SESSION_POLLS]);
enum session_is session_step(struct session *s, const struct pollfd p[static SESSION_POLLS],
                             struct err *e);

/* The task answers: from here on nothing is missed. */
bool session_started(const struct session *s);
/* Where in its log that is; NULL: it did not say. */
const struct stream_place *session_place(const struct session *s);
void session_print(struct session *s, const struct stream_frame *f); /* STDOUT and STDERR */
void session_release(struct session *s); /* prints what was held; call session_step next */
void session_resize(struct session *s);  /* after SIGWINCH */
void session_suspend(struct session *s); /* gives the terminal back, stops, comes back */
int session_exit_code(const struct session *s);
uint64_t session_job(const struct session *s);
uint64_t session_bytes(const struct session *s); /* of input and output so far */

#endif
