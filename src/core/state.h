/* state - what the core's own files share; nobody outside core/ includes it. */
#ifndef NS_CORE_STATE_H
#define NS_CORE_STATE_H

#include "core/allow.h"
#include "core/core.h"
#include "core/device.h"
#include "core/forecast.h"
#include "core/later.h"
#include "core/ledger.h"
#include "core/place.h"
#include "core/policy.h"
#include "core/queue.h"
#include "core/reserve.h"
#include "core/take.h"
#include "core/window.h"

/* Room kept on nodes for a job that has waited too long; nothing else starts in it. */
struct claim {
    uint32_t job;
    uint32_t *node;
    uint32_t n;
    int64_t start_ms;   /* when it will start there, as what runs now is expected to end */
    int64_t cost_milli; /* counts as held by the job's tenant while nodes are kept */
};

/* Slots that a job has as soon as they are free: what holds them is on its way out. */
struct promise {
    uint32_t job, n;
    struct slot *slot;
    int64_t cost_milli;
};

struct core {
    struct policy policy;
    struct cluster cluster;
    struct demand demand;
    struct shares shares;
    struct shapes shapes;
    struct queue queue;
    struct laters laters;
    struct claim *claim;
    uint32_t claims, claim_cap;
    int64_t claim_check_ms; /* when to look for the next claim */
    struct history history;
    int64_t history_ms, rate_ms; /* when it is derived next, and what runs is rated next */
    struct forecast forecast;
    struct ledger *ledger;           /* its rates are worked out when asked */
    struct reservation *reservation; /* its number is its place, from 1 */
    uint32_t reservations, reservation_cap;
    struct promise *promise;
    uint32_t promises, promise_cap;
    struct take_scratch take;
    uint64_t take_looks; /* nodes looked at for taking back, in this pass */
    bool review;         /* this pass also looks for what to take back: for some, or for all */
    bool review_all;
    int64_t review_ms;  /* when all that wait are looked at next */
    uint64_t new_after; /* jobs with a larger id came since the last pass */
    struct gang_scratch scratch;
    struct slot *slots;   /* working memory for one placement */
    int64_t now_ms;       /* the latest time seen */
    int64_t wall_ms;      /* the clock at the last pass; windows are about what people see on it */
    bool windows_changed; /* what waiting jobs need of a window is asked anew */
    bool windows_used;    /* waiting jobs were asked while there were windows */
    uint64_t passes;      /* made so far */
    bool pass_open;       /* a journal's pass is being restored: its decisions may still follow */
    uint64_t last_job;    /* the largest job id seen */
    uint64_t passed_job;  /* the same, at the last pass */
};

/* What a job counts against limits now; for a share by memory a new kind of node may change it. */
static inline struct amounts core_amounts(const struct core *c, const struct request *r)
{
    struct amounts a = request_amounts(r, cluster_most_share_milli(&c->cluster, r));
    if (request_has_devices(r))
        a.of[RES_GPU] += devices_worth_milli(&c->cluster, r) * r->replicas;
    return a;
}

/* The GPUs in it: what limits count of devices is not among them. */
static inline uint64_t core_gpu_milli(const struct core *c, const struct request *r)
{
    return request_amounts(r, cluster_most_share_milli(&c->cluster, r)).of[RES_GPU];
}

/* What starting it would add to its tenant's cost, about: where it will run is not known yet. */
static inline int64_t core_next_cost_milli(const struct core *c, const struct request *r)
{
    struct amounts a = core_amounts(c, r);
    return (int64_t)a.of[RES_GPU] + (int64_t)a.of[RES_CPU] * c->policy.cpu_cost_milli / 1000;
}

/* window.c */
/* What it asks for, with what it would need of a window now if it joined the queue. */
struct request window_request(const struct core *c, const struct job *j);
void core_wait(struct core *c, uint32_t job); /* it starts to wait */
/* The pool's windows from now on; NULL: it has none. */
void window_set(struct core *c, uint32_t pool, const struct calendar *calendar, int64_t t_ms);
void windows_review(struct core *c, int64_t wall_ms); /* the windows as the clock says */
void windows_learn(struct core *c); /* what waiting jobs need of a window, by what is known now */
/* It waits, runs or is frozen as before, and asks for this. */
void core_set_request(struct core *c, uint32_t job, const struct request *r);

/* Machines that are about to be gone for some jobs: a window ends, or a reservation begins. */
struct closing {
    int64_t left_ms, at_ms; /* left < 0: they are gone, INT64_MAX: never */
    uint16_t stays;         /* jobs of this reservation stay; 0: none do */
    const uint32_t *node;
    uint32_t n;
};
struct closing window_closing(const struct pool *p);
bool closing_is_near(const struct core *c, const struct closing *at);
bool closing_is_due(const struct core *c, const struct closing *at, const struct job *j);
double window_worth(const struct core *c,
                    const struct request *r); /* times what it is worth else */
int64_t windows_wake_ms(const struct core *c);
/* When machines that could run it are next there for it; INT64_MIN: some are, INT64_MAX: never. */
int64_t window_opens_ms(const struct core *c, const struct request *r);
/* When the job, which holds something, has to leave a window that ends then. */
int64_t window_leave_ms(const struct core *c, const struct job *j, int64_t closes_ms);

/* reserve.c */
int reservation_set(struct core *c, const struct event_reserve *v, int64_t t_ms, struct err *e)
    MUST_USE;
int reservation_of(const struct core *c, struct str name, uint32_t tenant, uint16_t *out,
                   struct err *e) MUST_USE;
const struct reservation *reservation_at(const struct core *c, uint16_t number);
void reservations_review(struct core *c, int64_t wall_ms); /* they begin and end */
void reservations_free(struct core *c);
struct closing reservation_closing(const struct core *c, const struct reservation *r);

/* core.c: what a pass and the journal's decisions have in common */
void core_open_pass(struct core *c, int64_t wall_ms); /* what a pass does before its decisions */
void core_close_pass(struct core *c); /* what a restored pass does after its decisions */
/* Whose turn is before that of a job in the queue, as shares stand now; each start changes them.
 * before: where not NULL, by group: its jobs are (of the job's own group: see `own`). */
struct before core_before(struct core *c, uint32_t job, int64_t now_ms, bool *before);
void core_place(struct core *c, uint32_t job, const struct slot *slots, uint32_t n, int64_t now_ms);

/* tenant.c */
int tenant_set(struct core *c, const struct event *ev, int64_t now_ms, struct err *e) MUST_USE;

/* traits.c */
struct zones_left {
    uint32_t zones, traits; /* numbers that nobody uses */
};
struct zones_left zones_left(const struct core *c);
void zones_drop(struct core *c); /* what nobody uses */
int traits_check_room(const struct core *c, struct str list, struct err *e) MUST_USE;
uint16_t traits_use(struct core *c, struct str list); /* one that was checked */
struct str traits_text(const struct core *c, const struct request *r);
int traits_set_node(struct core *c, const struct event_node_traits *n, struct err *e) MUST_USE;

/* rules.c */
int rules_check(const struct core *c, const struct event_tenant *t, struct err *e) MUST_USE;
void rules_set(struct core *c, uint32_t share, const struct event_tenant *t, int64_t now_ms);
void rules_charge(struct core *c, uint32_t leaf, const struct held *h, bool more, int64_t now_ms);
void rules_settle(struct core *c, int64_t now_ms); /* before what shares hold is counted anew */
void rules_recount(struct core *c);
void rules_review(struct core *c, int64_t wall_ms); /* who is closed, as the clock says */
void rules_set_spent(struct core *c, uint32_t share, const struct event_past *p, int64_t now_ms);
int64_t rules_wake_ms(const struct core *c);
int rules_audit(const struct core *c, struct err *e) MUST_USE;
uint64_t held_on_models(const struct core *c, const struct held *h, uint64_t models); /* of GPUs */

/* pass.c: a place for the job of a claim, on its nodes, elsewhere, or on some of both */
bool core_find_claimed(struct core *c, const struct claim *cl, const struct request *r);

/* promise.c */
void promise_make(struct core *c, uint32_t job, const struct slot *slots, uint32_t n);
void promise_drop(struct core *c, uint32_t job);  /* does not put it into the queue */
void promise_break(struct core *c, uint32_t job); /* and it waits again */
void promises_review(struct core *c); /* those that will not be free any more are dropped */

bool job_leaves(const struct job *j); /* it is on its way out of what it holds */
uint32_t slots_on(const struct slot *s, uint32_t n, uint32_t node); /* how many of them */

/* take.c: finds room for a waiting job that asks for `r`, by freezing and moving others; c->slots and
 * c->take have it. */
bool take_find(struct core *c, uint32_t job, const struct request *r, const struct user_group *u);

/* core.c */
void core_take(struct core *c, uint32_t job, int64_t now_ms);

/* rate.c */
void core_learn(struct core *c); /* from time to time: history, and what runs */
uint32_t core_tenant(const struct core *c, const struct job *j);
struct history_of core_of(const struct core *c, const struct job *j);

/* What is known of one user's groups, looked up once a size where they have no family. */
struct rows_seen {
    const struct history_row *row[HISTORY_SIZES];
};
double core_worth(const struct core *c, struct rows_seen *seen, uint32_t leaf, uint32_t shape,
                  const struct user_group *u);

int64_t core_ran_ms(const struct job *j, int64_t now_ms);
void core_rate(struct core *c, struct job *j);
/* Will it probably have ended when it has had the GPU time that jobs have on average? */
bool core_is_express(const struct core *c, const struct job *j);

/* forecast.c */
void forecast_waits(struct core *c, uint32_t job);                   /* it begins to wait */
void forecast_starts(struct core *c, struct job *j, int64_t now_ms); /* and starts */
void forecast_miss(struct core *c);  /* the first thing that a pass does */
void forecast_state(struct core *c); /* the last thing that a pass does */

/* claim.c */
void claims_drop(struct core *c, uint32_t job); /* when the job no longer waits */
/* The first and the last thing that a pass does.  Both look at the state and at nothing else, so a
 * restored journal, which has a pass's decisions but not its claims, comes to the same ones. */
void claims_review(struct core *c); /* room that a job may not use is not kept for it */
void claims_make(struct core *c, int64_t now_ms);

/* Finds room for the job in what is kept for others, if it delays none of them: it ends before, or
 * it can be frozen then (a guest).  c->slots has it. */
/* Has waited too long for room, and nobody on the way up has had more than the siblings. */
bool core_is_overdue(const struct core *c, const struct job *j, int64_t now_ms);
bool claims_lend(struct core *c, uint32_t job, const struct request *r);
bool claim_suits(const struct request *r); /* may it lie on nodes that were chosen for another? */

#define EXPECTED 0.5 /* of the cases: when a job is expected to end */

/* rate.c: when a job that runs is expected to end, in this part of the cases */
int64_t core_end_ms(const struct core *c, const struct job *j, double part);

#endif
