/* others - pods that we did not make: all that are seen, and the gangs of those that we are to place. */
#ifndef NS_ENGINE_KUBE_OTHERS_H
#define NS_ENGINE_KUBE_OTHERS_H

#include "base/map.h"
#include "engine/kube/devices.h"
#include "engine/kube/gang.h"
#include "engine/kube/owner.h"
#include "engine/kube/pod_read.h"
#include "engine/kube/where.h"
#include "kube/client.h"

#define SPACE_MAX 64

struct gang;
struct kube;

/* What others' pods on a machine take, or what a pod does. */
struct load {
    uint64_t cpu_milli, mem_mib, gpus;
    uint64_t devices; /* the number of their text in kube.devices; 0: none */
};

/* Every pod that is there, as far as it has to be known again. */
struct seen_pod {
    char *uid;
    uint64_t seen;    /* the list in which it was */
    uint32_t machine; /* NONE: on none, as far as it counts */
    struct load takes;
    bool counts;           /* among what others take on its machine */
    bool own;              /* a pod of ours, */
    bool released;         /* whose end is written down */
    bool is_task;          /* a member of a gang that was given its machine */
    struct task_id task;   /* of the last two */
    struct gang *gang;     /* that it is a member of; NULL: of none */
    struct claims *claims; /* its volumes; NULL: it has none */
    bool writing, stale;   /* its word is on its way; it is not the last any more */
};
struct seen_pods {
    struct seen_pod **at;
    size_t n, cap;
    struct map by_uid;
};

struct member {
    struct seen_pod *seen;
    char *pod;
    struct where *where;
    int64_t created_ms;
    bool bound, told; /* told: the gang's word is in it */
};

/* What becomes of one that is taken back: see owners.c. */
enum gang_hold {
    HOLD_NONE,
    HOLD_ASKING,     /* whether budgets let its pods go */
    HOLD_SUSPENDING, /* its owner */
    HOLD_EVICTING,   /* its pods, one by one */
    HOLD_SUSPENDED,
    HOLD_RESUMING /* its owner makes its pods again */
};

struct gang {
    struct kube *k;
    char *ref;
    char space[SPACE_MAX], *name;
    struct member *member;
    size_t n, cap;
    struct load takes;   /* each; what the largest does */
    int64_t deadline_ms; /* the longest time that one of its pods may run, */
    bool endless;        /* unless one of them may for ever */
    uint32_t want;       /* it starts with so many; 0: not known yet */
    uint32_t placed;     /* so many were given a machine */
    uint64_t job;        /* as what it was taken; 0: it was not */
    uint32_t run;        /* of that, the last that was started */
    enum gang_kind kind;
    enum gang_object object; /* that tells `want`, */
    char *part;              /* of which */
    struct kube_call *look;  /* for it */
    int64_t look_ms;         /* not before */
    enum priority priority;
    bool dirty, final;
    bool sorted;        /* `member`, see gangs_start */
    bool preemptible;   /* all of its pods say so */
    int64_t quiet_ms;   /* that pods are missing is not said before; 0: any time */
    int64_t refused_ms; /* when it was not taken; 0: it was */
    char *refusal;      /* what no machine could do for it */
    char *word;         /* what was last written into its pods */
    char *within;       /* the gang that it is the rest of; NULL: of none */
    enum gang_hold hold;
    const struct owner_kind *owner; /* that is looked at, or was found */
    struct budgets *budgets;        /* that are being asked */
    struct kube_call *call;         /* for `hold` */
    int64_t call_ms;                /* the next not before */
    uint32_t call_tries;
    bool awaited;   /* a job stands for it that had no place when we began */
    bool left;      /* its owner was looked at since its last pod: it is not suspended by us */
    bool resumed;   /* its owner goes on, */
    uint32_t comes; /* with so many pods; 0: with all */
    int64_t resumed_by_ms; /* which are there by then */
    bool was_evicted;      /* not suspended: nobody tells its operator to make them */
};

#define GANG_CANCELLED "Cancelled" /* the reason in a pod that is not to be placed any more */

struct gangs {
    struct gang **at;
    size_t n, cap;
    struct map by_ref;
};

#endif
