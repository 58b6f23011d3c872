/* field - members of the server's answers, read leniently: what is absent, null or of another type
 * is the default.  The server checks what people write; a display need not fail for one field. */
#ifndef NS_CLI_FIELD_H
#define NS_CLI_FIELD_H

#include "base/json.h"

struct str field_str(const struct json *obj, const char *key); /* "" */
uint64_t field_u64(const struct json *obj, const char *key);   /* 0 */
int64_t field_i64(const struct json *obj, const char *key, int64_t otherwise);
double field_f64(const struct json *obj, const char *key); /* 0 */
bool field_bool(const struct json *obj, const char *key);  /* false */
bool field_known(const struct json *obj, const char *key); /* there, and not null */

#endif
