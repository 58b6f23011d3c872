/* exec_state - what exec.c (the life of a command) and exec_bytes.c (what goes in and out) share. */
#ifndef NS_KUBE_EXEC_STATE_H
#define NS_KUBE_EXEC_STATE_H

#include "kube/exec.h"
#include "kube/state.h"
#include "kube/websocket.h"

#define EXEC_HELD_MAX ((size_t)256 << 10) /* waiting for the slower side, each way */
#define EXEC_STATUS_MAX ((size_t)64 << 10)
#define EXEC_PIECE 16384u /* bytes in one go */

enum exec_phase {
    EXEC_WAITING,    /* for a credential */
    EXEC_CONNECTING, /* libcurl: TCP and TLS */
    EXEC_GREETING,   /* our request is out */
    EXEC_OPEN,
    EXEC_DRAINING, /* nothing more comes; the caller has not taken everything yet */
    EXEC_OVER      /* to be told and freed */
};

struct kube_exec {
    struct kube_transfer t; /* first: libcurl gives it back */
    TAILQ_ENTRY(kube_exec) link;
    struct kube_client *client;
    struct kube_multi *multi; /* of its own: libcurl lends no connection to two */
    kube_exec_fn *on_end;
    void *ctx;
    char *path, *bearer;
    uint64_t version;
    enum exec_phase phase;
    int fd; /* our end of the pair */
    struct loop_watch *near, *far, *tick;
    struct buf in, to_caller, to_server, complaints, status;
    /* OpenSSL wants what it could not send in one go again, in the same place. */
    char pending[EXEC_PIECE];
    size_t pending_n;
    int channel; /* of the message that goes on; -1: its first byte comes */
    int64_t heard_ns, pinged_ns, began_ns;
    int exit_code;
    struct err why;
    bool v5, no_input, input_ended, retried, has_status;
};

void exec_fail(struct kube_exec *x); /* x->why says it */
void exec_over(struct kube_exec *x);

/* The server has nothing more to say: what did the command come to? */
void exec_conclude(struct kube_exec *x);

/* The server answered 401 and there is a newer token: true, and it begins again. */
bool exec_again(struct kube_exec *x, int status);

/* Moves what can be moved and says what to wait for. */
void exec_pump(struct kube_exec *x);
void exec_tick(void *ctx); /* now and then, while it is connected */

#endif
