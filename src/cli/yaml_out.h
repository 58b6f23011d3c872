/* yaml_out - a JSON value as YAML that reads back as the same value. */
#ifndef NS_CLI_YAML_OUT_H
#define NS_CLI_YAML_OUT_H

#include "base/json.h"

void yaml_print(const struct json *v, struct buf *out);

#endif
