/* here - what nightshiftd says of this machine when no server runs: `nightshiftd --check --json`. */
#ifndef NS_CLI_HERE_H
#define NS_CLI_HERE_H

#include "base/json.h"

struct json_doc *here_check(
    struct err *e); /* json_free it; NULL: it is not installed, or refuses */

#endif
