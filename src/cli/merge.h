/* merge - one JSON object laid over another, as RFC 7396 has it: objects member by member, null
 * takes a member away, everything else replaces what was there. */
#ifndef NS_CLI_MERGE_H
#define NS_CLI_MERGE_H

#include "base/json.h"

/* `base` may be NULL. */
void merge_put(struct json_out *w, const char *key, const struct json *base,
               const struct json *patch);

#endif
