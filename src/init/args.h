/* args - what nightshift-init was asked for on its command line. */
#ifndef NS_INIT_ARGS_H
#define NS_INIT_ARGS_H

#include "base/err.h"
#include "init/supervisor.h"

enum args_mode {
    ARGS_KEEPER, /* the keeper has opened the task's files */
    ARGS_POD,    /* we make them, in `path` */
    ARGS_BRIDGE,
    ARGS_INSTALL,
    ARGS_HELP,
    ARGS_VERSION
};

struct args {
    enum args_mode mode;
    const char *path;              /* of the mode */
    const char *chdir;             /* where to begin; NULL: where we are */
    struct supervisor_options run; /* all but the files */
};

/* *out is the caller's to fill with nothing: what was not given has its default. */
int args_parse(int argc, char **argv, struct args *out, struct err *e) MUST_USE;
void args_help(void);

#endif
