/* process - child processes: started on the loop, or run to the end at once.
 *
 * A child gets exactly the three descriptors it is given: every other one of ours is opened
 * close-on-exec, here and everywhere.  argv[0] is looked up in PATH.
 */
#ifndef NS_SYS_PROCESS_H
#define NS_SYS_PROCESS_H

#include "base/buf.h"
#include "sys/loop.h"

struct process;

struct process_exit {
    int code;   /* when signal is 0 */
    int signal; /* what killed it, or 0 */
};

struct process_spec {
    const char *const *argv; /* ends with NULL */
    const char *const *env;  /* ends with NULL; NULL: ours */
    const char *cwd;         /* NULL: ours */
    int fd[3];               /* its stdin, stdout, stderr; PROCESS_NO_FD: /dev/null */
    bool new_group;          /* a session and process group of its own */
};

#define PROCESS_NO_FD (-1)

typedef void process_exit_fn(void *ctx, const struct process_exit *how);

/* on_exit runs on the loop, once.  The process may be freed in it. */
struct process *process_spawn(struct loop *l, const struct process_spec *spec,
                              process_exit_fn *on_exit, void *ctx, struct err *e);

/* A child of ours that was forked elsewhere: it is watched and reaped here.  Takes the pidfd. */
struct process *process_watch(struct loop *l, int pid, int pidfd, process_exit_fn *on_exit,
                              void *ctx);
int process_pid(const struct process *p);

/* To the whole group when it has its own; nothing once it has exited. */
void process_kill(struct process *p, int signo);

/* Forgets it: a running child goes on, and is reaped, but on_exit is not called any more. */
struct process *process_free(struct process *p); /* NULL ok; returns NULL */

/* Runs argv with /dev/null as stdin and stderr and collects up to `limit` bytes of its stdout,
 * which replace *out.  Ends with the child, not with a grandchild that keeps the pipe.  Past the
 * limit or the time the group is killed.  Blocks: for start-up and command-line tools, never for
 * the loop. */
int process_capture(const char *const *argv, size_t limit, uint64_t timeout_ms, struct buf *out,
                    struct process_exit *out_exit, struct err *e) MUST_USE;

#endif
