/* loop - the one event loop of a program: timers, signals, descriptors, wake-ups (libuv).
 *
 * Everything runs on the thread in loop_run; loop_wakeup_send is the only call another thread may
 * make.  A watch belongs to its loop: loop_unwatch ends it at any time, also from its own callback,
 * and its callback never runs again; what is left goes with loop_free.
 */
#ifndef NS_SYS_LOOP_H
#define NS_SYS_LOOP_H

#include "base/err.h"

struct loop;
struct loop_watch;
struct uv_loop_s;

enum {
    LOOP_READ = 1,
    LOOP_WRITE = 2
};

typedef void loop_fn(void *ctx);
typedef void loop_fd_fn(void *ctx, unsigned events);

struct loop *loop_new(void);
struct loop *loop_free(struct loop *l); /* NULL ok; returns NULL */
void loop_free_p(struct loop **l);
void loop_run(struct loop *l); /* until loop_stop, or until nothing is left to wait for */
void loop_stop(struct loop *l);

/* A timer is silent until set; setting it again starts it anew.  repeat_ms 0: once. */
struct loop_watch *loop_timer(struct loop *l, loop_fn *fn, void *ctx);
void loop_timer_set(struct loop_watch *timer, uint64_t after_ms, uint64_t repeat_ms);
void loop_timer_clear(struct loop_watch *timer);

struct loop_watch *loop_signal(struct loop *l, int signo, loop_fn *fn, void *ctx, struct err *e);

/* Several sends before the loop comes round are one call. */
struct loop_watch *loop_wakeup(struct loop *l, loop_fn *fn, void *ctx);
void loop_wakeup_send(struct loop_watch *wakeup); /* from any thread */

/* The descriptor stays the caller's: unwatch it, then close it.  Events 0 pauses. */
struct loop_watch *loop_fd(struct loop *l, int fd, loop_fd_fn *fn, void *ctx, struct err *e);
int loop_fd_set(struct loop_watch *watch, unsigned events, struct err *e) MUST_USE;

struct loop_watch *loop_unwatch(struct loop_watch *w); /* NULL ok; returns NULL */

/* For what else is built on libuv in this folder. */
struct uv_loop_s *loop_uv(struct loop *l);

#endif
