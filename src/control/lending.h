/* lending - machines that are lent at times, and machines that are reserved: what control does with them. */
#ifndef NS_CONTROL_LENDING_H
#define NS_CONTROL_LENDING_H

#include "control/control.h"

/* ---- pools: machines that are lent at the same times ---- */

/* Makes it, or changes what is said.  Those of the settings file are refused. */
struct control_pool_change {
    struct str name, by;
    const struct str *window, *nodes; /* NULL: as it is; an empty window: always open */
    const enum stage *stage;          /* NULL: as it is */
};
int control_pool_put(struct control *c, const struct control_pool_change *ch,
                     struct control_done done, struct err *e) MUST_USE;
int control_pool_delete(struct control *c, struct str name, struct str by, struct control_done done,
                        struct err *e) MUST_USE;

/* Open or closed for a while, whatever its window says; regular: all such are dropped. */
struct control_pool_except {
    struct str name, by;
    bool regular;
    struct pool_except except;
};
int control_pool_except(struct control *c, const struct control_pool_except *x,
                        struct control_done done, struct err *e) MUST_USE;

/* ---- reservations: machines that are one tenant's for a time ---- */

#define RESERVE_AHEAD_DAYS 366 /* it begins in so many at most */
#define RESERVE_LASTS_DAYS 31

/* Makes it, or changes what is said: what is NULL, 0 or empty stays as it is.  A new one begins now unless said
 * otherwise.  Machines are named, or chosen now for so many GPUs: see choose.h. */
struct control_reserve {
    struct str name, by;
    const struct str *tenant;
    const int64_t *from_ms, *until_ms;
    int64_t for_ms;          /* instead of until_ms */
    const struct str *nodes; /* a hostlist */
    uint64_t gpus;           /* instead of nodes */
    struct str gpu_type;     /* models, separated by |; empty: any */
};
int control_reserve(struct control *c, const struct control_reserve *r, struct control_done done,
                    struct err *e) MUST_USE;
int control_reservation_delete(struct control *c, struct str name, struct str by,
                               struct control_done done, struct err *e) MUST_USE;

/* ---- looking ---- */

/* As core_reservation: those that have ended have no name. */
bool control_reservation_at(const struct control *c, uint32_t i, struct reservation_view *out);
bool control_reservation_find(const struct control *c, struct str name, uint32_t *out_i,
                              struct reservation_view *out);

/* Valid until the next change. */
struct control_pool {
    const char *name;
    bool of_settings;
    enum stage stage;
    bool always;                                      /* it has no window */
    const struct calendar *window, *exceptions, *now; /* exceptions: in UTC; now: both */
    const char *const *node;                          /* also machines that are not here yet */
    size_t nodes;
};
bool control_pool_at(const struct control *c, size_t i, struct control_pool *out);
bool control_pool_find(const struct control *c, struct str name, struct control_pool *out);

#endif
