/* request - what the keeper is asked, as lines of JSON; pure. */
#ifndef NS_ENGINE_LOCAL_REQUEST_H
#define NS_ENGINE_LOCAL_REQUEST_H

#include "base/buf.h"
#include "engine/engine.h"
#include "wire/keeper.h"

struct request_site {
    uint64_t log_bytes;
    uint32_t scratch_mib, pids_max;
    const char *const *gpu_uuid; /* of the machine, one each GPU */
    uint32_t gpus;
    const char *const *volumes_allow, *const *volumes_deny; /* each ends with NULL, or is NULL */
};

/* Each adds one line with its line feed. */
void request_start(const struct engine_start *s, const struct request_site *site, struct buf *out);
void request_simple(enum keeper_verb v, struct task_id t, struct buf *out);
void request_stop(struct task_id t, int64_t grace_ms, enum task_end why, struct buf *out);
void request_signal(struct task_id t, int signo, struct buf *out);

#endif
