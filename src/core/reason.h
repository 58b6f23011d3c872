/* reason - why a job waits: one code for each, with the sentence that a person reads. */
#ifndef NS_CORE_REASON_H
#define NS_CORE_REASON_H

#include "base/base.h"

/* id, slug, meaning.  What a pass stores; core_explain adds the figures. */
#define REASONS(X)                                                                                 \
    X(NEW, "new", "no pass has looked at it yet")                                                  \
    X(HELD, "held", "it is held: it waits until someone releases it")                              \
    X(BEGIN, "begin", "its time to begin has not come yet")                                        \
    X(AFTER, "after", "it starts after another job, which has not ended yet")                      \
    X(FROZEN, "frozen", "it is frozen: it waits until someone thaws it")                           \
    X(LIMIT_TENANT, "tenant_limit", "its tenant is at a limit")                                    \
    X(LIMIT_USER, "user_limit", "its user is at a limit")                                          \
    X(BUDGET, "budget", "its tenant has used up its GPU-hours")                                    \
    X(EXPIRED, "expired", "its tenant's time has ended")                                           \
    X(POOLS, "pools", "its tenant may not use the machines that could run it now")                 \
    X(NO_MATCH, "no_match", "no machine matches what it asks for of its machine (labels, taints)") \
    X(ROOM, "room", "no machine has room for it now")                                              \
    X(TOO_LARGE, "too_large", "no machine here is large enough for it any more")                   \
    X(WINDOW, "window",                                                                            \
      "the machines that could run it are lent at other times, reserved, or held by their owners") \
    X(RESERVED, "reserved", "it waits for its reservation to begin")                               \
    X(NO_NODE, "no_node", "too few of the machines that could run it are up")                      \
    X(MODEL_BUSY, "model_busy", "the GPU models it asks for are busy")                             \
    X(GPUS_BUSY, "gpus_busy", "too few GPUs are free")                                             \
    X(SCATTERED, "scattered", "enough GPUs are free, but not close enough together")               \
    X(CPU_BUSY, "cpu_busy", "machines with free GPUs have too few CPUs free")                      \
    X(MEM_BUSY, "memory_busy", "machines with free GPUs have too little memory free")              \
    X(DEVICE_BUSY, "device_busy", "too few of the devices it asks for are free on one machine")    \
    X(PROMISED, "promised", "room is being made for it: it starts when that is free")              \
    X(KEPT, "kept", "the room is kept free for jobs that go before it")
enum reason {
#define X(id, slug, text) WHY_##id,
    REASONS(X)
#undef X
    REASON_COUNT
};

const char *reason_slug(enum reason r);
const char *reason_text(enum reason r);

#endif
