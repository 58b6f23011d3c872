/* quoted - JSON inside C: written with ' for ", so that a document in a test can be read. */
#ifndef NS_TESTS_LIB_QUOTED_H
#define NS_TESTS_LIB_QUOTED_H

#include "base/json.h"
#include "tests/lib/test.h"

/* The test fails when it is no JSON.  The caller frees it. */
static inline struct json_doc *quoted_json(const char *text)
{
    AUTO(free_p) char *copy = xstrdup(text);
    struct err e = { 0 };
    for (char *p = copy; *p; p++)
        if (*p == '\'')
            *p = '"';
    struct json_doc *d = json_read(str_of(copy), &e);
    if (!d)
        test_fail(__FILE__, __LINE__, "%s: %s", e.msg, text);
    return d;
}

#endif
