/* observe - jobs that did not come by a submit: work that others made (observe.c), and jobs that the engine knows
 * and the store has lost (kept.c).  Included by state.h alone.
 */
#ifndef NS_CONTROL_OBSERVE_H
#define NS_CONTROL_OBSERVE_H

#include "base/map.h"
#include "control/book.h"

/* Work that others made: see observe.c. */
struct observing {
    struct map by_ref;        /* the hash of what the engine calls it, and its job */
    struct loop_watch *timer; /* tells those that wait why */
    size_t next;              /* whose turn that is, in the book */
    size_t n;                 /* living ones */
    char *traits;             /* of jobs of ours; NULL: every machine */
    bool known;               /* those of the store are in by_ref */
};

/* Jobs that the engine knows and the store does not: see kept.c. */
struct keeping_on {
    struct map left;  /* those that could not be made again: their tasks are left alone */
    struct map alive; /* tasks that run, and whose jobs nobody knows: nothing starts beside them */
    enum kept_again { /* some could not be taken up before the engine had told all it knows */
        AGAIN_NOT,
        AGAIN_WANTED,
        AGAIN_ASKED /* it tells once more, and nothing starts meanwhile */
    } again;
    size_t unwritten; /* made again, and not on the disk yet: nobody can read them so far */
};

/* kept.c */
void kept_event(struct control *c, const struct engine_event *ev);
bool kept_left(const struct control *c, uint64_t job); /* nobody may touch what runs of it */
/* A task of no job that lives: true when it is left alone. */
bool kept_stray(struct control *c, const struct engine_event *ev);
bool kept_blocks(const struct control *c); /* what runs holds machines, and we do not know which */
void kept_ready(struct control *c);        /* each time that the engine has told all it knows */
#define KEPT_WAYS_OUT                                                                              \
    "restore a backup (nightshift restore), make its tenant again, or end it: nightshiftd "        \
    "--forget-tasks yes"
void kept_try(struct control *c); /* those that were left may be made now */

/* What the engine keeps of our jobs: see spare.c. */
struct sparing {
    uint64_t numbers;      /* up to this one they are kept: no larger one was given out */
    uint64_t kept_numbers; /* the same, as the engine told it */
    uint64_t *waits;       /* jobs whose copy says that they wait for others */
    size_t n, cap;
};

/* spare.c */
struct turn;
void spare_load(struct control *c);                          /* from the store */
void spare_touch(struct control *c, uint64_t job);           /* it changes in the open turn */
void spare_reserve(struct control *c);                       /* numbers, with the open turn */
void spare_durable(struct control *c, const struct turn *t); /* before its acts */
void spare_ready(struct control *c);                         /* all of them are looked at */
void spare_record(struct control *c, const struct engine_event *ev);
void spare_numbers(struct control *c, const struct engine_kept *k); /* as they were kept */
void spare_skip(struct control *c, uint64_t job); /* the store is older: so far they are used */
void spare_free(struct control *c);

/* observe.c */
#define UID_OBSERVED (UINT32_MAX - 1) /* in a job's row: others made it */
void observe_init(struct control *c);
void observe_free(struct control *c);
void observe_event(struct control *c, const struct engine_event *ev);
void observe_await(struct control *c); /* after READY: those that have no place */
void observe_ended(struct control *c, const struct entry *en);     /* an observed one */
void observe_cancelled(struct control *c, const struct entry *en); /* which had no place yet */

#endif
