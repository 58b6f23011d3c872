/* reserve - machines that are one tenant's for a time that was fixed in advance; see reserve.c. */
#ifndef NS_CORE_RESERVE_H
#define NS_CORE_RESERVE_H

#include "core/cluster.h"

#define RESERVATIONS_MAX 1000u

struct reservation {
    char *name; /* NULL: this one is not used */
    uint32_t tenant;
    int64_t from_ms, until_ms;
    uint32_t *node;
    uint32_t n;
};

#endif
