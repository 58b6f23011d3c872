/* replay - what a store says, looked at without a daemon. */
#ifndef NS_CONTROL_REPLAY_H
#define NS_CONTROL_REPLAY_H

#include "store/store.h"

/* The journal makes the state anew, the living jobs are as it says, and the chain of the audit is whole. */
struct control_verified {
    uint64_t events, jobs, audit_rows;
};
int control_verify(struct store *s, struct control_verified *out, struct err *e) MUST_USE;

#endif
