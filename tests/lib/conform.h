/* conform - what every engine must keep of the promises in engine/engine.h, as tests.
 *
 * Written once against struct engine_ops.  A test file brings an engine, a way to let time pass and
 * a way to write programs for it, and runs each case with a fresh engine; so the same sentences hold
 * for virtual and for real time.
 */
#ifndef NS_TESTS_LIB_CONFORM_H
#define NS_TESTS_LIB_CONFORM_H

#include "engine/engine.h"

/* What a task is to do. */
struct conform_program {
    int64_t run_ms; /* then it ends */
    int code;
    bool ignores_term;
    int saves_with; /* after USR1 it ends with this code; 0: it knows no USR1 */
    bool cannot_start;
};

struct conform_event {
    enum engine_event_kind kind;
    struct task_id task;
    int code, signal;
    enum task_end why;
};

struct conform {
    struct engine engine;
    struct engine_user user;
    struct str tenant, node; /* empty: vision, and wherever the engine is */
    int stop_signal;         /* what a stop ends it by; 0: TERM */
    bool asks_first;         /* a stop without grace asks it to end too, and kills a moment later */
    /* Lets at most so much time pass; in real time it may come back as soon as something was told. */
    void (*advance)(void *ctx, int64_t ms);
    void (*program)(void *ctx, const struct conform_program *p, struct arena *a, struct spec *out);
    int (*runs)(void *ctx,
                struct task_id t); /* how often its program began, and knows its signals */
    void *ctx;
    int64_t patience_ms; /* how long something may take */
    int64_t
        quiet_ms; /* how long nothing must happen to believe that nothing will; 0: time is real */
    /* what was told */
    struct conform_event *seen;
    size_t n, cap, mark;
    uint32_t nodes;
    bool unnamed_gpu; /* a machine told of a GPU without its uuid */
};

void conform_sink(void *conform, const struct engine_event *ev); /* the engine's */
void conform_clear(struct conform *c);
void conform_start(struct conform *c, uint64_t job, struct conform_program p); /* JOB.1.0 */
struct conform_event conform_await(struct conform *c, enum engine_event_kind kind, uint64_t job);

#define CONFORM_CASES(X)                                                                           \
    X(ready, "sync tells the machines, then READY")                                                \
    X(caps, "a verb is missing only where the capability is")                                      \
    X(exit_codes, "a program's exit code is told")                                                 \
    X(once, "a task that is started twice runs once")                                              \
    X(not_again, "a task that has ended is not started again under its id")                        \
    X(failed, "a start that fails says so, and nothing ran")                                       \
    X(stop, "stop ends it by TERM and says why")                                                   \
    X(stop_hard, "who ignores TERM is killed after the grace")                                     \
    X(stop_at_once, "a stop without grace kills at once")                                          \
    X(hurry, "a second stop with less grace hurries it")                                           \
    X(signals, "a signal reaches the program")                                                     \
    X(pause, "a paused task makes no progress and goes on after resume")                           \
    X(stop_paused, "a paused task can be stopped")                                                 \
    X(pause_again, "pausing what is paused and resuming what runs do nothing")                     \
    X(unknown, "verbs for tasks that nobody knows are harmless")                                   \
    X(time_limit, "its time over, it is ended and the reason told")                                \
    X(told_again, "an end is told again after each sync until it is forgotten")                    \
    X(forget, "forgetting twice is the same as once")                                              \
    X(forget_living, "what lives is not forgotten")                                                \
    X(sync_living, "sync tells what runs and what is paused, and changes nothing")                 \
    X(side_by_side, "tasks live side by side, and each end is told once")
#define X(id, name) void conform_##id(struct conform *c);
CONFORM_CASES(X)
#undef X

#endif
