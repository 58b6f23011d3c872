/* say - the owner's side of the control socket: nightshift-agent hold, release and show. */
#ifndef NS_AGENT_SAY_H
#define NS_AGENT_SAY_H

#include "base/buf.h"

/* A line for each verb, to stand below "usage: ". */
void say_usage(struct buf *out);
void say_help(struct buf *out);
/* argv[0] is the verb; the program's exit code. */
int say_run(int argc, char **argv, const char *control);

#endif
