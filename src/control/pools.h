/* pools - the pools as pools.c keeps them.  Included by state.h alone. */
#ifndef NS_CONTROL_POOLS_H
#define NS_CONTROL_POOLS_H

#include "base/calendar.h"
#include "base/map.h"
#include "control/control.h"

struct lent {
    char *name;
    bool of_settings;
    enum stage stage;                        /* whose it is while it is rolled out */
    bool always;                             /* it has no window */
    struct calendar window, exceptions, now; /* exceptions: alone, in UTC; now: both */
    char **node;
    size_t nodes;
};

struct pools {
    struct lent **at; /* the settings file's first */
    size_t n, cap;
    struct names node_names;
    uint32_t *pool_of; /* by number in node_names */
    struct names told_names;
    char **told; /* by number in told_names: the pool that the engine says it is in */
    uint32_t tolds;
    uint8_t *lent_state; /* by the core's number of a machine: is it ours now, as was told */
    uint32_t lent_n;
};

int pools_load(struct control *c, struct err *e) MUST_USE;
void pools_free(struct control *c);
void pools_move(struct control *c); /* machines into the pools that they are in now */
void pools_told(struct control *c, struct str node, struct str pool); /* by the engine */
void pools_lend(struct control *c); /* tells the engine which machines are ours now */

#endif
