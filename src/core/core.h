/* core - the scheduler as a deterministic state machine: events in, plans out.
 *
 * No I/O, no clock, no randomness, no log: the same events and the same times give the same plans,
 * in daemon, simulator and tests.  A call that fails changes nothing.  A pass takes what
 * it decided; the caller writes the plan down before acting on it.  Jobs that ended are forgotten.
 */
#ifndef NS_CORE_CORE_H
#define NS_CORE_CORE_H

#include "base/arena.h"
#include "base/err.h"
#include "core/event.h"
#include "core/reason.h"

struct core;

struct core *core_new(void);
struct core *core_free(struct core *c); /* NULL ok; returns NULL */
void core_free_p(struct core **c);

int core_apply(struct core *c, const struct event *ev, struct err *e) MUST_USE;

/* Would this submit be taken, under the next id?  Its own id is not looked at. */
int core_check_submit(const struct core *c, const struct event_submit *s, struct err *e) MUST_USE;

/* The events that make this state anew, in order: what a journal that is cut begins with. */
typedef void core_emit_fn(void *ctx, const struct event *ev);
void core_snapshot(const struct core *c, core_emit_fn *fn, void *ctx);

enum action_kind {
    ACT_START,
    ACT_THAW,
    ACT_TAKE,   /* freeze it: its room is for another */
    ACT_PROMISE /* the slots are its own as soon as they are free */
};
struct action {
    enum action_kind kind;
    job_id job, by; /* by: of a take, the job that gets the room; 0: see event_take */
    enum take_why why;
    const struct slot *slots; /* one each replica, in order of nodes; lives in the arena */
    uint32_t n;
};
struct event action_event(const struct action *a, int64_t now_ms); /* as the journal has it */

struct plan {
    struct action *action;
    size_t n, cap;
    uint64_t considered; /* jobs and groups the pass looked at */
};

/* Starts what can start now, in the order of the policy.  *out lives in `a`. */
void core_pass(struct core *c, int64_t now_ms, struct arena *a, struct plan *out);

/* The same after looking at every waiting job anew; for measuring and for tests. */
void core_pass_full(struct core *c, int64_t now_ms, struct arena *a, struct plan *out);

/* The next time at which a pass is due because of time alone; INT64_MAX: none. */
int64_t core_wake_ms(const struct core *c);

/* A job that can never start, because one that it waits for ended otherwise: the caller ends it
 * with JOB_EV_CANCEL, which may show the next.  The smallest id first; false: there is none. */
struct never {
    job_id job, by;
    struct after after; /* what `by` did not meet */
};
bool core_never(const struct core *c, struct never *out);

/* ---- when ---- */

/* When it will start: half of such jobs do before the first, nine in ten before the second. */
struct eta {
    int64_t p50_ms, p90_ms;
};
bool core_eta(const struct core *c, job_id job, int64_t now_ms,
              struct eta *out); /* false: it does not wait in the queue */

/* ---- why ---- */

/* Every obstacle in its way now, each needed: were all of them gone, and those before it, the next
 * pass would start it; were one of them left, it would not.  See docs/guide/why-waiting.md.
 * A pass that is a review may also borrow or take room for it: then it has a promise. */
#define EXPLAIN_LINES 36
#define EXPLAIN_AFTERS 4 /* lines about what it starts after, at most; the last counts the rest */
#define EXPLAIN_LIMITS 6 /* likewise about limits */
struct explanation {
    struct {
        enum reason why;
        share_id share;       /* of a limit: whose */
        enum resource which;  /* and of what; RES_COUNT: of GPU models */
        uint32_t reservation; /* in the way: its number, from 1, which is not for all to know */
        char text[256];
    } line[EXPLAIN_LINES]; /* the strongest first */
    size_t n;
    /* Who has room first, when there is some for it: not an obstacle, for nobody in front of it
     * needs what it needs for certain.  Of a job in the queue. */
    struct before {
        uint64_t own;   /* jobs of the same user */
        uint32_t users; /* others whose share is next before its own */
    } before;
    int64_t waited_ms;
    bool has_eta;
    struct eta eta;
};
int core_explain(struct core *c, job_id job, int64_t now_ms, struct explanation *out, struct err *e)
    MUST_USE;

/* What would help: the job with this request instead (and this limit, where one is given) would start
 * in the next pass; with a limit, in the next that is a review.  What costs it least comes first. */
#define ADVICES(X)                                                                                 \
    X(MODEL, "model")                                                                              \
    X(SCOPE, "scope")                                                                              \
    X(LINK, "linked")                                                                              \
    X(SPLIT, "split")                                                                              \
    X(LIMIT, "max_time")                                                                           \
    X(FREEZE, "freeze")                                                                            \
    X(CPU, "cpus")                                                                                 \
    X(MEM, "mem")                                                                                  \
    X(GPUS, "gpus")                                                                                \
    X(REPLICAS, "replicas")
enum advice_kind {
#define X(id, slug) ADVICE_##id,
    ADVICES(X)
#undef X
    ADVICE_COUNT
};
const char *advice_slug(enum advice_kind k);

#define ADVICE_MAX 12
struct advice {
    enum advice_kind kind;
    struct request request;
    int64_t limit_ms; /* 0: as it is */
    char text[128];
};
uint32_t core_advise(struct core *c, job_id job, struct advice out[ADVICE_MAX]);

/* ---- views: copies of what is inside, for reports ---- */

struct share_view {
    const char *name; /* valid until the next call that changes the core */
    share_id parent;  /* v == NONE at the root */
    bool is_user;
    uint32_t depth, weight_milli;
    int64_t guarantee_milli, cost_milli; /* cost: held now, in reference GPUs */
    double past_milli;                   /* held in the past, averaged with the half-life */
    struct amounts used, limit;
    uint64_t waiting;
    bool removed;          /* a tenant that is no more */
    enum reason closed;    /* nothing of it starts, as of the last pass: EXPIRED, BUDGET, or 0 */
    int64_t until_ms;      /* its time ends then; 0: never */
    const char *pools;     /* "a|b": as they were said; "": every machine */
    uint32_t model_limits; /* see core_share_model */
    /* Thousandths of GPUs × ms; budget 0: there is none. */
    int64_t budget_gpu_milli_ms, spent_gpu_milli_ms, budget_from_ms, budget_until_ms;
};
bool core_share(const struct core *c, share_id id, int64_t now_ms,
                struct share_view *out); /* false past the last */

struct share_model {
    const char *models; /* "A100|H100" */
    uint64_t limit_milli, used_milli;
};
bool core_share_model(const struct core *c, share_id id, uint32_t i, struct share_model *out);

struct node_view {
    const char *name, *model;
    enum node_state state;
    uint32_t gpus, cpu_milli, mem_mib, cpu_free_milli, mem_free_mib;
    uint16_t gpu_free[GPUS_PER_NODE_MAX], device_free[DEVICES_EACH]; /* in the order of `devices` */
    bool kept;                           /* for a job that has waited long */
    const char *pool, *traits, *devices; /* traits: its class; "": none; devices: see device.h */
    bool open;                           /* it may work, as of the last pass */
    int64_t closes_ms, opens_ms;         /* when open, when not; INT64_MAX: never */
    uint32_t reserved; /* now or next: its place among the reservations, from 1; 0: none */
};
bool core_node(const struct core *c, node_id id, struct node_view *out); /* false past the last */

struct job_view {
    share_id leaf;
    enum job_state state;
    enum priority priority;
    struct request request;
    int64_t submit_ms, since_ms; /* since: when nothing kept it from the queue any more */
    int64_t begin_ms;            /* it waits for this time still; 0: it does not */
    uint32_t afters;             /* and for so many others: see core_job_after */
    bool is_stated, awake;       /* its start was forecast; it is frozen and wants to go on */
    int64_t stated_ms;           /* then */
    struct eta eta;              /* as it was forecast then */
    enum reason why;             /* what the last pass found, while it waits */
    const struct slot *slots;
    uint32_t n;
    struct str traits; /* classes of machines it asks for, sorted */
};
bool core_job(const struct core *c, job_id id,
              struct job_view *out); /* false when unknown or ended */

/* How a job that holds machines leaves them when their windows end, as of the last pass. */
enum leave_how {
    LEAVE_NEVER,  /* none of its machines closes */
    LEAVE_ENDS,   /* its limit ends it in time */
    LEAVE_FROZEN, /* it is frozen, and goes on elsewhere or later */
    LEAVE_ANEW,   /* the same, and begins from the start */
    LEAVE_STAYS   /* it goes on to its end: it cannot be frozen */
};
struct leave {
    enum leave_how how;
    int64_t at_ms; /* of a stay: when its limit ends it; INT64_MAX: it has none */
};
#define LEAVE_BY_WINDOW INT64_MIN /* or were they gone at a time: a reservation begins then */
bool core_leave(const struct core *c, job_id id, int64_t by_ms,
                struct leave *out); /* false: it holds nothing */

/* What it waits for still; returns how many were written. */
uint32_t core_job_after(const struct core *c, job_id id, struct after out[AFTER_MAX]);

/* false past the last; those that are not used any more have no name. */
struct reservation_view {
    const char *name;
    share_id tenant;
    int64_t from_ms, until_ms;
    const uint32_t *node;
    uint32_t n;
};
bool core_reservation(const struct core *c, uint32_t i, struct reservation_view *out);

/* Jobs that hold something on machines which could run this one, machine by machine; returns how many
 * there are, of which at most `max` were written. */
uint32_t core_holders(const struct core *c, job_id waits, job_id *out, uint32_t max);

/* What was counted of the days from from_day on, as it stands at now_ms if nothing happens until then:
 * the latest day first, of each the machines, then the tenants that had a part in it. */
typedef void core_ledger_fn(void *ctx, const struct ledger_row *row);
struct ledger_span {
    int64_t from_day, now_ms;
};
void core_ledger(const struct core *c, struct ledger_span span, core_ledger_fn *fn, void *ctx);
void core_ledger_forget(struct core *c, int64_t before_day); /* they are written down */

struct core_totals {
    struct amounts total, free;   /* of the machines that are up and whose windows are open */
    uint64_t waiting, kept_nodes; /* waiting: in the queue */
    uint64_t overstays;           /* jobs that hold a machine outside its window */
    uint32_t nodes, shares, shapes, cells;
};
struct core_totals core_totals(const struct core *c);

/* Checks every sum against a recount from nothing; for tests.  -1 names the first that is wrong. */
int core_audit(const struct core *c, struct err *e) MUST_USE;

#endif
