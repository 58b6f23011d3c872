/* control - what the control plane does with jobs: gather, decide, persist, act.
 *
 * It owns the core, the living jobs and the way between store and engine; no HTTP here.  A verb is
 * checked and applied at once, in memory; its callback runs when it is durable, and only then does
 * the engine hear of it.  What arrives while a commit is on its way to the disk is gathered into the
 * next turn: one pass, one commit.
 * After kill -9 the journal makes the core anew, the store the living jobs, and the engine is asked
 * what runs; what had been intended is told to it again.
 */
#ifndef NS_CONTROL_CONTROL_H
#define NS_CONTROL_CONTROL_H

#include "base/tz.h"
#include "control/bounds.h"
#include "control/ear.h"
#include "control/pool.h"
#include "core/core.h"
#include "engine/engine.h"
#include "spec/tenant.h"
#include "store/audit.h"
#include "store/store.h"
#include "store/usage.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "sys/steady.h"

struct control;
struct nss;

/* A tenant of the settings file. */
struct control_tenant_def {
    struct str name;
    struct tenant_spec spec;
};

/* A pool of the settings file, checked: see pool.h. */
struct control_pool_def {
    struct str name, window; /* window: with its rule; empty: always open */
    enum stage stage;
    const char *const *node;
    size_t nodes;
};

struct control_config {
    struct loop *loop;
    struct store *store;
    struct log *log;
    struct clock clock;
    struct policy policy;
    const struct control_tenant_def *tenant;
    size_t tenants;
    struct tz zone; /* whose days and months budgets are filled by */
    const struct control_pool_def *pool;
    size_t pools;
    const char *homes;    /* folder of the homes of accounts of ours */
    uint32_t uid_base;    /* accounts of ours get uids from here on */
    uint32_t uid_min;     /* below it a machine's account is not used for jobs */
    bool single_user;     /* every job runs as ourselves */
    struct nss *nss;      /* borrowed; NULL: the machine's accounts are waited for */
    uint32_t scratch_mib; /* disk space of a replica that does not say */
    struct control_keep keep;
    struct control_bounds bounds;
    struct steady *steady; /* what `clock` is made of; NULL: it is believed whatever it says */
    bool forget_tasks;     /* what runs of jobs that nobody knows is ended */
    /* What is wrong with a machine, or with these of its GPUs, is added to out: whoever's job failed there reads
     * it.  false: nothing is known.  NULL: nobody knows. */
    bool (*trouble)(void *ctx, struct str node, uint64_t gpu_mask, struct buf *out);
    void *trouble_ctx;
    struct control_ear ear; /* all NULL: nobody listens */
};

/* Restores what the store knows.  Borrowed: loop, store, log, homes. */
struct control *control_new(const struct control_config *c, struct err *e);
struct control *control_free(struct control *c); /* NULL ok; returns NULL */
void control_free_p(struct control **c);

/* The engine's events go here; control_start gives it the engine and asks what runs. */
void control_engine_event(void *control, const struct engine_event *ev);
int control_start(struct control *c, struct engine engine, struct err *e) MUST_USE;
bool control_ready(const struct control *c, struct err *why_not); /* why_not may be NULL */

/* How long ago the engine last answered; -1: not known.  One that is silent keeps what it is given. */
int64_t control_heard_ms(const struct control *c);
bool control_answers(const struct control *c, struct err *why_not);
void control_stop(struct control *c);            /* starts nothing any more; what runs goes on */
void control_end_all(struct control *c);         /* ends what runs; after control_stop */
size_t control_holding(const struct control *c); /* jobs that hold resources */

/* Starts what has become due; a timer calls it, and so may whoever knows that the clock was set. */
void control_look_at_clock(void *control);

/* Runs when the verb is on the disk.  Never within the call that took it. */
typedef void control_done_fn(void *ctx);
struct control_done {
    control_done_fn *fn; /* may be NULL */
    void *ctx;
};

/* What others write down goes with the turn that is being gathered; the callback runs when it is durable. */
struct store_batch *control_batch(struct control *c);
void control_commit(struct control *c, struct control_done done);

/* ---- verbs: -1 at once when refused, and nothing changed ---- */

struct control_submit {
    struct str user, tenant;
    uint32_t uid;                   /* of the caller, or UINT32_MAX */
    const struct store_scope *sees; /* whose jobs it may start after; NULL: nobody's */
    const struct spec *spec;
    size_t n;
    struct str key;    /* idempotency key, or empty: asked again it is the same submit */
    uint64_t request;  /* digest of what was asked: another one under the same key is refused */
    bool batch;        /* the answer lists every job */
    struct str traits; /* of work that others made: the machines it may use */
};
bool control_asks_for(struct control *c, struct str user); /* until that is told, submits fail */
/* All or none.  Jobs get ids one after the other; *out_first and *out_n tell which. */
int control_submit(struct control *c, const struct control_submit *s, struct control_done done,
                   uint64_t *out_first, size_t *out_n, struct err *e) MUST_USE;
int control_key_reused(struct str key, struct err *e); /* the refusal of such a one */
int control_check(struct control *c, const struct control_submit *s, struct err *e) MUST_USE;
/* What would become of its first job, were it submitted now.  The first call checks it and writes down what the core
 * would be told (texts are those of s and a); the second tells it and makes a pass, so it is for a copy of this process
 * only (sys/aside.h).  True: it starts at once; else core_explain knows of *out. */
int control_foresee(struct control *c, const struct control_submit *s, struct arena *a,
                    struct event *out, struct err *e) MUST_USE;
bool control_foresee_in_copy(struct control *c, const struct event *ev, struct err *e);

#define CONTROL_VERBS(X)                                                                           \
    X(CANCEL, "cancel", "ends the job")                                                            \
    X(HOLD, "hold", "keeps a waiting job out of the queue")                                        \
    X(RELEASE, "release", "lets a held job queue")                                                 \
    X(FREEZE, "freeze", "makes a running job stand still, by the way its spec allows")             \
    X(THAW, "thaw", "lets a frozen or paused job go on")
enum control_verb {
#define X(id, name, help) VERB_##id,
    CONTROL_VERBS(X)
#undef X
    CONTROL_VERB_COUNT
};
const char *control_verb_name(enum control_verb v);
const char *control_verb_help(enum control_verb v);
/* by: who, and why when that was said; a cancelled job keeps it. */
int control_verb(struct control *c, uint64_t job, enum control_verb v, struct str by,
                 struct control_done done, struct err *e) MUST_USE;
int control_signal(struct control *c, uint64_t job, int signo, struct err *e) MUST_USE;
int control_node_state(struct control *c, struct str node, enum node_state state,
                       struct control_done done, struct err *e) MUST_USE;

/* Its owner wants the machine: what is there is taken back as at the end of a window, and nothing is thawed there
 * until the owner lets it go: it is in POOL_HELD meanwhile.  Outlives the daemon.  ERR_CONFLICT: it is so already. */
int control_hold(struct control *c, struct str node, bool held, struct str by,
                 struct control_done done, struct err *e) MUST_USE;
bool control_held(const struct control *c, struct str node);

/* ---- tenants ---- */

/* Makes it, or changes all of it.  Those of the settings file are refused. */
struct control_tenant_change {
    struct str name, by;
    const struct tenant_spec *spec;
};
int control_tenant_put(struct control *c, const struct control_tenant_change *ch,
                       struct control_done done, struct err *e) MUST_USE;
int control_tenant_delete(struct control *c, struct str name, struct str by,
                          struct control_done done, struct err *e) MUST_USE;
/* Would all of these be taken, one after the other, puts first?  Changes nothing; when it says yes, doing so at
 * once cannot be refused.  An error is about *out_name. */
struct control_tenants_change {
    const struct control_tenant_change *put;
    size_t puts;
    const struct str *gone;
    size_t gones;
};
int control_tenants_check(struct control *c, const struct control_tenants_change *ch,
                          struct str *out_name, struct err *e) MUST_USE;

/* ---- the audit ---- */

/* Right after what it tells of was applied: both are in one commit.  Number and time are not looked at. */
void control_audit(struct control *c, const struct audit_row *r);

/* What the last verification of the whole found: after a start, and once a day. */
struct control_audit_state {
    int64_t checked_ms; /* 0: not yet */
    uint64_t rows, fault_at;
    enum audit_fault fault;
};
struct control_audit_state control_audit_state(const struct control *c);

/* ---- looking ---- */

/* Valid until the next change; false past the last. */
struct control_tenant {
    const char *name;
    bool of_settings;
    int64_t created_ms;
    const struct tenant_spec *spec;
    int64_t budget_from_ms, budget_until_ms; /* the period now; until INT64_MAX: for ever */
};
bool control_tenant_at(const struct control *c, size_t i, struct control_tenant *out);
bool control_tenant_find(const struct control *c, struct str name, struct control_tenant *out);

struct core *control_core(struct control *c); /* to look at; only control changes it */
const struct engine *control_engine(const struct control *c);
/* Jobs are or may be run as this uid; `out_user` is whose account of ours it is, "" nobody's. */
bool control_uid_of_jobs(const struct control *c, uint32_t uid, struct str *out_user);
int64_t control_now_ms(const struct control *c);
/* Whose the GPUs were on these days, without `to`, as of now_ms; in no order of days. */
struct control_days {
    int64_t from, to, now_ms;
};
int control_ledger(const struct control *c, const struct store_scope *who, struct control_days days,
                   store_ledger_fn *fn, void *ctx, struct err *e) MUST_USE;
const struct policy *control_policy(const struct control *c);

/* What of a machine the core does not keep. */
struct control_node {
    bool simulated;
    const char *const *gpu_uuid;
    size_t gpus;
    uint32_t gpus_of_others; /* that it has beside them: what pods of others have on Kubernetes */
};
bool control_node(const struct control *c, struct str name, struct control_node *out);

/* Which run and replica of a living job may be attached to; -1 says why not. */
int control_task(struct control *c, uint64_t job, uint32_t replica, struct task_id *out,
                 struct err *e) MUST_USE;

/* Called after each commit that had public events, and when the engine's state changed. */
int control_watch(struct control *c, loop_fn *fn, void *ctx);
void control_unwatch(struct control *c, int watch);

/* How long passes took: up to so many microseconds, or longer. */
#define CONTROL_PASS_BOUNDS_US(X)                                                                  \
    X(100) X(250) X(500) X(1000) X(2500) X(5000) X(10000) X(25000) X(50000) X(100000) X(1000000)
#define X(us) +1
enum {
    CONTROL_PASS_BOUNDS = CONTROL_PASS_BOUNDS_US(X)
};
#undef X
extern const uint32_t control_pass_bound_us[CONTROL_PASS_BOUNDS];

struct control_stats {
    uint64_t passes, starts, taken, commits, living, logs_removed;
    uint64_t pass_ns_sum, pass_took[CONTROL_PASS_BOUNDS + 1]; /* the last: longer than all */
};
struct control_stats control_stats(const struct control *c);

#endif
