/* setup - the machine's side of a keeper (env.h), found or made once at its start.
 *
 * Folders, the lock that keeps a second keeper out, mode, control groups, scratch, images, networks,
 * GPUs.  What jobs cannot do without fails here, with a way out; what some jobs want is left out
 * and the reason kept for them.
 */
#ifndef NS_KEEPER_SETUP_H
#define NS_KEEPER_SETUP_H

#include "keeper/env.h"
#include "keeper/keeper.h"
#include "keeper/mode.h"
#include "keeper/net.h"
#include "node/instance.h"
#include "sys/steady.h"

struct setup {
    int lock_fd; /* -1: not taken */
    char state[256], run[256], init[MODE_PATH_MAX], crun[MODE_PATH_MAX], hide[300];
    char mnt[300], skeleton[320];
    struct instance names;
    const char *cgroup, *net_prefix, *net_table;
    struct net_config net; /* its texts are those of the keeper_config */
    uint32_t account[16];  /* of this machine, that may connect to tasks */
    size_t accounts;
    bool wants_net;
    struct steady steady; /* env's clock: a step of the machine's ends no task before its time */
    struct clock_shift turned; /* for tests */
    char boot_id[40];
    int64_t marked_ms; /* the offset that is on disk */
};

/* Fills in *env but for loop, log and the callbacks, which are there already. */
int setup_open(struct setup *s, const struct keeper_config *c, struct env *env, struct err *e)
    MUST_USE;
/* Networks, when there are none yet and there should be; false: none can be made, env->no_net says why. */
bool setup_net(const struct setup *s, struct env *env);
/* Writes down how the clock goes on in the next keeper, when that has changed. */
void setup_mark_clock(struct setup *s);
void setup_close(struct setup *s, struct env *env); /* half-opened ones too */

void setup_caps(const struct env *env, bool out[ENGINE_CAP_COUNT]);

#endif
