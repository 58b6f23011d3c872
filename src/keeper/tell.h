/* tell - the keeper's events as lines of keeper.sock (wire/keeper.h). */
#ifndef NS_KEEPER_TELL_H
#define NS_KEEPER_TELL_H

#include "keeper/env.h"
#include "keeper/taskfile.h"

void tell_hello(const struct env *env, const bool caps[ENGINE_CAP_COUNT], const char *note);
void tell_node(const struct env *env);
void tell_started(const struct env *env, const char *task, int64_t t_ms, int pid);
void tell_failed(const struct env *env, const char *task, const struct err *e);
void tell_paused(const struct env *env, const char *task, bool paused, int64_t t_ms);
void tell_ended(const struct env *env, const char *task, const struct task_result *r);
void tell_walls(const struct env *env); /* nothing where there are no networks */
void tell_ready(const struct env *env);
void tell_pong(const struct env *env);

struct tell_progress {
    struct str text;
    uint64_t done, total; /* total 0: not known */
};
void tell_progress(const struct env *env, const char *task, const struct tell_progress *p);

/* A process that belongs to no living task. */
struct tell_leftover {
    int pid;
    const char *task; /* whose control group it is in; NULL: it only holds a GPU */
    const char *owner, *command;
    uint32_t uid;
    const char *gpu; /* uuid; NULL: none */
    bool ended;      /* we ended it */
};
void tell_leftover(const struct env *env, const struct tell_leftover *l);

#endif
