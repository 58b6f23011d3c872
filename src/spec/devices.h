/* devices - what a job asks for beyond GPUs: {name: count} in a spec, and as the core has it. */
#ifndef NS_SPEC_DEVICES_H
#define NS_SPEC_DEVICES_H

#include "spec/spec.h"

#define DEVICE_NAME "^[A-Za-z0-9][A-Za-z0-9._/-]*$" /* as the reader takes it, for the schema */

/* The text of core/device.h, in order of names, in `a`. */
int spec_devices_read(const struct json *v, uint64_t max, struct arena *a, struct str *out,
                      struct err *e) MUST_USE;
void spec_devices_write(struct str devices, const char *key, struct json_out *w);

#endif
