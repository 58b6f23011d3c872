/* engines - which engine runs the jobs, made as the settings say. */
#ifndef NS_DAEMON_ENGINES_H
#define NS_DAEMON_ENGINES_H

#include "daemon/config.h"
#include "daemon/site.h"
#include "daemon/vouch.h"
#include "engine/engine.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/loop.h"

struct engines_in {
    const struct config *config;
    const struct site *site;
    struct loop *loop;
    struct log *log;
    struct clock clock;
    const char *const *keeper_argv; /* of the local engine */
    engine_sink_fn *sink;
    void *ctx;
};

bool engines_is_kube(const struct config *c);
int engines_open(const struct engines_in *in, struct engine *out, struct err *e) MUST_USE;
/* Who says whose agents in pods are; NULL without an error where there is no cluster. */
struct vouch *engines_vouch(const struct engines_in *in, struct err *e);
const char *engines_mode(const struct engine *en); /* how it runs; "" before it is known */
void engines_end(struct engine *en); /* what it started itself is not needed any more */

#endif
