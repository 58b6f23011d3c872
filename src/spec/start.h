/* start - when a job may start: `begin`, and the jobs it starts `after`; see value.h. */
#ifndef NS_SPEC_START_H
#define NS_SPEC_START_H

#include "spec/spec.h"

int start_read_time(const struct json *v, int64_t *out, struct err *e) MUST_USE;
int start_read_after(const struct json *v, uint64_t max, struct arena *a, struct spec *into,
                     struct err *e) MUST_USE;
/* Nothing when there is nothing to say. */
void start_write_time(const char *key, int64_t ms, struct json_out *w);
void start_write_after(const char *key, const struct spec *s, struct json_out *w);

#endif
