/* lent - what pools and reservations have in common in the API: names, machines and times.
 *
 * Bodies are checked here, answers written; nothing is changed. */
#ifndef NS_API_LENT_H
#define NS_API_LENT_H

#include "api/state.h"

/* A change of what has a name: answered when it is on the disk. */
struct named_later {
    struct call call;
    struct str name, body; /* body: of a removal */
};
struct named_later *named_later_new(struct call *c); /* the name is param 0 */
/* Answers with its name and the machines that it had. */
int named_removal(struct named_later *l, const char *const *node, size_t nodes,
                  struct control_done *out, struct err *e) MUST_USE;

/* Members of a body, checked; what an error is about is the call's field. */
struct times {
    bool has_from, has_until;
    int64_t from_ms, until_ms;
    int64_t for_ms; /* 0: not said */
};
int read_times(struct call *c, const struct json *o, struct times *out, struct err *e) MUST_USE;
int read_nodes(struct call *c, const struct json *o, struct buf *all, bool *given, struct err *e)
    MUST_USE;

void put_machine(struct json_out *w, const char *name,
                 const struct node_view *v); /* all zero: it has not come yet */

/* What runs on a machine, and how each leaves it: when windows end, or when a reservation begins. */
struct reservation_begin {
    uint32_t number; /* jobs of it stay */
    int64_t at_ms;
};
void put_leaving(struct call *c, struct json_out *w, const char *node, const struct holder *h,
                 const struct reservation_begin *begin);

/* Its times; its name and tenant to whoever sees that tenant, else null. */
void put_reservation_head(struct call *c, struct json_out *w, const struct reservation_view *r);
int no_reservation(struct str name, struct err *e);

#endif
