/* request - one line from the daemon as checked values.
 *
 * The daemon is trusted to decide who may run what, and nothing more: every field is bounded, every
 * path is absolute and plain, every name is a name, and a request that was read can be acted on
 * without looking again.  An error names the field.  Unknown fields are refused: a keeper and a
 * daemon that do not agree must not guess.
 */
#ifndef NS_KEEPER_REQUEST_H
#define NS_KEEPER_REQUEST_H

#include "base/arena.h"
#include "engine/engine.h"
#include "wire/keeper.h"

#define REQUEST_ARGS_MAX 4096
#define REQUEST_ENV_MAX 2048
#define REQUEST_VOLUMES_MAX 64
#define REQUEST_GPUS_MAX 64
#define REQUEST_GROUPS_MAX 1024
#define REQUEST_PATH_MAX 1024
#define REQUEST_FOLDERS_MAX 256 /* that volumes may come from, or may not */
#define TASK_NAME_MAX 48        /* of "17.1.0", without the NUL */

struct start_volume {
    const char *from, *to;
    bool read_only;
};

struct start_gpu {
    uint32_t index, milli;
    const char *uuid;
};

/* Strings are NUL-terminated, lists end with NULL, and all live in the arena. */
struct start {
    const char *task, *tenant;
    struct engine_user user; /* its strings are NUL-terminated too */
    const char *const *argv;
    const char *const *env;
    uint32_t n_argv, n_env;
    const char *home_else; /* what there is instead where the home is not; NULL: nothing */
    const char *workdir, *image;
    bool workdir_given; /* else it is the home */
    const char *cwd;    /* where its user was: instead of the home, when it is there inside */
    enum spec_network network;
    bool tty, has_stdin;
    uint64_t cpu_milli, mem_mib, pids_max, scratch_mib, log_bytes; /* 0: not limited, default */
    uint64_t max_time_ms, grace_ms;
    struct start_gpu gpu[REQUEST_GPUS_MAX];
    struct start_volume volume[REQUEST_VOLUMES_MAX];
    uint32_t n_gpus, n_volumes;
    const char *const *volumes_allow, *const *volumes_deny; /* folders, as the site says */
};

struct keeper_request {
    enum keeper_verb verb;
    const char *task;          /* all but sync and ping */
    const struct start *start; /* start */
    uint64_t grace_ms;         /* stop */
    enum task_end why;         /* stop */
    int signo;                 /* signal */
};

int request_read(struct str line, struct arena *a, struct keeper_request *out, struct err *e)
    MUST_USE;

/* Whose start it is that could not be read; NULL when even that is not clear, or it is no start. */
const char *request_start_task(struct str line, struct arena *a);

/* s->env with those of the list that nobody has set, copied into `a`. */
void start_add_env(struct start *s, const char *const *env, size_t n, struct arena *a);

bool task_name_valid(struct str name); /* three numbers with points between them */

#endif
