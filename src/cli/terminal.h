/* terminal - sessions (session.h) on this terminal, from their beginning to their end. */
#ifndef NS_CLI_TERMINAL_H
#define NS_CLI_TERMINAL_H

#include "cli/cli.h"
#include "cli/session.h"

/* c->exit_code is the session's.  `past`: so many of the last lines that the job wrote before are
 * shown first. */
#define TERMINAL_ALL UINT64_MAX
int terminal_session(struct cli *c, const struct session_want *w, uint64_t past, struct err *e)
    MUST_USE;

/* The error of a session that ended without an exit: the job's state says more than the
 * connection.  Returns -1. */
int terminal_lost(struct cli *c, uint64_t job, struct err *e);

/* A job that was submitted with a terminal: waits until it runs and attaches to it. */
int terminal_follow(struct cli *c, uint64_t job, struct err *e) MUST_USE;

#endif
