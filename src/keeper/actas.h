/* actas - a moment with a user's own rights on files, in the forked child of spawn.h.
 *
 * The kernel takes the capabilities over files away meanwhile, so what is looked up or made is what its
 * user could have looked up or made.  Async-signal-safe.
 */
#ifndef NS_KEEPER_ACTAS_H
#define NS_KEEPER_ACTAS_H

#include <stdint.h>

#include "base/base.h"

struct actas {
    uint32_t uid, gid;
    const uint32_t *groups;
    uint32_t n_groups;
    bool is_self; /* we are that user already */
};

/* -1 with errno: then nothing may be done. */
int actas_begin(const struct actas *who) MUST_USE;
int actas_end(const struct actas *who) MUST_USE; /* errno stays as it was when it succeeds */

#endif
