/* pools - what people said with the API about machines that are lent at the same times.
 *
 * A row is replaced as a whole.  Whose the pool is, and what its calendar means, is the caller's.
 */
#ifndef NS_STORE_POOLS_H
#define NS_STORE_POOLS_H

#include "store/store.h"

struct store_pool {
    struct str name;
    struct str calendar;   /* empty: always open */
    struct str nodes;      /* a hostlist */
    struct str exceptions; /* a calendar of exceptions alone, in UTC; empty: none */
    struct str stage;      /* a word of the caller's; empty: "all" */
    bool of_settings;      /* the settings file has its calendar and nodes */
};
void store_put_pool(struct store_batch *b, const struct store_pool *p);
void store_delete_pool(struct store_batch *b, struct str name);

int store_pools(struct store *s, struct arena *a, struct store_pool **out, size_t *out_n,
                struct err *e) MUST_USE; /* by name; strings live in `a` */

#endif
