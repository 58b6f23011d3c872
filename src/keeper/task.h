/* task - the life of one task on this machine, from a start request to its result.
 *
 *   queued -> preparing -> starting -> running -> ending -> ended
 *
 * Everything that must outlive the keeper is in files (taskfile.h) before it takes effect, so the
 * keeper may be killed between any two lines here and the next one goes on: task_recover.  A task
 * never runs twice at once: the lock on its status file is taken before its process is made, and
 * kept by it.
 */
#ifndef NS_KEEPER_TASK_H
#define NS_KEEPER_TASK_H

#include "keeper/env.h"
#include "keeper/request.h"

enum task_state {
    TASK_QUEUED,    /* waits for its turn to start; nothing is written */
    TASK_PREPARING, /* its image and network are being made */
    TASK_STARTING,  /* its process is there, its program not yet */
    TASK_RUNNING,   /* paused or not */
    TASK_ENDING,    /* what is left of it is being cleared */
    TASK_ENDED,     /* until it is forgotten */
    TASK_GONE,      /* its start failed, or it was forgotten */
};

/* `line` is the request as it came; the task keeps a copy. */
struct task *task_new(struct env *env, struct str line, const struct start *s);

/* From STATE/tasks/<name>; NULL when nothing is to be known about it any more (what was left of it
 * is removed).  Living tasks are watched from here on, ended ones are told by task_tell. */
struct task *task_recover(struct env *env, const char *name);

/* Is only its log left?  Most are, and there may be a hundred thousand: a look is all they cost. */
bool task_is_log(int tasks_fd, const char *name);

struct task *task_free(struct task *t); /* NULL ok; returns NULL; its processes go on */

const char *task_name(const struct task *t);
enum task_state task_state(const struct task *t);
void task_adopt_net(struct task *t);   /* the network that an earlier keeper gave it */
bool task_alive(const struct task *t); /* it has, or may have, processes */

void task_begin(struct task *t); /* a queued one: its turn has come */
void task_stop(struct task *t, enum task_end why, uint64_t grace_ms);
void task_signal(struct task *t, int signo);
void task_pause(struct task *t);
void task_resume(struct task *t);
void task_forget(struct task *t, bool log_too); /* an ended one; others are left alone */
void task_forget_again(struct task *t);         /* one whose files could not be removed then */
void task_look(struct task *t);                 /* now and then: does its output stay in bounds? */
void task_tell(struct task *t);                 /* for sync: where it is now */

/* Of a task nobody knows: what may lie around. */
void task_forget_files(struct env *env, const char *name, bool log_too);

#endif
