/* rule - when a notice is sent, when again, and where to it may go.  Pure. */
#ifndef NS_NOTICE_RULE_H
#define NS_NOTICE_RULE_H

#include "base/err.h"
#include "base/str.h"

#define NOTICE_PAUSE_MAX_MS INT64_C(3600000)
#define NOTICE_HOLD_MS INT64_C(2000) /* the first of several waits so long for the others */
#define MAIL_ADDRESS_MAX 254

/* Which addresses a webhook may have. */
#define WEBHOOK_REACHES(X)                                                                         \
    X(NONE, "none")       /* there are no webhooks */                                              \
    X(PUBLIC, "public")   /* those of the Internet */                                              \
    X(NETWORK, "network") /* and of local networks */                                              \
    X(ANY, "any")         /* and of this machine and its links */
enum webhook_reach {
#define X(id, name) WEBHOOK_##id,
    WEBHOOK_REACHES(X)
#undef X
    WEBHOOK_REACH_COUNT
};
const char *webhook_reach_name(enum webhook_reach r);
bool webhook_reach_parse(struct str name, enum webhook_reach *out);

/* After so many tries that failed: first, twice that, … up to an hour. */
int64_t notice_pause_ms(int64_t first_ms, uint32_t tries);
/* One that is begun now, when the last of its kind is of last_ms (0: none was): soon, but not more often than
 * every gather_ms. */
int64_t notice_due_ms(int64_t now_ms, int64_t last_ms, int64_t gather_ms);
/* When one that is due then is ready: now, where its pause is not as long, since the clock was set back. */
int64_t notice_ready_ms(int64_t due_ms, int64_t now_ms, int64_t pause_ms);

/* Plain ASCII, one '@', a domain: nothing that could end a line or a list. */
int mail_check_address(struct str address, struct err *e) MUST_USE;
/* Is its domain, or one above it, in the list (blanks between)?  An empty list has all. */
bool mail_domain_listed(struct str address, struct str domains);
/* What can be told before its name is looked up; nightshift-send looks again. */
int webhook_check_url(struct str url, enum webhook_reach reach, struct err *e) MUST_USE;

#endif
