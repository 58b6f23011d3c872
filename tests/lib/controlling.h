/* controlling - a control plane on a store of its own with a simulated engine, for tests.
 *
 * Time stands still unless a test lets it pass.  The engine outlives the control plane, which may be
 * killed at any moment and started again on the same store.
 */
#ifndef NS_TESTS_LIB_CONTROLLING_H
#define NS_TESTS_LIB_CONTROLLING_H

#include "control/control.h"
#include "engine/sim/sim.h"
#include "tests/lib/storing.h"

struct controlling {
    struct storing s; /* its store, loop and folder */
    struct log *log;
    int64_t now_ms;
    struct policy policy;
    struct control_bounds bounds;        /* from the next boot on */
    const struct control_pool_def *pool; /* of the settings, from the next boot on */
    size_t pools;
    const struct control_tenant_def *tenant; /* likewise; NULL: vision */
    size_t tenants;
    struct control_ear ear;   /* from the next boot on; nobody listens */
    struct control_keep keep; /* likewise; everything for ever */
    bool forget_tasks;
    struct steady *steady; /* NULL: its time is now_ms */
    struct engine sim;
    struct control *c; /* NULL: it is not running */
    struct loop_watch *pause;
    int answered; /* verbs that are on the disk */
    struct err refused;
};

/* Four GPUs on one machine; `config` may be NULL, its sink is set here. */
void controlling_begin(struct controlling *t, const struct sim_config *config);
void controlling_begin_with(struct controlling *t, const struct sim_config *config,
                            const struct policy *policy);
void controlling_end(struct controlling *t);

/* The same without a boot: for whoever has to be there before the control plane. */
void controlling_prepare(struct controlling *t, const struct sim_config *config,
                         const struct policy *policy);
void controlling_boot(struct controlling *t);   /* starts the control plane; settles */
void controlling_kill(struct controlling *t);   /* as kill -9: what is not on the disk is gone */
void controlling_round(struct controlling *t);  /* the loop comes round once */
void controlling_settle(struct controlling *t); /* until nothing more happens at this time */
void controlling_wait(struct controlling *t, int64_t ms);  /* settling at each event's time */
void controlling_real(struct controlling *t, uint64_t ms); /* the loop runs so long, in real time */

/* A job as JSON, of the tenant that it names, or of vision; 0 when refused, and why in t->refused. */
uint64_t controlling_submit(struct controlling *t, const char *json);
uint64_t controlling_submit_as(struct controlling *t, const char *user, const char *key,
                               const char *json);
/* Settled; -1 when refused. */
int controlling_verb(struct controlling *t, uint64_t job, enum control_verb v);

/* As the store has it; strings live until controlling_end. */
struct store_job controlling_job(struct controlling *t, uint64_t id);
const char *controlling_state(struct controlling *t, uint64_t id);
const char *controlling_text(struct controlling *t, struct str s);

/* The journal in the store makes a core with the same jobs, nodes and sums; "" or what differs. */
const char *controlling_journal_differs(struct controlling *t);

#endif
