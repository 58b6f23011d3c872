/* docs - the daemon's tables as pages: what docs/reference is printed from (tools/print-docs). */
#ifndef NS_DAEMON_DOCS_H
#define NS_DAEMON_DOCS_H

#include "base/err.h"

int docs_print(const char *page, struct err *e) MUST_USE; /* Markdown, to standard output */

#endif
