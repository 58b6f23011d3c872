/* value - how one field of a job spec is read, written and described; see the table in spec.c. */
#ifndef NS_SPEC_VALUE_H
#define NS_SPEC_VALUE_H

#include "spec/devices.h"

/* Pieces of patterns.  CONTROL: no control character; PART: a piece of a path that is not "..". */
#define CONTROL "\\\\u0000-\\\\u001f\\\\u007f"
#define PART(no)                                                                                   \
    "(/(\\\\.|\\\\.\\\\.[^/" no CONTROL "]+|\\\\.?[^/." no CONTROL "][^/" no CONTROL "]*)?)+"
#define NO_NUL "\"pattern\":\"^[^\\\\u0000]*$\""
#define FRACTION "(\\\\.[0-9]{1,3})?"
#define CLOCK ":[0-5]?[0-9](:[0-5]?[0-9])?"

#define AFTER_ONE                                                                                  \
    "{\"anyOf\":[{\"type\":\"integer\",\"minimum\":1,\"maximum\":9007199254740991},"               \
    "{\"type\":\"string\",\"pattern\":\"^((ok|any|bad):)?[1-9][0-9]{0,14}$\"}]}"

/* id, JSON schema of the value; %max is the field's.  A pattern gives the ways to write it
 * that are also in range, as far as a pattern can count. */
#define VALUE_KINDS(X)                                                                             \
    X(NAME, "{\"type\":\"string\",\"pattern\":\"^[^" CONTROL "]*$\",\"maxLength\":%max}")          \
    X(PATH, "{\"type\":\"string\",\"pattern\":\"^" PART("") "$\",\"maxLength\":%max}")             \
    X(COUNT, "{\"type\":\"integer\",\"minimum\":0,\"maximum\":%max}")                              \
    X(POSITIVE, "{\"type\":\"integer\",\"minimum\":1,\"maximum\":%max}")                           \
    X(GPUS, "{\"anyOf\":[{\"type\":\"integer\",\"minimum\":0,\"maximum\":%max},"                   \
            "{\"type\":\"number\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":1}]}")               \
    X(SHARE, "{\"type\":\"number\",\"minimum\":0.001,\"maximum\":0.999}")                          \
    X(CPUS, "{\"anyOf\":[{\"type\":\"number\",\"minimum\":0.001,\"maximum\":4096},"                \
            "{\"type\":\"string\",\"pattern\":\"^([1-9][0-9]{0,2}" FRACTION                        \
            "|0\\\\.(00[1-9]|0[1-9][0-9]?|[1-9][0-9]{0,2})|[1-9][0-9]{0,5}m)$\"}]}")               \
    X(SIZE, "{\"anyOf\":[{\"type\":\"integer\",\"minimum\":1048576,\"maximum\":70368744177664},"   \
            "{\"type\":\"string\",\"pattern\":\"^([1-9][0-9]{0,6}" FRACTION                        \
            "Mi|[1-9][0-9]{0,3}" FRACTION "Gi?|[1-9][0-9]{1,6}" FRACTION                           \
            "M|([1-9]|[1-5][0-9])" FRACTION "Ti?|[1-9][0-9]{4,9}Ki?|[1-9][0-9]{7,12})$\"}]}")      \
    X(DURATION,                                                                                    \
      "{\"anyOf\":[{\"type\":\"integer\",\"minimum\":0,\"maximum\":316224000},"                    \
      "{\"type\":\"string\",\"minLength\":1,\"pattern\":\"^([0-9]{1,8}|"                           \
      "([0-9]{1,2}w)?([0-9]{1,3}d)?([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?"                     \
      "([0-9]{1,9}ms)?|[0-9]{1,3}" CLOCK "|[0-9]{1,3}-([01]?[0-9]|2[0-3])" CLOCK ")$\"}]}")        \
    X(TIME,                                                                                        \
      "{\"anyOf\":[{\"type\":\"integer\",\"minimum\":100000000000,\"maximum\":253402300799999},"   \
      "{\"type\":\"string\",\"pattern\":\"^(197[1-9]|19[89][0-9]|[2-8][0-9]{3})-"                  \
      "(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])[Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"        \
      "(\\\\.[0-9]{1,9})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$\"}]}")                          \
    X(AFTER, "{\"anyOf\":[" AFTER_ONE ",{\"type\":\"array\",\"maxItems\":%max,"                    \
             "\"items\":" AFTER_ONE "}]}")                                                         \
    X(BOOL, "{\"type\":\"boolean\"}")                                                              \
    X(PRIORITY, "")                                                                                \
    X(SCOPE, "")                                                                                   \
    X(LAYOUT, "")                                                                                  \
    X(FREEZE, "")                                                                                  \
    X(NETWORK, "")                                                                                 \
    X(WORK_KIND, "")                                                                               \
    X(SIGNAL, "{\"anyOf\":[{\"type\":\"integer\",\"minimum\":1,\"maximum\":64},"                   \
              "{\"$ref\":\"#/components/schemas/SignalName\"}]}")                                  \
    X(COMMAND, "{\"oneOf\":[{\"type\":\"array\",\"items\":{\"type\":\"string\"," NO_NUL "},"       \
               "\"prefixItems\":[{\"type\":\"string\"," NO_NUL ",\"minLength\":1}],"               \
               "\"minItems\":1,\"maxItems\":%max},"                                                \
               "{\"type\":\"string\",\"minLength\":1," NO_NUL "}]}")                               \
    X(ENV, "{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"^[A-Za-z_][A-Za-z0-9_]*$\","     \
           "\"maxLength\":256},\"additionalProperties\":{\"oneOf\":[{\"type\":\"string\"," NO_NUL  \
           "},{\"type\":[\"number\",\"boolean\"]}]},\"maxProperties\":%max}")                      \
    X(VOLUMES, "{\"type\":\"array\",\"maxItems\":%max,\"items\":{\"oneOf\":["                      \
               "{\"type\":\"string\",\"pattern\":\"^" PART(":") "(:" PART(                         \
                   ":") ")?(:r[ow])?$\","                                                          \
                        "\"maxLength\":8192},{\"type\":\"object\",\"required\":[\"from\"],"        \
                        "\"additionalProperties\":false,\"properties\":{"                          \
                        "\"from\":{\"type\":\"string\",\"pattern\":\"^" PART(                      \
                            "") "$\",\"maxLength\":4095},"                                         \
                                "\"to\":{\"type\":\"string\",\"pattern\":\"^" PART(                \
                                    "") "$\",\"maxLength\":4095},"                                 \
                                        "\"ro\":{\"type\":\"boolean\"}}}]}}")                      \
    X(DEVICES, "{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"" DEVICE_NAME                \
               "\",\"maxLength\":253},\"additionalProperties\":{\"type\":\"integer\","             \
               "\"minimum\":1,\"maximum\":65535},\"maxProperties\":%max}")                         \
    X(ARRAY, "{\"type\":\"string\",\"pattern\":"                                                   \
             "\"^[0-9]{1,5}(-[0-9]{1,5})?(:[1-9][0-9]{0,4})?$\"}")
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
