/* tool - a helper program run on the loop: its output is kept within a bound, its time is limited.
 *
 * stdout and stderr go into memory files of TOOL_OUT_MAX bytes each; what a program writes beyond
 * that is refused to it, so it cannot fill the machine.  It runs in a group of its own and all of
 * the group is killed when its time is over.
 */
#ifndef NS_KEEPER_TOOL_H
#define NS_KEEPER_TOOL_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "keeper/confine.h"
#include "sys/loop.h"
#include "sys/process.h"

#define TOOL_OUT_MAX (256u << 10)

struct tool;

/* What a program that reads what strangers send is left with. */
struct tool_jail {
    uint32_t uid, gid;
    const char *groups;      /* "1001,1002"; NULL: none */
    const char *keep;        /* capabilities of a uid 0: "+dac_override"; NULL: none */
    bool no_network;         /* its own, in which there is nothing */
    const char *from, *onto; /* a folder that it sees there too, whoever may reach it; NULL: none */
};

struct tool_spec {
    const char *const *argv; /* ends with NULL */
    const char *const *env;  /* ends with NULL; NULL: ours */
    int in_fd;               /* its stdin, stays the caller's; PROCESS_NO_FD: /dev/null */
    uint64_t timeout_ms;
    const struct tool_jail *jail; /* NULL: as we are; needs ends_with_us */
    const struct confine
        *confine;      /* NULL: it sees what we see; else argv[0] is a path, there is no jail */
    bool ends_with_us; /* when we die it is killed, even if we die while it starts */
};

struct tool_result {
    struct process_exit how;
    bool late;           /* it was killed because its time was over */
    struct str out, err; /* borrowed for the call */
};
typedef void tool_done_fn(void *ctx, const struct tool_result *r);

/* fn is called once, on the loop; the tool is gone after it. */
struct tool *tool_run(struct loop *l, const struct tool_spec *spec, tool_done_fn *fn, void *ctx,
                      struct err *e);
int tool_pid(const struct tool *t);
void tool_kill(struct tool *t);         /* fn is called, soon */
struct tool *tool_stop(struct tool *t); /* kills it, fn is not called; NULL ok; returns NULL */

/* For start-up: waits for the end.  stdout and stderr together replace *out. */
int tool_wait(const char *const *argv, uint64_t timeout_ms, struct buf *out,
              struct process_exit *out_how, struct err *e) MUST_USE;

#define TOOL_PATH_MAX 512

/* The program's full path, from `dirs` (ends with NULL) or, with NULL, from PATH and the usual
 * folders.  -1 with a hint that names the Debian package. */
int tool_find(const char *name, const char *const *dirs, const char *package,
              char out_path[static TOOL_PATH_MAX], struct err *e) MUST_USE;

/* The libraries of a program and how they are found: files, ends with NULL, in `a`.  None when it needs
 * none.  Waits for its end; the program is not run. */
int tool_libraries(const char *program, struct arena *a, const char *const **out, struct err *e)
    MUST_USE;

#endif
