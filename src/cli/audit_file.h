/* audit_file - an exported audit, verified without a server. */
#ifndef NS_CLI_AUDIT_FILE_H
#define NS_CLI_AUDIT_FILE_H

#include <stdio.h>

#include "base/err.h"
#include "wire/audit.h"

/* The chain's fault is the result; -1 when it is not an export, or not a whole one.  `name` is for
 * messages, `bytes` for the progress (0: not known), noted may be NULL. */
struct audit_file {
    FILE *from;
    const char *name;
    uint64_t bytes;
    const struct audit_link *noted;
};
int audit_file_verify(const struct audit_file *f, struct audit_chain *out, struct err *e) MUST_USE;

#endif
