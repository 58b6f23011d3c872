/* cell - what the files of the cluster share: cell.c, kind.c, pool.c, cluster.c. */
#ifndef NS_CORE_CELL_H
#define NS_CORE_CELL_H

#include "core/cluster.h"

/* A node leaves its cell before what it offers changes, and enters the one that is right then. */
void node_leave_cell(struct cluster *c, uint32_t node);
void node_enter_cell(struct cluster *c, uint32_t node);
void node_mark_freed(struct cluster *c, uint32_t node); /* it may have more room than before */

/* The cluster's totals count the nodes that are offered. */
void count_node(struct cluster *c, const struct node *n, bool add);

/* May there be such a machine, whatever its name? */
int check_build(const struct cluster *c, const struct event_node *n, struct err *e) MUST_USE;

/* The kind of a node that is enrolled, made when it is not there yet. */
uint32_t kind_of(struct cluster *c, const struct event_node *n, uint32_t pool);
struct kind kind_build(const struct kind *k); /* what makes it this kind, without its machines */
void change_kind(struct cluster *c, uint32_t node,
                 const struct kind *want); /* the node is of that kind from now on */

void zones_of_kind(const struct cluster *c, struct kind *k); /* that its machines are in */

/* The number of its pool, which it enters; NONE: it has none. */
uint32_t pool_of(struct cluster *c, struct str name, uint32_t node);

#endif
