/* event - everything that can happen to the core, as values.
 *
 * What a person or an engine says (a node came, a job was submitted, it ended) and what the core
 * decided itself (PLACE) are events of one kind, with a time; the journal is their list.  Applying
 * the same events gives the same state, so a journal restores, replays and explains.
 * Names are borrowed for the call.
 */
#ifndef NS_CORE_EVENT_H
#define NS_CORE_EVENT_H

#include "core/job.h"
#include "core/past.h"
#include "core/types.h"

#define EVENT_KINDS(X)                                                                             \
    X(POLICY, "policy")           /* the numbers of the policy */                                  \
    X(MODEL, "model")             /* what a GPU model costs */                                     \
    X(TENANT, "tenant")           /* a tenant is made or changed */                                \
    X(USER, "user")               /* a user's weight inside a tenant */                            \
    X(POOL, "pool")               /* machines that are lent at the same times: made or changed */  \
    X(NODE, "node")               /* a node is enrolled */                                         \
    X(NODE_CHANGE, "node_change") /* one that is enrolled has more of something, or less */        \
    X(NODE_STATE, "node_state")                                                                    \
    X(RESERVE, "reserve")         /* machines are one tenant's for a time; or no longer */         \
    X(NODE_POOL, "node_pool")     /* a node moves into a pool, or out of one */                    \
    X(NODE_TRAITS, "node_traits") /* a node is of another class */                                 \
    X(SUBMIT, "submit")                                                                            \
    X(JOB, "job")               /* one step in a job's life */                                     \
    X(JOB_TRAITS, "job_traits") /* it may use other classes of machines */                         \
    X(PLACE, "place")           /* a decision: this job, these slots */                            \
    X(TAKE, "take")             /* a decision: it is frozen, for its room is another's */          \
    X(PROMISE, "promise")       /* a decision: these slots are its own once they are free */       \
    X(PASS, "pass")             /* a pass was made here; its decisions follow */                   \
    X(PAST, "past")             /* what a share had before the journal begins */                   \
    X(DEMAND, "demand")         /* what jobs asked for before it begins */                         \
    X(RUNS, "runs")             /* how long jobs ran before it begins */                           \
    X(WAIT, "wait")             /* how long one waited before it begins */                         \
    X(TIMES, "times")           /* how forecasts were corrected before it begins */                \
    X(BURST, "burst")           /* how long jobs waited before it begins, and what that taught */  \
    X(LEDGER, "ledger")         /* who was entitled to GPUs and had them before it begins */
enum event_kind {
#define X(id, name) EVENT_##id,
    EVENT_KINDS(X)
#undef X
    EVENT_KIND_COUNT
};
const char *event_kind_name(enum event_kind k);

/* Times lie within this of 1970, either way: differences never overflow. */
#define TIME_MAX_MS (INT64_C(1) << 53)

struct event_model {
    struct str name;
    uint32_t cost_milli; /* 1000 = the reference GPU */
};

/* GPUs of these models together, at a time. */
#define MODEL_LIMITS_MAX 8 /* of one tenant */
struct model_limit {
    struct str models; /* "A100|H100" */
    uint64_t gpu_milli;
};

/* All of it is of the tenant and everything below it, and may be changed at any time; what runs is
 * never ended for it. */
struct event_tenant {
    struct str name, parent; /* parent empty: a top tenant */
    uint32_t weight_milli;
    uint64_t guarantee_milli; /* reference GPUs in thousandths */
    struct amounts limit, user_limit;
    const struct model_limit *model_limit;
    uint32_t model_limits;
    struct str pools; /* "a|b": it may use their machines only, "-": those in no pool; empty: all */
    int64_t until_ms; /* nothing of it starts from then on; 0: never so */
    /* GPUs held × time, in thousandths × ms, that it may have in this period; 0: no budget.  Once a
     * period is over nothing is kept back for it; whoever keeps it says the next. */
    int64_t budget_gpu_milli_ms, budget_from_ms, budget_until_ms;
    bool removed; /* it is no more: only without jobs and without tenants below it */
};

struct event_user {
    struct str tenant, user;
    uint32_t weight_milli;
};

struct event_pool {
    struct str name;
    struct str calendar; /* when its machines may work (calendar.h); empty: always */
};

struct event_reserve {
    struct str name, tenant;
    int64_t from_ms, until_ms;
    struct str nodes; /* "a,b,c"; empty: it is given up */
};

/* Of a change: what it is from then on; switch, pool and class stay, and so must what is in use. */
struct event_node {
    struct str name, model, net_switch; /* net_switch may be empty */
    struct str pool;                    /* empty: none, it may always work */
    struct str traits;  /* its class, whatever makes one: the engine's business; empty: none */
    struct str devices; /* what it has beyond GPUs: see device.h */
    uint32_t gpus, gpu_mem_mib, cpu_milli, mem_mib;
    uint8_t link[GPUS_PER_NODE_MAX]; /* link group of each GPU, numbered from 0 */
};

#define NODE_STATES(X)                                                                             \
    X(UP, "up")       /* takes jobs */                                                             \
    X(DRAIN, "drain") /* finishes what runs, takes nothing new */                                  \
    X(DOWN, "down")   /* cannot be reached */
enum node_state {
#define X(id, name) NODE_##id,
    NODE_STATES(X)
#undef X
    NODE_STATE_COUNT
};
const char *node_state_name(enum node_state s);

struct event_node_state {
    struct str name;
    enum node_state state;
};

struct event_node_pool {
    struct str name, pool; /* pool empty: it is in none from then on */
};

/* What runs there goes on, whatever class its job asks for. */
struct event_node_traits {
    struct str name, traits; /* traits empty: it has no class from then on */
};

/* What has to be over before a job starts: `n` jobs from `first` on, one, or an array's tasks.  With
 * several, ok: all of them succeeded; bad: all ended, and one of them badly. */
#define AFTERS(X)                                                                                  \
    X(OK, "ok")       /* it succeeded */                                                           \
    X(ANY, "any")     /* it ended, in whatever way */                                              \
    X(BAD, "bad")     /* it failed or was cancelled */                                             \
    X(NEVER, "never") /* it cannot be met any more; only in what a snapshot says */
enum after_when {
#define X(id, name) AFTER_##id,
    AFTERS(X)
#undef X
    AFTER_COUNT
};
const char *after_name(enum after_when w);

#define AFTER_MAX 64          /* of one job */
#define AFTER_JOBS_MAX 100000 /* in one span: the largest array */
struct after {
    job_id first;
    uint32_t n;
    uint8_t when; /* enum after_when */
};

struct event_submit {
    job_id id; /* larger than every id before it, unless it is known */
    struct str tenant, user;
    struct str models;  /* "A100|V100"; empty = any; becomes request.models */
    struct str devices; /* of each replica, "name=count,…"; becomes request.device: see device.h */
    struct request request;
    enum priority priority;
    bool held;
    int64_t begin_ms;          /* it does not start before; 0: at once */
    const struct after *after; /* what has to be over first; each has a job that lives */
    uint32_t afters;
    uint32_t thaw_cost_ms; /* what a freeze and a thaw cost it; 0: it cannot be taken back */
    bool restarts;         /* a freeze loses its work */
    int64_t limit_ms;      /* how long it may run; 0: for ever */
    /* Jobs of one user with the same number are the same work, by name and program: what is learnt
     * of the run times of some says something about the others.  0: nothing is known of that. */
    uint32_t family;
    struct str reservation; /* it runs in this one only, until that ends; empty: in none */
    struct str
        traits; /* "a|b": on machines of these classes only, be there any or not; empty: all */
    /* Of a job that was taken before the journal begins, or that the store had lost: */
    bool known;       /* it is not asked again whether it could ever run */
    uint16_t frozen;  /* 1: it is frozen; 2: and wants to go on */
    int64_t since_ms; /* when nothing kept it from the queue any more; 0: since it came */
    int64_t wait_ms;  /* since when it waits; 0: since then */
    int64_t ran_ms;   /* how long it has run */
    uint16_t taken;   /* how often it was taken back */
};

struct event_job {
    job_id id;
    enum job_event what;
};

/* Of a job that has not ended; one that holds machines keeps them, and has it in mind when it is
 * placed again. */
struct event_job_traits {
    job_id id;
    struct str traits; /* as of a submit */
};

struct event_place {
    job_id id;
    const struct slot *slots;
    uint32_t n;
};

/* Why a job is frozen by a pass. */
#define TAKES(X)                                                                                   \
    X(ROOM, "room")       /* for its room: another job's turn, or its machines are given back */   \
    X(EXPIRED, "expired") /* its tenant's time has ended */                                        \
    X(BUDGET, "budget")   /* its tenant's budget is spent */
enum take_why {
#define X(id, name) TAKE_##id,
    TAKES(X)
#undef X
    TAKE_COUNT
};
const char *take_name(enum take_why w);

struct event_take {
    job_id id, by; /* by 0: nobody's; with TAKE_ROOM its machines are given back */
    enum take_why why;
};

struct event {
    int64_t t_ms;
    enum event_kind kind;
    union {
        struct policy policy;
        struct event_model model;
        struct event_tenant tenant;
        struct event_user user;
        struct event_pool pool;
        struct event_node node; /* also of a change */
        struct event_node_state node_state;
        struct event_reserve reserve;
        struct event_node_pool node_pool;
        struct event_node_traits node_traits;
        struct event_submit submit;
        struct event_job job;
        struct event_job_traits job_traits;
        struct event_place place; /* also of a promise */
        struct event_take take;
        struct event_past past;
        struct event_demand demand;
        struct event_runs runs;
        struct event_wait wait;
        struct event_times times;
        struct event_burst burst;
        struct ledger_row ledger;
    };
};

#endif
