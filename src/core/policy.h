/* policy - the numbers of the policy as a table: names, bounds, defaults, help. */
#ifndef NS_CORE_POLICY_H
#define NS_CORE_POLICY_H

#include "base/err.h"
#include "core/event.h"

#define POLICY_KEYS_MAX 64

struct policy_key {
    const char *name;
    size_t offset;
    int64_t min, max, dflt;
    const char *help;
};

const struct policy_key *policy_key(size_t i); /* NULL past the last */
int64_t *policy_value(struct policy *p, const struct policy_key *k);
struct policy policy_default(void);
int policy_check(const struct policy *p, struct err *e) MUST_USE;

#endif
