/* value - how one field of a job spec is read, written and described; see the table in spec.c. */
#ifndef NS_SPEC_VALUE_H
#define NS_SPEC_VALUE_H

#include "spec/spec.h"

/* id, JSON schema of the value */
#define VALUE_KINDS(X)                                                                             \
    X(NAME, "{\"type\":\"string\",\"maxLength\":%llu}")                                            \
    X(PATH, "{\"type\":\"string\",\"pattern\":\"^/\",\"maxLength\":%llu}")                         \
    X(COUNT, "{\"type\":\"integer\",\"minimum\":0,\"maximum\":%llu}")                              \
    X(GPUS, "{\"type\":\"number\",\"minimum\":0,\"maximum\":%llu}")                                \
    X(SHARE, "{\"type\":\"number\",\"minimum\":0,\"exclusiveMaximum\":1}")                         \
    X(CPUS, "{\"type\":[\"number\",\"string\"]}")                                                  \
    X(SIZE, "{\"type\":[\"integer\",\"string\"]}")                                                 \
    X(DURATION, "{\"type\":[\"integer\",\"string\"]}")                                             \
    X(BOOL, "{\"type\":\"boolean\"}")                                                              \
    X(PRIORITY, "")                                                                                \
    X(SCOPE, "")                                                                                   \
    X(LAYOUT, "")                                                                                  \
    X(FREEZE, "")                                                                                  \
    X(NETWORK, "")                                                                                 \
    X(SIGNAL, "{\"type\":[\"integer\",\"string\"]}")                                               \
    X(COMMAND, "{\"type\":[\"array\",\"string\"],\"items\":{\"type\":\"string\"},"                 \
               "\"minItems\":1,\"minLength\":1,\"maxItems\":%llu}")                                \
    X(ENV, "{\"type\":\"object\",\"additionalProperties\":{\"type\":"                              \
           "[\"string\",\"number\",\"boolean\"]},\"maxProperties\":%llu}")                         \
    X(VOLUMES, "{\"type\":\"array\",\"items\":{\"type\":[\"object\",\"string\"]},"                 \
               "\"maxItems\":%llu}")                                                               \
    X(ARRAY, "{\"type\":\"string\"}")
enum value_kind {
#define X(id, schema) VALUE_##id,
    VALUE_KINDS(X)
#undef X
    VALUE_KIND_COUNT
};

struct spec_field {
    const char *section, *key; /* section NULL: at the top */
    enum value_kind kind;
    size_t offset; /* of the value in struct spec */
    uint64_t max;
    const char *help, *example;
};

int value_read(const struct spec_field *f, const struct json *v, struct arena *a, struct spec *into,
               struct err *e) MUST_USE;
/* Nothing when the value is the same as in `dflt`. */
void value_write(const struct spec_field *f, const struct spec *s, const struct spec *dflt,
                 struct json_out *w);
void value_schema(const struct spec_field *f, struct json_out *w); /* with its help */

/* The words of a field that is a choice; NULL past the last, and for other fields. */
const char *value_word(enum value_kind kind, size_t i);

#endif
