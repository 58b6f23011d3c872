/* why - the answer to "why does it wait", or did, as a person reads it. */
#ifndef NS_CLI_WHY_H
#define NS_CLI_WHY_H

#include "base/buf.h"
#include "base/json.h"

void why_print(const struct json *answer, struct buf *out);

#endif
