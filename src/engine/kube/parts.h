/* parts - what the engine keeps of a cluster: machines and their classes, tasks, pods, gangs, the lease. */
#ifndef NS_ENGINE_KUBE_PARTS_H
#define NS_ENGINE_KUBE_PARTS_H

#include "base/map.h"
#include "engine/kube/devices.h"
#include "engine/kube/kube.h"
#include "engine/kube/node_read.h"
#include "engine/kube/others.h"
#include "engine/kube/pod_read.h"
#include "engine/kube/where.h"
#include "kube/client.h"

/* ---- machines ---- */

struct machine {
    struct kube_node *node; /* NULL: it is gone, or only pods were seen so far */
    char *name;
    struct load others; /* pods that are not tasks of ours; their devices: */
    struct takens taken;
    uint32_t class; /* number in classes.texts */
    uint64_t seen;  /* the list in which it was */
    bool dirty;     /* it may have to be told of again */
    bool told;      /* it was, as what follows says */
    enum node_state state;
    struct event_node as;                  /* texts borrowed from `node`, or static */
    char *model, *traits, *pool, *devices; /* owned: what `as` was told with */
    int64_t away_since_ms;                 /* it is not ready since; 0: it is */
};

struct machines {
    struct machine **at;
    size_t n, cap;
    struct names names;          /* number in it is the place in `at` */
    uint64_t list;               /* the list that is being read */
    bool counted;                /* since one of them changed: */
    bool some_share, some_whole; /* GPUs, as devices or as such: see node_shares_gpus */
};

/* What is alike to every pod: see where.h. */
struct class_of {
    uint32_t nodes;
    uint32_t first; /* one of its machines */
    char name[16];
};
struct classes {
    struct label_keys keys;
    struct names texts;
    struct class_of *at;
    size_t cap;
    bool changed;          /* what pods may use has to be looked at again */
    struct where *own;     /* of jobs of ours */
    struct buf own_traits; /* as it was told */
    bool own_told;
};

/* ---- tasks ---- */

#define TASK_STEPS(X)                                                                              \
    X(MAKING)  /* its pod was asked for */                                                         \
    X(BINDING) /* its pod is there, and was asked to be put on its machine */                      \
    X(BOUND)   /* it is on its machine */                                                          \
    X(RUNNING)                                                                                     \
    X(ENDED)
enum task_step {
#define X(id) STEP_##id,
    TASK_STEPS(X)
#undef X
};

struct follow;

struct task {
    struct task_id id;
    enum task_step step;
    char space[SPACE_MAX], *pod, *uid, *node;
    struct gang *gang;   /* others made it; NULL: ours */
    struct buf document; /* of its pod, until that is there */
    bool busy;           /* a request is on its way */
    int64_t again_ms;    /* something is to be tried again then; 0: nothing */
    uint32_t tries;
    /* ending */
    bool stop, freeze, stop_sent;
    bool lost;    /* its machine is */
    bool gone;    /* its pod is no more, or will be soon */
    bool foreign; /* what has its pod's name is not ours, and is left alone */
    int64_t grace_ms;
    int64_t kill_ms; /* it is killed then, whatever the kubelet does; 0: not */
    enum task_end stop_why;
    struct {
        int code, signal;
        enum task_end why;
        int64_t t_ms;
    } end;
    enum err_code failed; /* its start did, for what `word` says; 0: it did not */
    uint32_t claims;      /* of its pod that know its machine */
    bool began, told_started, told_ended, forgotten;
    bool tell_soon; /* that it has started: see tasks.bound */
    struct follow *log;
    int64_t ended_ms; /* by the clock of the loop: its log has so long to come */
    int64_t stuck_since_ms;
    int64_t orphan_since_ms; /* an earlier life left it without a machine */
    char *word;              /* what was last told of how its start goes */
    struct load takes;
    struct kept *kept; /* what its pod says of its job, until it was told; NULL: nothing */
};

struct tasks {
    struct task **at;
    size_t n, cap;
    struct map by_id;      /* see task_key */
    struct task_id *bound; /* those that are told to have started when `gather` is over */
    size_t bounds, bound_cap;
    struct loop_watch *gather;
};

struct space; /* the namespace of a tenant: see spaces.c */
struct spaces {
    struct space **at;
    size_t n, cap;
};

/* Requests that are repeated until they are answered: see errands.c. */
struct errand;
struct errands {
    struct errand **at;
    size_t n, cap;
};

/* Copies of living jobs: see copies.c. */
struct copy;
struct copies {
    struct copy **at;
    size_t n, cap;
    struct map by_job;
    struct copy *head, *tail; /* those that may have to be written */
    size_t busy;              /* writes on their way */
    uint64_t bytes;           /* of all */
    int64_t paid_ms;          /* writes up to then are paid for */
    int64_t told_ms;          /* when a refusal was last told of */
    struct loop_watch *soon;
    /* The list at the beginning. */
    struct kube_call *call;
    char *from; /* the next page; NULL: the first */
    uint32_t tries;
    int64_t list_ms;
    bool listed, off; /* off: we may not */
};

/* Who decides: see lease.c. */
struct lease {
    struct kube_call *call;
    bool held;
    int64_t due_ms;     /* when it is looked at next */
    int64_t asked_ms;   /* since when it is being looked at */
    int64_t renewed_ms; /* by our clock */
    char *holder;       /* as it was last seen, */
    char *seen_renewal; /* renewed at its clock's, */
    int64_t seen_ms;    /* and first seen so at ours */
    char *version;
    bool exists, told;
};

#endif
