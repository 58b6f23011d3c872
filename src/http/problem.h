/* problem - a refusal as application/problem+json (RFC 9457), as pure text.
 *
 *   {"status":400,"code":"invalid","detail":"what happened","hint":"what to do","field":"gpus"}
 *
 * `code` is the error's slug, so a client can turn it back into the same error; hint and field are
 * left out when there is none.
 */
#ifndef NS_HTTP_PROBLEM_H
#define NS_HTTP_PROBLEM_H

#include "base/buf.h"

#define PROBLEM_TYPE "application/problem+json"
#define PROBLEM_MAX 8192 /* bytes: the longest message, hint and field, every byte escaped */

/* `field` is cut to what a problem can hold; NULL: none. */
void problem_write(int status, const struct err *why, const char *field, struct buf *out);

#endif
