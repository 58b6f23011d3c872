/* state - what the files of the engine share; nobody outside includes it. */
#ifndef NS_ENGINE_KUBE_STATE_H
#define NS_ENGINE_KUBE_STATE_H

#include "engine/kube/kube.h"
#include "engine/kube/parts.h"
#include "kube/client.h"
#include "kube/config.h"
#include "kube/watch.h"
#include "sys/clock.h"
#include "wire/joblog.h"

struct kube {
    struct kube_engine_config config;
    struct kube_client *client;
    struct kube_watch *nodes, *pods;
    bool caps[ENGINE_CAP_COUNT];
    bool nodes_synced, pods_synced; /* what is known is whole */
    bool ready_wanted, is_ready;    /* READY is to be told; was told since the last AWAY */
    struct machines machines;
    struct classes classes;
    struct tasks tasks;
    struct gangs gangs;
    struct seen_pods pods_seen;
    struct names devices; /* texts of what pods ask for: see devices.h; number 0: nothing */
    uint64_t pod_list;
    struct spaces spaces;
    struct lease lease;
    struct errands errands;
    struct copies copies;
    struct loop_watch *tick, *soon;
    struct arena texts; /* of the config */
};

/* kube.c */
int64_t kube_now_ms(const struct kube *k);
void kube_soon(struct kube *k); /* what is dirty is told at the end of this round of the loop */
void kube_tell(struct kube *k, const struct engine_event *ev);
void kube_check_ready(struct kube *k); /* what is known, or whether we decide, has changed */

/* machines.c */
void machines_list(struct kube *k);
void machines_object(struct kube *k, enum kube_change what, const struct json *node);
void machines_synced(struct kube *k);
void machines_tell(struct kube *k, bool all); /* those that changed, or all */
uint32_t machines_number(struct kube *k, const char *name);
void machines_load(struct kube *k, uint32_t machine, const struct load *l, bool add);
/* A pod that asks for so many GPUs asks for devices: machines have them as those. */
bool machines_share_gpus(struct kube *k, uint64_t gpus);
void machines_lend(struct kube *k, struct str node, bool is_ours);
void machines_tick(struct kube *k); /* those that are away for too long */
void machines_free(struct kube *k);

/* classes.c */
void classes_init(struct kube *k);
void classes_know(struct kube *k, const struct where *w); /* what it looks at counts from now on */
void classes_place(struct kube *k, struct machine *m);    /* into its class */
void classes_leave(struct kube *k, struct machine *m);
void classes_traits(const struct kube *k, const struct where *w, struct buf *out);
void classes_tell_own(struct kube *k, bool again);
void classes_free(struct kube *k);

/* pods.c */
/* What a pod takes; -1: it asks for something that nobody counts here, with the reason. */
int pods_load(struct kube *k, const struct kube_pod *p, struct load *out, struct err *e) MUST_USE;
uint64_t pods_devices(struct kube *k, struct str text); /* its number */
void pods_list(struct kube *k);
void pods_object(struct kube *k, enum kube_change what, const struct json *pod);
void pods_synced(struct kube *k);
struct seen_pod *pods_find(const struct kube *k, const char *uid); /* NULL: it is not there */
void pods_count_again(struct kube *k, struct seen_pod *s);         /* it is nobody's task */
void pods_released(struct kube *k,
                   const char *uid); /* of a task that is over: it may be told of still */
bool pods_anothers(const struct kube *k, const struct kube_pod *p); /* another daemon made it */
void pods_free(struct kube *k);

/* tasks.c */
struct task *tasks_find(const struct kube *k, struct task_id t);
struct task *tasks_add(struct kube *k, struct task_id t, const char *space, const char *pod);
void tasks_drop(struct kube *k, struct task *t);
void tasks_tell_all(struct kube *k);
void tasks_tick(struct kube *k);
void tasks_step_all(struct kube *k);             /* what waited until we decide again */
void tasks_step(struct kube *k, struct task *t); /* does what is next */
void tasks_init(struct kube *k);
void tasks_free(struct kube *k);
int tasks_start(struct kube *k, const struct engine_start *s, struct err *e) MUST_USE;
struct task_stop {
    bool freeze;
    int64_t grace_ms;
    enum task_end why;
};
void tasks_stop(struct kube *k, struct task *t, const struct task_stop *s);
void tasks_forget(struct kube *k, struct task *t);

/* around.c: what a job needs beside its pods */
void around_make(struct kube *k, const struct engine_start *s, const char *space);
void around_remove(struct kube *k, const struct task *t);

/* errands.c: requests that are repeated until they are answered */
bool reply_is_passing(const struct kube_reply *r); /* it may be otherwise when asked again */
int64_t reply_wait_ms(const struct kube_reply *r, uint32_t tries);
typedef void errand_fn(void *ctx, const struct kube_reply *r);
struct errand_of {
    const char *method, *path;
    const char *space; /* of a tenant: it may not be there yet; NULL: of none */
    struct str body;
    errand_fn *fn; /* the answer; NULL: a bad one is logged */
    void *ctx;
};
struct errand *errand_send(struct kube *k, const struct errand_of *of); /* gone when answered */
bool errand_take_back(struct errand *x); /* false: it is on its way, and will be answered */
void errands_tick(struct kube *k);
void errands_free(struct kube *k);

/* copies.c: of living jobs, for when the store is lost */
void copies_init(struct kube *k);
void copies_keep(struct kube *k, uint64_t job);       /* it has changed, or is over */
bool copies_busy(const struct kube *k, uint64_t job); /* what it has become is not there yet */
bool copies_known(const struct kube *k);              /* those of an earlier life */
const char *copies_text(const struct kube *k, size_t i, uint64_t *out_job); /* NULL: was told */
void copies_told(struct kube *k, uint64_t job);
void copies_tick(struct kube *k);
void copies_free(struct kube *k);

/* kept.c: what pods and copies of an earlier life say of their jobs */
void kept_note(struct task *t, const struct kube_pod *p);
void kept_tell(struct kube *k);
struct kept *kept_free(struct kept *p); /* NULL ok */

void task_set_text(char **at, const char *text);
void task_reach_bound(struct task *t);
void task_tell_started(struct kube *k, struct task *t);
void task_tell_started_soon(struct kube *k, struct task *t); /* with others; once */
void task_tell_progress(struct kube *k, struct task *t, const char *text);
void task_ended(struct kube *k, struct task *t, enum task_end why, int code, int signo);
/* Nothing of it ran.  What there is of its pod goes; a start of the same task may come again. */
void task_fail(struct kube *k, struct task *t, enum err_code code, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* task_pod.c */
void tasks_pod(struct kube *k, struct task *t, const struct kube_pod *p); /* its pod is so now */
void tasks_pod_gone(struct kube *k, struct task *t);
enum task_end task_unasked(const struct task *t); /* its pod went, and not by us */
void tasks_lost(struct kube *k, struct task *t);  /* its machine went away */

/* gangs.c */
enum gangs_which {
    GANGS_CHANGED,
    GANGS_PLACED, /* of which something is bound */
    GANGS_ALL
};
void gangs_pod(struct kube *k, struct seen_pod *s, const struct kube_pod *p);
void gangs_pod_over(struct kube *k, struct seen_pod *s, const struct kube_pod *p);
void gangs_pod_gone(struct kube *k, struct seen_pod *s);
void gangs_tell(struct kube *k, enum gangs_which which);
int gangs_start(struct kube *k, const struct engine_start *s, struct err *e) MUST_USE;
void gangs_narrow(struct kube *k, struct seen_pod *s, const struct where *volume);
void gangs_changed(struct seen_pod *s); /* what is known of its claims */
void gangs_free(struct kube *k);
struct gang *gangs_find(const struct kube *k, struct str ref); /* NULL: there is none */
struct gang *gangs_add(struct kube *k, struct str ref, const char *space);
struct member *gangs_member(struct gang *g, const struct seen_pod *s);
bool gangs_is_free(const struct member *m); /* it has no machine */
size_t gangs_free_members(const struct gang *g);
bool gangs_give(struct gang *g, struct task *t); /* one of them; false: there is none */
bool gangs_has_tasks(const struct gang *g);      /* whose end is not written down */
void gangs_set_dirty(struct gang *g);

/* sizes.c, words.c */
void gangs_look_for_size(struct gang *g);
void gangs_word(struct kube *k, struct str ref, const struct engine_word *w);

/* owners.c: taking a gang back, and giving it its place again */
bool owners_take(struct gang *g); /* true: its tasks are not to be evicted, or not yet */
/* It is to start with so many: true when it has to wait for its pods. */
bool owners_wait(struct gang *g, uint32_t replicas);
/* One that we suspended in an earlier life, maybe; NULL: such a gang cannot be suspended. */
struct gang *owners_expect(struct kube *k, struct str ref);
void owners_await(struct kube *k, struct str ref); /* somebody still counts on it */
bool owners_keep(struct gang *g);                  /* it has no pods, and is not gone */
void owners_settle(struct gang *g);                /* before it is offered */
void owners_pod(struct gang *g);                   /* another pod of it is there */
void owners_leave(struct gang *g);                 /* nobody wants it back */
void owners_tick(struct kube *k);

/* budgets.c */
enum budgets_say {
    BUDGETS_YES,
    BUDGETS_NO,      /* with the reason */
    BUDGETS_UNKNOWN, /* we may not ask: the server does, when a pod is evicted */
    BUDGETS_LATER    /* it did not answer */
};
typedef void budgets_fn(struct gang *g, enum budgets_say say, const char *why);
struct budgets *budgets_ask(struct gang *g, budgets_fn *fn);
struct budgets *budgets_free(struct budgets *b); /* NULL ok */

/* claims.c: where a pod's volumes let it go */
struct claims *claims_new(struct kube *k, struct seen_pod *s, const struct kube_pod *p);
void claims_look(struct claims *c);                 /* goes on, when it is time to */
bool claims_known(const struct claims *c);          /* NULL ok: there is nothing to know */
const char *claims_problem(const struct claims *c); /* NULL: none so far */
/* Those that wait to be told their machine, from 0; NULL: there are no more. */
const char *claims_late(const struct claims *c, uint32_t i);
struct claims *claims_free(struct claims *c); /* NULL ok */

/* follow.c: a task's output, from the API server into its log */
struct follow *follow_new(struct kube *k, const struct task *t);
bool follow_over(const struct follow *f);     /* all of it has come */
void follow_end_soon(struct follow *f);       /* its program has ended */
struct follow *follow_free(struct follow *f); /* NULL ok */

/* stream.c */
int stream_open(struct kube *k, const struct task *t, struct err *e) MUST_USE;
int stream_signal(struct kube *k, const struct task *t, int signo, struct err *e) MUST_USE;

/* lease.c */
void lease_tick(struct kube *k);
void lease_free(struct kube *k);

/* spaces.c */
void space_of(const struct kube *k, struct str tenant, char out[static SPACE_MAX]);
struct str space_tenant(const struct kube *k, const char *space); /* empty: nobody's */
bool space_applied(const struct kube *k, const char *space);      /* what pods need is there */
int spaces_tenant(struct kube *k, const struct engine_tenant *t, struct err *e) MUST_USE;
void spaces_tick(struct kube *k);
void spaces_free(struct kube *k);

#endif
