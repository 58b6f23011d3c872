/* deliver - hands one message to a mail server, or one document to a web server (libcurl).
 *
 * Certificates are checked; no redirects, no proxy, one span of time for everything.  A webhook connects to no
 * address that the question does not allow, whatever its name resolves to.
 */
#ifndef NS_SEND_DELIVER_H
#define NS_SEND_DELIVER_H

#include "send/question.h"

/* ERR_DENIED: trying again would not help; ERR_UNAVAILABLE: it might. */
int deliver(const struct question *q, struct err *e) MUST_USE;

#endif
