/* life - the inside of struct task, shared by task.c, launch.c, watch.c and finish.c only. */
#ifndef NS_KEEPER_LIFE_H
#define NS_KEEPER_LIFE_H

#include "keeper/bundle.h"
#include "keeper/spawn.h"
#include "keeper/task.h"
#include "keeper/taskfile.h"
#include "wire/stream.h"

#define LIFE_PATH_MAX 320

struct task {
    struct env *env;
    struct task *next; /* these two are registry.c's */
    size_t slot;
    char name[TASK_NAME_MAX + 1];
    char dir[LIFE_PATH_MAX], run[LIFE_PATH_MAX]; /* STATE/tasks/T, RUN/tasks/T */
    enum task_state state;
    bool has_slot;

    struct arena arena;
    char *line; /* the request; until it is written */
    struct start *start;

    int64_t began_ms; /* when its process was made */
    int64_t started_ms;
    struct task_notes notes;
    struct task_result result;
    struct err failed; /* why nothing ran; code ERR_NONE: no reason seen */

    /* launch.c */
    struct image_want *image_want;
    bool net_wanted, own_rootfs; /* own_rootfs: an image's overlay is mounted */
    char netns[LIFE_PATH_MAX], address[16], scratch[SCRATCH_PATH_MAX];
    char digest[80];
    struct bundle_begin begin,
        begin_else;        /* where it begins; and where else, when that is missing */
    int status_fd;         /* locked, from the beginning until the child has it; else -1 */
    int64_t start_by_ms;   /* starting: when to give up */
    int64_t turn_until_ms; /* and how long others wait for it */

    /* the child of ours that became crun; pid 0: another keeper's, or it has ended */
    struct spawn_want *spawn;
    struct spawned child;
    struct loop_watch *child_watch;

    /* watch.c: the connection to nightshift-init, -1: none */
    int ctl;
    struct loop_watch *ctl_watch;
    struct stream_decoder decoder;
    bool exit_seen;
    struct stream_exit exit;

    int oom_fd;
    struct loop_watch *oom_watch;
    struct loop_watch *timer;
    unsigned oom_looks; /* how often still to look whether the kernel killed for want of memory */
    bool killed, killed_again, pause_told;
    bool forgets, purges;  /* it was to be, and its files could not be removed */
    unsigned freeze_looks; /* how often it was not all frozen yet */
    int64_t end_since_ms;  /* ending: since when; 0: not yet */
    unsigned tries;
    bool abandoned; /* its child, which never became a program, cannot even die */
};

static inline int64_t life_now(const struct task *t)
{
    return clock_now_ms(&t->env->clock);
}

/* launch.c */
int launch_paths(struct task *t, struct err *e) MUST_USE;
int launch_write(struct task *t, struct err *e) MUST_USE; /* its files, and the lock */
void launch_begin(struct task *t);
void launch_cancel(struct task *t);   /* what it waits for is not wanted any more */
int launch_init_copy(struct task *t); /* nightshift-init, sealed; the env's own; -1: by its path */

/* watch.c */
int watch_connect(struct task *t, struct err *e) MUST_USE;
int watch_signal(struct task *t, int signo); /* -1: there is nobody to tell */
void watch_close(struct task *t);
void watch_child(struct task *t);
void watch_oom(struct task *t);

/* finish.c */
void finish_begin(struct task *t); /* its program is over, or never began */
void finish_step(struct task *t);  /* on the timer, while ending */
void finish_clear(struct task *t); /* all that is outside STATE/tasks/T; idempotent */
void finish_failed(struct task *t, const struct err *e);

/* task.c */
void life_started(struct task *t, int64_t t_ms);
void life_kill(struct task *t); /* at once, everything */
void life_arm(struct task *t);  /* the timer, to what comes next */
void life_slot_done(struct task *t);
bool life_composes(struct task *t,
                   struct err *e); /* is its child no program yet?  e: what it waits for */
int life_note(struct task *t, const struct buf *line);
int life_pid(const struct task *t); /* nightshift-init's, in our numbers; 0: not known */

#endif
