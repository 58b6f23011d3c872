/* end - why a task ended, when it is not simply its exit code. */
#ifndef NS_ENGINE_END_H
#define NS_ENGINE_END_H

#include "base/str.h"

/* id, name, what a person reads */
#define TASK_ENDS(X)                                                                               \
    X(EXITED, "exited", "its program ended")                                                       \
    X(STOPPED, "stopped", "it was told to stop")                                                   \
    X(TIME_LIMIT, "time_limit", "its time was over")                                               \
    X(MEMORY, "out_of_memory", "it used more memory than it asked for")                            \
    X(DISK, "out_of_disk", "its scratch space was full")                                           \
    X(PROCESSES, "out_of_processes", "it reached its limit of processes")                          \
    X(OUTPUT, "too_much_output", "its output grew past its bound on the disk")                     \
    X(LOST, "lost", "its machine or its supervisor went away under it")                            \
    X(REMOVED, "removed",                                                                          \
      "it was removed, by whoever made it or by a drain") /* what we did not make */
enum task_end {
#define X(id, name, text) END_##id,
    TASK_ENDS(X)
#undef X
    TASK_END_COUNT
};
const char *task_end_name(enum task_end w);
const char *task_end_text(enum task_end w);
bool task_end_parse(struct str name, enum task_end *out);

#endif
