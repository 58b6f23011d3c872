/* state - what the files of control share; nobody outside includes it. */
#ifndef NS_CONTROL_STATE_H
#define NS_CONTROL_STATE_H

#include "base/map.h"
#include "control/account.h"
#include "control/book.h"
#include "control/jump.h"
#include "control/keeping.h"
#include "control/lending.h"
#include "control/life.h"
#include "control/observe.h"
#include "control/pools.h"
#include "control/tenants.h"
#include "store/kept.h"
#include "store/pools.h"

/* What the engine is to be told once the turn is on the disk. */
enum act_kind {
    ACT_TASKS_START,
    ACT_TASKS_STOP,
    ACT_TASKS_PAUSE,
    ACT_TASKS_RESUME,
    ACT_TASKS_FREEZE,
    ACT_TASKS_FORGET
};
struct act {
    enum act_kind kind;
    uint64_t job;
    uint32_t run, replicas;
    struct slot *slots; /* START: owned */
    enum task_end why;  /* STOP */
    int64_t grace_ms;
    int signo;
};

/* A submit under an idempotency key, and what was made of it. */
struct turn_key {
    char *text;
    uint64_t first;
    size_t n;
    uint64_t request; /* digest */
};

/* One round: what was applied since the last commit, and what follows from it. */
struct turn {
    struct control *c; /* NULL: nobody waits for it any more */
    struct store_batch *batch;
    struct act *act;
    size_t acts, act_cap;
    struct control_done *done;
    size_t dones, done_cap;
    struct turn_key *key; /* of submits whose answer is not in the store yet */
    size_t keys, key_cap;
    struct map over;   /* jobs that ended in it, and their state */
    uint64_t *waiting; /* jobs that wait since this turn: see life.c */
    size_t waits, wait_cap;
    uint64_t *touched; /* jobs whose copies may be old: see spare.c */
    size_t touches, touch_cap;
    bool events; /* public ones */
};

struct machine {
    const char *name; /* of machine_names */
    bool simulated;
    char **gpu_uuid;
    size_t gpus;
    uint32_t gpus_of_others;
    enum node_state state;  /* as the engine tells it */
    bool changed;           /* what it has is not what the core thinks: see fleet.c */
    struct event_node node; /* as it is then; its text is in the next two */
    char model[NAME_MAX_BYTES + 1];
    char *devices;
};

/* How far verifying the audit has come; see audit.c. */
struct auditing {
    struct loop_watch *timer;
    struct store_audit_check check;
    bool checking;
    int64_t day; /* of the last that was done; -1: none */
    struct control_audit_state state;
};

/* The wall clock, when it jumps; see jump.c. */
struct jumping {
    struct loop_watch *timer; /* NULL: it is believed */
    int64_t step_ms;          /* to be taken with the next turn; 0: none */
    int64_t marked_ns;        /* when our mark was written down */
    bool told;                /* that nothing is removed */
};

/* What of the core's ledger is in the store. */
struct fairness {
    int64_t day; /* the latest that was written; INT64_MIN: none was */
    int64_t written_ms;
};

struct watcher {
    loop_fn *fn;
    void *ctx;
};

struct control {
    struct control_config config;
    struct core *core;
    struct policy policy; /* the core's: as the journal last said; all 0: it never did */
    struct engine engine;
    struct book book;
    struct accounts accounts;
    struct turn *open;    /* being gathered; NULL when nothing happened */
    struct turn *written; /* on its way to the disk */
    struct loop_watch *close_turn, *clock_turn, *begin_turn;
    bool ending;          /* see after_end_never */
    bool ready, stopping; /* the engine told all it knows; no new starts */
    bool was_ready;       /* once: what it can do is known */
    bool want_pass;
    struct str acting; /* who asked for what is being done now; empty: nobody did */
    size_t life_next;  /* which job of the book is looked at next: see life.c */
    struct machine *machine;
    size_t machines, machine_cap;
    struct names machine_names; /* numbered as they are */
    struct watcher *watch;
    size_t watches, watch_cap;
    struct control_stats stats;
    struct entry **ended; /* since the last turn closed */
    size_t ends, end_cap;
    struct keeping keeping;
    struct auditing auditing;
    struct pools pools;
    struct tenants tenants;
    struct fairness fairness;
    struct jumping jump;
    struct observing observing;
    struct keeping_on kept;
    struct sparing spare;
    struct arena arena; /* of one pass */
    char *homes;
};

/* turn.c */
void turn_init(struct control *c);
struct turn *turn_open(struct control *c);
int turn_apply(struct control *c, const struct event *ev, struct err *e) MUST_USE; /* and journal */
void turn_act(struct control *c, struct act a);
void turn_done(struct control *c, struct control_done d);
void turn_add_done(struct turn *t, struct control_done d); /* to that one */
void turn_save(struct control *c, struct entry *en); /* the job's row as it is now, and its event */
void turn_event(struct control *c, struct entry *en);          /* the event alone */
void turn_tell_ear(struct control *c, const struct entry *en); /* it ended, or stands still */
/* Something that people have named was changed: told in events and log, answered when it is durable. */
struct change {
    const char *noun; /* pool, reservation */
    struct str name;
    const char *what;
    struct str by;
};
void turn_changed(struct control *c, const struct change *ch, struct control_done done);
void turn_bury(struct control *c, struct entry *en); /* it has ended: gone with the turn's close */
void turn_close_soon(struct control *c, bool pass);
void turn_flush(struct control *c);
void turn_tell(struct control *c); /* those that watch */
void turn_free(struct turn *t);

/* tasks.c */
void tasks_act(struct control *c, const struct act *a);
void tasks_event(struct control *c, const struct engine_event *ev);
/* Moves a job and writes it down; a move that the table refuses is logged and not made. */
bool job_move(struct control *c, struct entry *en, enum job_event what);
void job_placed(struct control *c, const struct action *a,
                int64_t now_ms); /* when it was decided */
void job_stop(struct control *c, struct entry *en, enum task_end why);
void job_settle(struct control *c, struct entry *en);      /* moves on when its tasks have */
void job_release_run(struct control *c, struct entry *en); /* it holds nothing any more */
int job_spec(struct control *c, const struct entry *en, struct arena *a, struct spec *out,
             struct err *e) MUST_USE; /* from the store */
int job_need_spec(struct control *c, struct entry *en, struct err *e) MUST_USE;

/* freeze.c */
bool freeze_possible(const struct control *c, enum freeze_mode mode);
void freeze_terms(const struct control *c, const struct spec *s, struct event_submit *out);
void job_freeze_begin(struct control *c, struct entry *en); /* by the way its spec allows */
/* A pass took it, for another or because its machine is given back: the core has it so already. */
void job_taken(struct control *c, const struct action *a);
enum taken_for freeze_taken_for(enum take_why why, job_id by);
struct str taken_text(const struct entry *en); /* the same as a sentence */
int64_t job_grace_ms(const struct control *c,
                     const struct entry *en); /* for saving itself, or ending */
void job_tell_taken(struct entry *en, enum job_event what, const struct task *t);

/* again.c */
void job_start_again(struct control *c, struct entry *en); /* those that nobody knows */
/* After a failure of the machine's own, e.g. a full disk: true when it will be tried again. */
bool job_start_later(struct control *c, struct entry *en, const struct engine_event *failed);
/* While nobody can tell which account it runs as: that is no failed try, however long it takes. */
bool job_start_when_known(struct control *c, struct entry *en, const struct err *why);

/* submit.c: a job of an earlier store, under its number, as if it were submitted now */
struct submit_kept {
    uint64_t id;
    const struct job_record *r;
    const struct spec *spec;
    bool runs; /* it is placed next, whatever the record says */
};
struct entry *submit_again(struct control *c, const struct submit_kept *k, struct err *e);

/* fleet.c */
void fleet_event(struct control *c, const struct engine_event *ev); /* ENGINE_NODE */
void fleet_review(struct control *c); /* those that could not change before */
void fleet_free(struct control *c);

/* jump.c */
void jump_init(struct control *c);
void jump_free(struct control *c);
bool jump_holds(const struct control *c);                  /* nothing may be removed for its age */
void jump_taken(struct control *c, struct store_batch *b); /* with a journal that was cut for it */

/* segment.c */
void segment_review(struct control *c);

/* audit.c */
void audit_init(struct control *c);
void audit_free(struct control *c);
void audit_piece(void *control); /* of verifying; comes back by itself */
/* The oldest rows go with this batch; false: there are none, or e says why not. */
bool audit_cut(struct control *c, struct store_batch *b, struct err *e);

/* keep.c */
void keep_init(struct control *c);
void keep_free(struct control *c);
void keep_wake(struct control *c); /* a job has ended */
void keep_piece(void *control);    /* a little of what there is to do; comes back by itself */

/* fairness.c */
int fairness_load(struct control *c, struct err *e) MUST_USE;
void fairness_write(struct control *c, bool now); /* into the open turn, at most once a minute */
void fairness_minute(struct control *c);          /* a day that is over is written down */

/* recover.c */
int recover(struct control *c, struct err *e)
    MUST_USE;                          /* from the store, before the engine is there */
void recover_tasks(struct control *c); /* after READY: what the engine did not speak of */

#endif
