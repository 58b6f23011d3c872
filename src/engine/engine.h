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

#include "base/err.h"
#include "core/event.h"
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
    X(QUOTA, "quota", "a job's scratch space is bounded")
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
    const struct spec *spec; /* what the user asked for, checked */
    struct engine_user user;
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
    X(ENDED, "ended") /* its processes are gone and its GPUs are free */
enum engine_event_kind {
#define X(id, name) ENGINE_##id,
    ENGINE_EVENTS(X)
#undef X
    ENGINE_EVENT_COUNT
};
const char *engine_event_name(enum engine_event_kind k);

/* Why a task ended, when it is not simply its exit code. */
#define TASK_ENDS(X)                                                                               \
    X(EXITED, "exited", "its program ended")                                                       \
    X(STOPPED, "stopped", "it was told to stop")                                                   \
    X(TIME_LIMIT, "time_limit", "its time was over")                                               \
    X(MEMORY, "out_of_memory", "it used more memory than it asked for")                            \
    X(DISK, "out_of_disk", "its scratch space was full")                                           \
    X(PROCESSES, "out_of_processes", "it reached its limit of processes")                          \
    X(LOST, "lost", "its machine or its supervisor went away under it")
enum task_end {
#define X(id, name, text) END_##id,
    TASK_ENDS(X)
#undef X
    TASK_END_COUNT
};
const char *task_end_name(enum task_end w);
const char *task_end_text(enum task_end w);
bool task_end_parse(struct str name, enum task_end *out);

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
    };
};
typedef void engine_sink_fn(void *ctx, const struct engine_event *ev);

/* Those an engine lacks (see caps) may be NULL.  -1: refused at once, with the reason. */
struct engine_ops {
    const char *name;
    int (*sync)(void *self, struct err *e); /* tell about everything again, then READY */
    int (*start)(void *self, const struct engine_start *s, struct err *e);
    int (*stop)(void *self, struct task_id t, int64_t grace_ms, enum task_end why, struct err *e);
    int (*signal)(void *self, struct task_id t, int signo, struct err *e);
    int (*pause)(void *self, struct task_id t, struct err *e);
    int (*resume)(void *self, struct task_id t, struct err *e);
    int (*forget)(void *self, struct task_id t, struct err *e); /* its end is written down */
    int (*purge)(void *self, struct task_id t, struct err *e);  /* its log too */
    /* A connected socket that speaks wire/stream.h; the caller sends the first frame and closes it. */
    int (*open_stream)(void *self, struct task_id t, struct err *e);
    const char *(*log_dir)(void *self, struct task_id t, char *out, size_t n); /* wire/joblog.h */
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
