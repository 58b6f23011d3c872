/* env - what every task of a keeper shares: the machine's side, found once at the start.
 *
 * Filled in by keeper.c, read by all else.  Parts a machine lacks are NULL, and the error that says
 * why is kept for those who ask for them.
 */
#ifndef NS_KEEPER_ENV_H
#define NS_KEEPER_ENV_H

#include <sys/types.h>

#include "base/buf.h"
#include "keeper/cgroup.h"
#include "keeper/gangnet.h"
#include "keeper/image.h"
#include "keeper/net.h"
#include "keeper/rootfs.h"
#include "keeper/scratch.h"
#include "keeper/sealed.h"
#include "node/probe.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/loop.h"
#include "wire/keeper.h"

struct task;
struct strays;

struct env {
    struct loop *loop;
    struct log *log;
    struct clock clock;
    enum keeper_mode mode;
    const char *state, *run;            /* folders */
    const char *init, *crun;            /* programs, absolute; crun is "" in plain mode */
    struct sealed crun_copy, init_copy; /* what is started in their place */
    const char *dev;                    /* where device nodes are */
    const char *cdi;                    /* where CDI specs are; NULL: where they usually are */
    const char *hide;                   /* the mount crun must not see; NULL: none */
    const char *mnt;                    /* RUN/mnt: where each child mounts a tmpfs of its own */
    const char *skeleton;               /* a root in it */
    uint32_t min_uid;
    gid_t gid; /* whose members may connect and read logs */
    uint64_t nofile_max, core_max;
    int64_t start_limit_ms; /* a start that takes longer has failed */
    struct strays *strays;
    bool left; /* the run folder of a task that is over could not be removed */

    struct cgroups *cgroups;
    struct rootfs_plan host;
    struct node_facts node;
    struct scratch *scratch; /* NULL: a tmpfs each */
    struct net *net;
    struct gangnet *gangs; /* takes and gives back networks */
    struct image_store *images;
    struct err no_net, no_images;

    /* One line of keeper.sock. */
    void (*tell)(void *ctx, struct str line);
    /* Tries to have networks after all; false: there are none, no_net says why. */
    bool (*net_again)(void *ctx);
    /* The firewall between tenants is gone, or was put back. */
    void (*walls_changed)(void *ctx);
    /* A start is over, one way or the other: the next may begin. */
    void (*slot_free)(void *ctx);
    /* Nothing is left of it: its memory goes once the loop comes round. */
    void (*gone)(void *ctx, struct task *t);
    void *ctx;
};

#endif
