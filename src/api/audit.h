/* audit - how handlers write down what somebody did.
 *
 * Who, how they were known and from where are the call's; the handler says the rest, right after the
 * change was applied and before anything else is: then both are in one transaction.  What was refused is
 * not written.
 */
#ifndef NS_API_AUDIT_H
#define NS_API_AUDIT_H

#include "api/state.h"
#include "wire/audit.h"

struct audit_change {
    enum audit_verb what;
    struct str subject, tenant; /* tenant: whose it is, or empty */
    struct str before,
        after;         /* JSON; empty: it was not there; only what changed, where that is simple */
    struct str reason; /* as the caller said it, or empty */
};
/* Beside what control has just applied. */
void api_audit(struct call *c, const struct audit_change *ch);
/* Beside what this batch writes. */
void api_audit_to(struct call *c, struct store_batch *b, const struct audit_change *ch);

struct str audit_kept(struct call *c, const struct buf *b); /* a text, as long as the request */

/* Is a verb on this job to be written down?  Not what its own user does. */
bool audit_is_foreign(const struct call *c, struct str user);
/* Its number, and its state as JSON: as it is now, or empty. */
struct str audit_job_subject(struct call *c, uint64_t job);
struct str audit_job_state(struct call *c, uint64_t job);

#endif
