/* sim - an engine that runs nothing: tasks live in a time that is given to it, by a script.
 *
 * For tests and demonstrations.  It keeps the promises of engine.h to the letter, so whoever drives
 * it cannot tell it from a real one but by the word `simulated` in its machines.  Nothing happens
 * within a verb: events come out of engine_sim_step, in the order of their times.  The same seed
 * and the same calls give the same events.  The engine outlives whoever listens, as a keeper does.
 *
 * What a task does is told by its argv (true, false, sleep SECONDS; anything else runs for a second)
 * and by variables of its environment, see SIM_WORDS.  NAME_2 is for replica 2 alone and wins.  What
 * others made runs until it is told to end.
 */
#ifndef NS_ENGINE_SIM_SIM_H
#define NS_ENGINE_SIM_SIM_H

#include "engine/engine.h"

/* id, variable, default, meaning; -1: never */
#define SIM_WORDS(X)                                                                               \
    X(RUN_MS, "SIM_RUN_MS", 1000, "it ends by itself after so long")                               \
    X(EXIT, "SIM_EXIT", 0, "with this code")                                                       \
    X(SIGNAL, "SIM_SIGNAL", 0, "or by this signal")                                                \
    X(START_MS, "SIM_START_MS", -1, "its start takes so long (else the site's time)")              \
    X(START_FAILS, "SIM_START_FAILS", 0, "1: the start fails")                                     \
    X(LOST_MS, "SIM_LOST_MS", -1, "its supervisor goes away under it")                             \
    X(OOM_MS, "SIM_OOM_MS", -1, "it uses too much memory")                                         \
    X(TERM_MS, "SIM_TERM_MS", 0, "after SIGTERM it takes so long; -1: it ignores it")              \
    X(TERM_EXIT, "SIM_TERM_EXIT", -1, "and ends with this code, else by the signal")               \
    X(SAVE_MS, "SIM_SAVE_MS", -1, "after its freeze signal it saves itself for so long")           \
    X(SAVE_EXIT, "SIM_SAVE_EXIT", 85, "and ends with this code")                                   \
    X(PAUSE_MS, "SIM_PAUSE_MS", 0, "standing still takes so long")
enum sim_word {
#define X(id, name, dflt, help) SIM_##id,
    SIM_WORDS(X)
#undef X
    SIM_WORD_COUNT
};
const char *sim_word_name(enum sim_word w);
const char *sim_word_help(enum sim_word w);

struct sim_node {
    const char *name, *model;
    uint32_t gpus, gpu_mem_mib, cpu_milli, mem_mib;
};

struct sim_config {
    const struct sim_node *node; /* copied; names too */
    uint32_t nodes;
    int64_t now_ms;
    uint64_t seed;
    uint32_t start_least_ms, start_most_ms; /* a start takes between these */
    uint32_t fail_permille, lose_permille;  /* of the starts, of the tasks: by the seed */
    bool lacks[ENGINE_CAP_COUNT];           /* what it is to be without */
    const char *logs; /* borrowed: of a folder each task, for whoever writes there; NULL: no logs */
    engine_sink_fn *sink; /* NULL: nobody listens yet */
    void *ctx;
};

struct engine engine_sim_new(const struct sim_config *c);

/* Tells what is due up to now_ms.  Time that goes back stands still. */
void engine_sim_step(struct engine *en, int64_t now_ms);
/* When something is due next; false: nothing is. */
bool engine_sim_next(const struct engine *en, int64_t *out_ms);

/* Somebody else listens, or with NULL nobody: what is due meanwhile is told to no one. */
void engine_sim_listen(struct engine *en, engine_sink_fn *sink, void *ctx);

/* The connection breaks (AWAY; verbs are lost) and is there again (all is told anew). */
void engine_sim_away(struct engine *en, bool away);
/* The supervisor of a task goes away under it. */
void engine_sim_lose(struct engine *en, struct task_id t);

/* ---- looking ---- */

struct sim_counts {
    uint64_t starts;     /* programs that began */
    uint64_t twice;      /* tasks that began again under the same id: must stay 0 */
    uint64_t overlaps;   /* replicas that ran twice at once: must stay 0 */
    uint64_t overbooked; /* GPUs that were given out beyond the whole: must stay 0 */
    size_t alive, ended; /* tasks now: with processes, and not forgotten yet */
};
struct sim_counts engine_sim_counts(const struct engine *en);

/* What the task was started with; NULL when it is not known (any more). */
struct sim_task_view {
    bool running, paused, ended;
    int64_t max_time_ms;
    uint32_t uid, gid;
    const char *home;
    const char *const *env; /* the daemon's */
};
bool engine_sim_look(const struct engine *en, struct task_id t, struct sim_task_view *out);

#endif
