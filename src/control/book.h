/* book - the jobs that have not ended, as the control plane keeps them in memory.
 *
 * Small on purpose: a hundred thousand may wait.  What they run is in the store.
 */
#ifndef NS_CONTROL_BOOK_H
#define NS_CONTROL_BOOK_H

#include "base/map.h"
#include "core/job.h"
#include "engine/engine.h"
#include "store/store.h"

enum task_state {
    TASK_UNKNOWN, /* nobody has told us of it since we started */
    TASK_STARTING,
    TASK_AGAIN, /* its start failed and is tried again after a while */
    TASK_RUNNING,
    TASK_PAUSED,
    TASK_ENDED
};

struct task {
    enum task_state state;
    enum task_end why;
    int code, signal;
    uint64_t limit;      /* END_PROCESSES: of how many; 0: not known */
    uint64_t lost_bytes; /* of its output */
};

struct control;
struct job_ref {
    struct control *c;
    uint64_t job;
};

/* Why a pass took a job back. */
enum taken_for {
    TAKEN_TURN,    /* it is another's turn */
    TAKEN_MACHINE, /* its machine's window ends, or a reservation begins */
    TAKEN_EXPIRED, /* its tenant's time has ended */
    TAKEN_BUDGET   /* its tenant's budget is spent */
};

struct entry {
    uint64_t id;
    char *name;
    const char *tenant, *user; /* interned: see book_own */
    uint32_t tenant_number, user_number;
    struct store_job_now now; /* `end`, `message`, `where` are owned: see book_set_text */
    uint32_t replicas;
    uint64_t gpu_milli;
    uint64_t array;
    uint32_t array_index;
    char *ref;     /* others made it: what the engine calls it; NULL: a job of ours */
    uint32_t told; /* of what others made and waits: the reason that the engine was told, from 1 */
    uint64_t
        traits; /* likewise: a hash of the machines it may use, as the core has it; 0: not known */
    bool observed;   /* others made it; ref is set once it is known */
    bool spec_known; /* what follows is set: see job_need_spec */
    bool requeue;
    enum freeze_mode freeze;
    int freeze_signal;
    uint32_t retries;
    int64_t grace_ms;
    int64_t ran_since_ms; /* when it last began to run, for the time limit */
    struct task *task;    /* of the run that holds resources, one a replica; else NULL */
    uint32_t bad;         /* the first task that ended badly, or NONE */
    bool failed_start;
    bool heard; /* what follows was told: see life.c */
    enum job_state heard_state;
    uint32_t heard_run;
    uint8_t why, whys; /* the reason of its last step, and how often that changed in this wait */
    uint64_t copied;   /* a hash of what its copy says: see spare.c; 0: it has none */
    bool noted;        /* there, as one that waits for others */
    bool taken;        /* it is being frozen by a pass */
    enum taken_for taken_for;
    uint32_t start_tries; /* starts of this run that failed */
    struct job_ref grace_of, again_of;
    struct loop_watch *again; /* until the next start */
    struct loop_watch *grace; /* runs out while it saves itself */
};

/* Jobs of ours of that name. */
struct book_count {
    uint64_t of_tenant, of_user;
};

struct book {
    struct entry **at; /* in no order */
    size_t n, cap;
    struct map by_id;
    struct names names;
    struct book_count *count; /* by number of the name: see book_own */
    size_t counts, count_cap;
    uint64_t ours;
};

struct entry *book_add(struct book *b, uint64_t id);
struct entry *book_find(const struct book *b, uint64_t id); /* NULL when it has ended */
void book_remove(struct book *b, struct entry *en);
void book_free(struct book *b);
const char *book_intern(struct book *b, struct str name);
/* Whose it is, once; those that others made (en->observed) are not counted. */
void book_own(struct book *b, struct entry *en, struct str tenant, struct str user);
uint64_t book_of_tenant(const struct book *b, struct str tenant);
uint64_t book_of_user(const struct book *b, struct str user);
void book_set_text(struct str *field, struct str text); /* frees the old one */

/* What the book keeps of a spec. */
void entry_from_spec(struct entry *en, const struct spec *s);

#endif
