/* ask - asks nightshift-signin, or another program, one process for each question, without waiting for it.
 *
 * PAM, directories, providers and mail servers block and their libraries are large: they stay in those programs.
 * It is our child, or somebody else's behind a socket where it needs root and we have none.
 * Here is a queue of it: so many at once, so many waiting, more is refused (ERR_UNAVAILABLE).  A
 * child that takes too long is killed.  The question is kept in memory of its own that is wiped as
 * soon as it is written; so is the answer's text once it was told.
 */
#ifndef NS_AUTH_ASK_H
#define NS_AUTH_ASK_H

#include "base/json.h"
#include "sys/log.h"
#include "sys/loop.h"

#define ASK_AT_ONCE 4
#define ASK_WAITING 64
#define ASK_MS 20000

struct ask;
struct ask_call;

/* On the loop, once, never from within ask_start.  why is NULL when the answer is "ok"; else its
 * field is the answer's reason.  answer is NULL when there was none (the program failed), and valid
 * until the function returns.  It may start and cancel others, not free the one who asks. */
typedef void ask_done_fn(void *ctx, const struct json *answer, const struct err *why);

/* argv ends with NULL and is borrowed. */
struct ask *ask_new(struct loop *l, struct log *log, const char *const *argv);
/* Who listens at that path starts the program for each connection.  The path is borrowed. */
struct ask *ask_new_socket(struct loop *l, struct log *log, const char *path);
/* What is asked, when it is not nightshift-signin; borrowed.  Before the first question. */
struct ask_program {
    const char *name, *event; /* event: of the log, when it fails */
    const char *failure,
        *busy; /* what people read: "… does not work at the moment", "too many …" */
    size_t at_once, request_max;
};
void ask_set_program(struct ask *a, const struct ask_program *p);
void ask_set_patience(struct ask *a, uint64_t ms); /* of those started from now on */
struct ask *ask_free(struct ask *a);               /* cancels all; NULL ok; returns NULL */
void ask_free_p(struct ask **a);

/* The request is copied; wiping the caller's own is the caller's business. */
struct ask_call *ask_start(struct ask *a, struct str request, ask_done_fn *fn, void *ctx,
                           struct err *e);
/* It is not told any more; NULL ok.  Not after it was told. */
void ask_cancel(struct ask_call *c);

#endif
