/* engine - what runs the jobs, behind one struct of functions.
 *
 * An engine runs tasks: one task is one replica of one run of a job.  No verb blocks; outcomes
 * arrive later, on the loop, through the sink given at construction.  Every verb is idempotent:
 * starting what runs, stopping what stopped and forgetting what is gone succeed and do nothing, so
 * after a crash the daemon repeats what it had intended.  A task that was started ends with exactly
 * one ENGINE_ENDED (repeated after each sync until it is forgotten).
 * What an engine cannot do stands in its capability table and is refused at submit, by name.
 */
#ifndef NS_ENGINE_ENGINE_H
#define NS_ENGINE_ENGINE_H

#include "base/buf.h"
#include "base/err.h"
#include "core/event.h"
#include "engine/end.h"
#include "spec/spec.h"

struct task_id {
    uint64_t job;
    uint32_t run;     /* 1, 2, … : each start of the job anew */
    uint32_t replica; /* 0 … replicas - 1 */
};

/* id, name, what it means */
#define ENGINE_CAPS(X)                                                                             \
    X(GPU_INDEX, "gpu_index", "the scheduler chooses which GPUs a job gets")                       \
    X(GPU_SHARE, "gpu_share", "two jobs may share one GPU")                                        \
    X(GANG, "gang", "jobs of several replicas")                                                    \
    X(IMAGES, "images", "container images other than the host's own system")                       \
    X(PAUSE, "pause", "a job can be paused in memory and go on")                                   \
    X(SIGNAL, "signal", "a job can be told to save itself and end")                                \
    X(SNAPSHOT, "snapshot", "a job can be written to disk and go on later")                        \
    X(ATTACH, "attach", "a terminal on a running job")                                             \
    X(EXEC, "exec", "another command inside a running job")                                        \
    X(NETWORK, "network", "a network of its own for each tenant")                                  \
    X(MULTI_USER, "multi_user", "jobs of different people are kept apart")                         \
    X(LIMITS, "limits", "memory and CPU limits are enforced")                                      \
    X(QUOTA, "quota", "a job's scratch space is bounded")                                          \
    X(DEVICES, "devices", "devices beyond GPUs: slices of GPUs, network cards")
enum engine_cap {
#define X(id, name, help) CAP_##id,
    ENGINE_CAPS(X)
#undef X
    ENGINE_CAP_COUNT
};
const char *engine_cap_name(enum engine_cap c);
const char *engine_cap_help(enum engine_cap c);

/* As which account a task runs. */
struct engine_user {
    struct str name, home;
    uint32_t uid, gid;
    const uint32_t *groups;
    uint32_t n_groups;
};

struct engine_start {
    struct task_id task;
    struct str node;         /* the machine that this task was given */
    const struct spec *spec; /* what the user asked for, checked */
    struct engine_user user;
    struct str home_else; /* what there is instead where the home is not; empty: nothing */
    struct str tenant;
    const struct slot *slots; /* of all replicas, in order; this task's is slots[task.replica] */
    uint32_t n_slots;
    const char *const *env; /* "KEY=value", ends with NULL: what the daemon adds (ids, ranks) */
    int64_t max_time_ms;    /* 0: no limit; what is left of it */
};

#define ENGINE_EVENTS(X)                                                                           \
    X(READY, "ready")       /* the engine answers and has told all it knows: sync is over */       \
    X(AWAY, "away")         /* it cannot be reached; nothing is known until READY */               \
    X(NODE, "node")         /* a machine: what it has, its state */                                \
    X(PROGRESS, "progress") /* a start takes long: what it is doing */                             \
    X(STARTED, "started")                                                                          \
    X(FAILED, "failed") /* the start failed: nothing of it ran */                                  \
    X(PAUSED, "paused")                                                                            \
    X(RESUMED, "resumed")                                                                          \
    X(ENDED, "ended")       /* its processes are gone and its GPUs are free */                     \
    X(OBSERVED, "observed") /* work that others made, and that we are asked to place */            \
    X(VANISHED, "vanished") /* what was observed is gone */                                        \
    X(TRAITS, "traits")     /* which machines jobs of ours may use, from now on */                 \
    X(KEPT, "kept")     /* what the engine knows of a job itself: before its tasks, in a sync */   \
    X(RECORD, "record") /* it is about to write a job down: see the verb `keep` */
enum engine_event_kind {
#define X(id, name) ENGINE_##id,
    ENGINE_EVENTS(X)
#undef X
    ENGINE_EVENT_COUNT
};
const char *engine_event_name(enum engine_event_kind k);

/* Work that others made, named by spec->observed.  Told again after each sync and whenever its traits
 * change, until it is told to have vanished.  Whoever takes it says under which job the engine will be
 * asked to start it. */
struct engine_observed {
    const struct spec *spec;
    struct str tenant, user;
    struct str traits; /* the machines it may use: see event_submit */
    bool placed;       /* it has its place already: only a job that is known takes it up */
    uint64_t *out_job; /* 0: it is not taken; it is told why by the verb `tell` */
};

/* Enough to make a job anew under its number, when the store does not know it.  In the order of numbers. */
struct engine_kept {
    struct str record; /* as it was last written down; empty: it was not */
    /* What its tasks say themselves, those of the latest run (the event's task; run 0: there are none). */
    const struct spec *spec; /* NULL: nothing */
    struct str tenant, user;
    const struct str *node; /* of the first replicas; "": it has none */
    uint32_t nodes;
    const struct slot
        *slots; /* of as many: which GPUs, their node is not looked at; NULL: not known */
    int64_t made_ms;
    uint64_t least; /* of all jobs together (0), beside the record: a number that was given out */
    bool *out_left; /* it cannot be made again now: tell it again in the next sync */
};

/* What is to be written down of a job. */
struct engine_record {
    struct buf *text;
    bool *out_over; /* nothing of it; neither: it stays as it is */
};

/* Strings are borrowed for the call. */
struct engine_event {
    enum engine_event_kind kind;
    struct task_id task;
    int64_t t_ms;
    union {
        struct {
            const struct event_node *node;
            enum node_state state;
            bool simulated;
            const char *const *gpu_uuid; /* one each GPU */
            uint32_t gpus_of_others;     /* beyond those of the node */
        } machine;
        struct {
            struct str text;
            uint64_t done, total; /* total 0: not known */
        } progress;
        struct err failed;
        struct {
            int code, signal; /* code when signal is 0 */
            enum task_end why;
            uint64_t cpu_ms, mem_peak_mib;
            uint64_t limit;      /* of processes, when that is why; 0: not known */
            uint64_t lost_bytes; /* of its output: the disk was full */
        } ended;
        struct engine_observed observed;
        struct str vanished; /* which: spec.observed of what was told */
        struct str traits;   /* as in event_submit */
        struct engine_kept kept;
        struct engine_record record;
    };
};
typedef void engine_sink_fn(void *ctx, const struct engine_event *ev);

/* id, name: what somebody may do in a tenant, where the engine has people of its own */
#define ENGINE_MEMBER_ROLES(X)                                                                     \
    X(VIEWER, "viewer")                                                                            \
    X(MEMBER, "member")                                                                            \
    X(LEAD, "lead")
enum engine_member_role {
#define X(id, name) MEMBER_##id,
    ENGINE_MEMBER_ROLES(X)
#undef X
    MEMBER_ROLE_COUNT
};

struct engine_member {
    struct str name;
    enum engine_member_role role;
};

struct engine_tenant {
    struct str name;
    struct amounts limit; /* the least of its own and of those above it; NO_LIMIT where none */
    const struct engine_member *member;
    size_t members;
    bool removed; /* its data stays; nobody is in it and nothing starts */
};

/* What is said of work that others made and that waits. */
struct engine_word {
    const char *reason; /* a slug */
    struct str text;
    bool final; /* it will not be placed as it is: it is not observed again */
};

/* The firewall between tenants on this machine. */
struct engine_walls {
    bool known, there;
    uint64_t reloads; /* how often somebody took it away, since the engine came up */
};

/* Those an engine lacks (see caps) may be NULL.  -1: refused at once, with the reason. */
struct engine_ops {
    const char *name;
    /* What it cannot do of this spec, beyond its capabilities: -1 names the field. */
    int (*check)(void *self, const struct spec *s, struct err *e);
    int (*sync)(void *self, struct err *e); /* tell about everything again, then READY */
    int (*start)(void *self, const struct engine_start *s, struct err *e);
    int (*stop)(void *self, struct task_id t, int64_t grace_ms, enum task_end why, struct err *e);
    int (*signal)(void *self, struct task_id t, int signo, struct err *e);
    /* Tells it to save itself and end within the grace, where that is more than a signal. */
    int (*freeze)(void *self, struct task_id t, int signo, int64_t grace_ms, struct err *e);
    int (*pause)(void *self, struct task_id t, struct err *e);
    int (*resume)(void *self, struct task_id t, struct err *e);
    int (*forget)(void *self, struct task_id t, struct err *e); /* its end is written down */
    int (*purge)(void *self, struct task_id t, struct err *e);  /* its log too */
    /* A connected socket that speaks wire/stream.h; the caller sends the first frame and closes it. */
    int (*open_stream)(void *self, struct task_id t, struct err *e);
    const char *(*log_dir)(void *self, struct task_id t, char *out, size_t n); /* wire/joblog.h */
    /* All of a tenant as it is to be from now on. */
    int (*tenant)(void *self, const struct engine_tenant *t, struct err *e);
    void (*tell)(void *self, struct str observed, const struct engine_word *w);
    /* A job stands for it that has no place: told after each READY.  What is not there any more has vanished. */
    void (*await)(void *self, struct str observed);
    /* A machine that is lent at times is ours now, or its owner's again. */
    void (*lend)(void *self, struct str node, bool is_ours);
    /* What is to be kept of a job where the store is not has changed; or it is over.  The engine asks for it by
     * RECORD when it has time for that, and tells it as KEPT in its first sync.  0: of all jobs together. */
    void (*keep)(void *self, uint64_t job);
    /* How long ago it last said anything, when it is asked now and then; -1: not known. */
    int64_t (*heard_ms)(void *self);
    void (*walls)(void *self, struct engine_walls *out); /* as it was last heard */
    void (*free)(void *self);
};

struct engine {
    const struct engine_ops *ops;
    void *self;
    const bool *caps; /* ENGINE_CAP_COUNT of them; final once READY was seen */
};

/* "17.1.0" */
const char *task_format(struct task_id t, char out[static 64]);
int task_parse(struct str text, struct task_id *out, struct err *e) MUST_USE;

/* -1 with the capability's name when a spec needs what the engine cannot do. */
int engine_check(const struct engine *en, const struct spec *s, struct err *e) MUST_USE;

#endif
