/* types - the core's small values: ids, amounts, what a job asks for, where it runs.
 *
 * Quantities are integers with their unit in the name (thousandths of a GPU or CPU, MiB, ms), so
 * sums are exact and a journal replays bit for bit.
 */
#ifndef NS_CORE_TYPES_H
#define NS_CORE_TYPES_H

#include "base/base.h"
#include "base/str.h"

typedef struct {
    uint64_t v;
} job_id;
typedef struct {
    uint32_t v;
} node_id;
typedef struct {
    uint32_t v;
} share_id; /* a tenant, or a user inside one */

#define NONE UINT32_MAX
#define GPU_MILLI 1000u      /* one whole GPU */
#define GPUS_PER_NODE_MAX 16 /* GPUs one node may have */
#define MODELS_MAX 64        /* GPU models in one cluster: a request names them as bits */
#define MODEL_COST_MAX                                                                             \
    1000000u           /* thousandths of the reference GPU: sums of costs do not overflow */
#define DEVICES_MAX 64 /* names of other devices in one cluster */
#define DEVICES_EACH 8 /* of them on one node, and in one request */
#define REPLICAS_MAX 4096
#define NAME_MAX_BYTES 253
#define TRAITS_NAME_MAX 64u    /* bytes of the name of a class of machines */
#define TRAITS_TEXT_MAX 65536u /* bytes of a list of them */
#define POOL_HELD "owner-held" /* the pool of machines that their owners hold: never open */
#define TREE_DEPTH_MAX 8       /* tenants above one another, the user included */

/* What is counted against a limit. */
#define RESOURCES(X)                                                                               \
    X(GPU, "gpus")                                                                                 \
    X(CPU, "cpus")                                                                                 \
    X(MEM, "memory")                                                                               \
    X(JOBS, "jobs")                                                                                \
    X(NOTEBOOKS, "notebooks")                                                                      \
    X(STORAGE, "storage")
enum resource {
#define X(id, name) RES_##id,
    RESOURCES(X)
#undef X
    RES_COUNT
};
const char *resource_name(enum resource r);
const char *resource_words(enum resource r); /* after a number: "MiB of memory" */
double resource_unit(enum resource r);       /* what one of what people count is */

/* GPU and CPU in thousandths, memory and storage in MiB, jobs and notebooks as counts. */
struct amounts {
    uint64_t of[RES_COUNT];
};
#define NO_LIMIT UINT64_MAX
#define AMOUNTS_NO_LIMIT                                                                           \
    ((struct amounts){ { NO_LIMIT, NO_LIMIT, NO_LIMIT, NO_LIMIT, NO_LIMIT, NO_LIMIT } })

#define PRIORITIES(X)                                                                              \
    X(LOW, "low")                                                                                  \
    X(NORMAL, "normal")                                                                            \
    X(HIGH, "high")                                                                                \
    X(URGENT, "urgent")
enum priority {
#define X(id, name) PRIO_##id,
    PRIORITIES(X)
#undef X
    PRIO_COUNT
};
const char *priority_name(enum priority p);

/* How close the replicas of a gang must be. */
#define SCOPES(X)                                                                                  \
    X(ANY, "any")                                                                                  \
    X(SWITCH, "switch")                                                                            \
    X(NODE, "node")
enum scope {
#define X(id, name) SCOPE_##id,
    SCOPES(X)
#undef X
    SCOPE_COUNT
};
const char *scope_name(enum scope s);

/* How a gang uses nodes: pack prefers few, fewest insists on the least possible number, spread
 * puts each replica on a node of its own. */
#define LAYOUTS(X)                                                                                 \
    X(PACK, "pack")                                                                                \
    X(FEWEST, "fewest")                                                                            \
    X(SPREAD, "spread")
enum layout {
#define X(id, name) LAYOUT_##id,
    LAYOUTS(X)
#undef X
    LAYOUT_COUNT
};
const char *layout_name(enum layout l);

/* What one job asks for.  Each of the equal replicas gets cpu, memory, and either `gpus` whole GPUs
 * or a share of one: gpu_milli thousandths of it, or as much as holds gpu_mem_mib, whichever is
 * more.  models is a bit set; 0 means any. */
struct request {
    uint64_t models;
    uint32_t replicas;
    uint32_t cpu_milli, mem_mib, gpu_mem_mib;
    uint16_t gpus, gpu_milli;
    uint8_t scope, layout, linked; /* linked: a replica's GPUs lie in one link group */
    uint8_t stay; /* the core's own: how much of a window it needs, see window.h; 0: all of it */
    uint16_t reservation; /* the core's own: the number of the one that it runs in; 0: none */
    uint16_t zone;        /* the core's own: the pools that its tenant may use; 0: every machine */
    uint32_t disk_mib;    /* scratch space of each replica; no machine is asked for it */
    uint16_t traits;      /* the core's own: the classes of machines that it may use; 0: all */
    uint16_t device_n[DEVICES_EACH]; /* so many of each device that follows */
    uint8_t notebook;                /* 1: it counts as a notebook */
    uint8_t device[DEVICES_EACH];    /* the core's own: see device.h; from 1, 0: no more of them */
    uint8_t zero[5];                 /* no padding: requests are compared and hashed as bytes */
};
_Static_assert(offsetof(struct request, zero) + 5 == sizeof(struct request),
               "a request has no hidden padding");

static inline bool request_shares_gpu(const struct request *r)
{
    return r->gpus == 0 && (r->gpu_milli > 0 || r->gpu_mem_mib > 0);
}

/* One replica on one node: which GPUs, and how much of each. */
struct slot {
    uint32_t node;
    uint16_t gpu_mask;
    uint16_t milli; /* of each GPU in the mask; 1000 = whole */
};

/* The numbers of the policy.  core/policy.c holds their table: names, bounds, defaults, help. */
struct policy {
    int64_t half_life_ms;       /* after this long a used GPU-hour counts half */
    int64_t age_step_ms;        /* waiting this long lifts a job by one priority class */
    int64_t age_max_steps;      /* at most this many classes */
    int64_t claim_after_ms;     /* a job that waited this long may have room kept for it */
    int64_t claims_max;         /* so many jobs at a time may have room kept */
    int64_t cpu_cost_milli;     /* what one CPU costs, in thousandths of a reference GPU */
    int64_t past_milli;         /* what the past counts next to the present, in thousandths */
    int64_t take_back;          /* 1: jobs are frozen for others that are worth more now */
    int64_t take_gain_milli;    /* so much more worth, in thousandths */
    int64_t min_run_ms;         /* a job that has run for less since its start is left alone */
    int64_t thaw_run_ms;        /* the same after a thaw */
    int64_t express_part_milli; /* GPU time that a job has before it queues with the long ones */
    int64_t express_milli;      /* what a share may be above others for such jobs, in thousandths */
    int64_t review_ms;          /* how often all that wait are looked at for taking back */
    int64_t window_lead_ms; /* so long before a window ends only what surely ends still starts */
    int64_t budget_freezes; /* 1: what runs is frozen when its tenant's budget is spent */
};

/* One UTC day of one tenant, or of all machines, in thousandths of a GPU x ms: see core/ledger.h. */
struct ledger_sums {
    int64_t entitled, got, lent, borrowed;
    int64_t frozen; /* of jobs that were taken back and want to go on */
    int64_t wanted; /* of jobs that wait, those included */
};
struct ledger_machines {
    int64_t total, got, idle, away;
};
struct ledger_row {
    int64_t day;                     /* since 1970 */
    struct str tenant;               /* with its own users; empty: all machines */
    struct ledger_sums sums;         /* of a tenant */
    struct ledger_machines machines; /* of all; as an event: and nothing was counted before it */
};

#endif
