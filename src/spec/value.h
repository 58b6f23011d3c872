/* value - how one field of a job spec is read, written and described; see the table in spec.c. */
#ifndef NS_SPEC_VALUE_H
#define NS_SPEC_VALUE_H

#include "spec/spec.h"

/* id, JSON schema of the value */
#define NO_CONTROL "\"pattern\":\"^[^\\\\u0000-\\\\u001f\\\\u007f]*$\""
#define NO_NUL "\"pattern\":\"^[^\\\\u0000]*$\""
#define VALUE_KINDS(X)                                                                             \
    X(NAME, "{\"type\":\"string\"," NO_CONTROL ",\"maxLength\":%llu}")                             \
    X(PATH, "{\"type\":\"string\",\"pattern\":\"^(/([^/.\\\\u0000-\\\\u001f\\\\u007f]"             \
            "[^/\\\\u0000-\\\\u001f\\\\u007f]*)?)+$\",\"maxLength\":%llu}")                        \
    X(COUNT, "{\"type\":\"integer\",\"minimum\":0,\"maximum\":%llu}")                              \
    X(GPUS, "{\"type\":\"number\",\"minimum\":0,\"maximum\":%llu}")                                \
    X(SHARE, "{\"type\":\"number\",\"minimum\":0.001,\"maximum\":0.999}")                          \
    X(CPUS, "{\"oneOf\":[{\"type\":\"number\",\"minimum\":0.001,\"maximum\":4096},"                \
            "{\"type\":\"string\",\"pattern\":\"^[1-9][0-9]{0,2}m?$\"}]}")                         \
    X(SIZE, "{\"oneOf\":[{\"type\":\"integer\",\"minimum\":1048576,\"maximum\":70368744177664},"   \
            "{\"type\":\"string\",\"pattern\":\"^[1-9][0-9]{0,3}[MG]i?$\"}]}")                     \
    X(DURATION, "{\"oneOf\":[{\"type\":\"integer\",\"minimum\":0,\"maximum\":316224000},"          \
                "{\"type\":\"string\",\"pattern\":\"^[0-9]{1,3}[smhd]$\"}]}")                      \
    X(BOOL, "{\"type\":\"boolean\"}")                                                              \
    X(PRIORITY, "")                                                                                \
    X(SCOPE, "")                                                                                   \
    X(LAYOUT, "")                                                                                  \
    X(FREEZE, "")                                                                                  \
    X(NETWORK, "")                                                                                 \
    X(SIGNAL, "{\"oneOf\":[{\"type\":\"integer\",\"minimum\":1,\"maximum\":64},"                   \
              "{\"type\":\"string\",\"enum\":[\"HUP\",\"INT\",\"QUIT\",\"USR1\",\"USR2\","         \
              "\"TERM\",\"CONT\"]}]}")                                                             \
    X(COMMAND, "{\"oneOf\":[{\"type\":\"array\",\"items\":{\"type\":\"string\"," NO_NUL "},"       \
               "\"prefixItems\":[{\"type\":\"string\"," NO_NUL ",\"minLength\":1}],"               \
               "\"minItems\":1,\"maxItems\":%llu},"                                                \
               "{\"type\":\"string\",\"minLength\":1," NO_NUL "}]}")                               \
    X(ENV, "{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"^[A-Za-z_][A-Za-z0-9_]*$\","     \
           "\"maxLength\":256},\"additionalProperties\":{\"oneOf\":[{\"type\":\"string\"," NO_NUL  \
           "},{\"type\":[\"number\",\"boolean\"]}]},\"maxProperties\":%llu}")                      \
    X(VOLUMES, "{\"type\":\"array\",\"items\":{\"type\":\"string\","                               \
               "\"pattern\":\"^/[a-z0-9/]*:/[a-z0-9/]*(:ro|:rw)?$\"},\"maxItems\":%llu}")          \
    X(ARRAY, "{\"type\":\"string\",\"pattern\":\"^[0-9]{1,3}-[1-9][0-9]{3}$\"}")
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
