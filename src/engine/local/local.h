/* local - the engine for one machine: tasks are run by nightshift-keeper, which this talks to.
 *
 * The keeper is a process of its own that outlives us.  When it is not there it is started (unless
 * somebody else does that, e.g. systemd), and when it goes away it is started again; what it is to
 * do is then told to it anew by whoever gets READY.
 */
#ifndef NS_ENGINE_LOCAL_LOCAL_H
#define NS_ENGINE_LOCAL_LOCAL_H

#include "engine/engine.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/loop.h"

struct local_config {
    struct loop *loop;
    struct log *log;
    struct clock clock;
    const char *socket;             /* keeper.sock */
    const char *state, *run;        /* the keeper's folders */
    const char *const *keeper_argv; /* how to start it; NULL: somebody else does */
    uint64_t log_bytes;             /* of one task */
    uint32_t scratch_mib, pids_max;
    const char *const *volumes_allow, *const *volumes_deny; /* end with NULL; outlive the engine */
    engine_sink_fn *sink;
    void *ctx;
};

/* Strings are copied. */
struct engine engine_local_new(const struct local_config *c);

/* "root", "rootless", "plain"; "" before the keeper has said. */
const char *engine_local_mode(const struct engine *en);

/* Ends the keeper, unless somebody else looks after it; once nothing runs any more. */
void engine_local_end(struct engine *en);

#endif
