/* keeper - the privileged half of the local engine: tasks on this machine, for one daemon.
 *
 * One process a machine.  It owns no state that is not in files: killed at any time, the next one
 * finds every task again, and running tasks do not notice.  It decides nothing about who may run
 * what: it does what the daemon asks within the bounds of request.c and its own mode.
 */
#ifndef NS_KEEPER_KEEPER_H
#define NS_KEEPER_KEEPER_H

#include "base/err.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/loop.h"

#define FETCHER_UID 690000001u /* and the next one: no account has them, and no job */

struct keeper;

/* As on the command line; main.c holds the defaults. */
struct keeper_config {
    const char *state, *run;
    const char *socket; /* NULL: RUN/keeper.sock */
    const char *init;   /* NULL: nightshift-init beside our own program */
    const char *crun;   /* NULL: looked for */
    const char *mode;   /* "auto", or one of wire/keeper.h */
    const char *dev;
    const char *cdi; /* NULL: where CDI specs usually are */
    const char *cgroup_root,
        *cgroup; /* the file system, our folder's name in it; NULL: the instance's */
    uint64_t min_uid;
    const char *group;           /* whose members may connect and read logs; NULL: our own */
    uint64_t parallel;           /* starts at once; 0: twice the processors */
    uint64_t images_mib;         /* all images together; 0: image.h's */
    uint64_t start_limit_s;      /* a start that takes longer has failed */
    bool end_leftovers;          /* end processes that belong to no living task */
    const char *node_name;       /* NULL: the host name */
    uint64_t cpu_milli, mem_mib; /* 0: what there is */
    bool no_gpus;
    uint64_t simulate_gpus, gpu_mem_mib; /* 0: the real ones */
    const char *gpu_model, *nvml;
    const char *net_range, *net_prefix, *net_table; /* NULL: net.h's, the instance's */
    const char *registries; /* of images, that may be in local networks; NULL: none */
    const char *net_users;  /* accounts that may connect to tasks, besides root; NULL: none */
    bool tidy;              /* stopped, it ends its tasks and leaves no network and no group */
    bool no_network;        /* tasks that want the tenant's network are refused */
};

/* Finds the tasks there are, and listens. */
struct keeper *keeper_new(const struct keeper_config *c, struct loop *l, struct log *log,
                          struct err *e);
void keeper_stop(struct keeper *k);           /* ends the loop it runs on, once it is tidy */
struct keeper *keeper_free(struct keeper *k); /* NULL ok; returns NULL; tasks go on */

#endif
