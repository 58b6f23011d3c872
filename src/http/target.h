/* target - what a request line asks for, taken apart: "/v1/jobs?state=running&user=ana%20b".
 *
 * Strict: it begins with '/', every % has two hexadecimal digits after it, and nothing decodes to a
 * NUL.  Everything decoded lives in the arena.  Pure.
 */
#ifndef NS_HTTP_TARGET_H
#define NS_HTTP_TARGET_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#define TARGET_MAX 8192     /* bytes; more is ERR_TOO_LARGE */
#define TARGET_PAIRS_MAX 64 /* key=value in the query */

struct target_pair {
    const char *key, *value; /* value "" when there was no '=' */
};

struct target {
    const char *path;
    struct target_pair *query;
    size_t n;
};

int target_parse(struct str text, struct arena *a, struct target *out, struct err *e) MUST_USE;

/* "a=1&b=2", as a query or a form has it; `path` stays as it is. */
int target_parse_pairs(struct str text, struct arena *a, struct target *out, struct err *e)
    MUST_USE;

const char *target_find(const struct target *t, const char *key); /* NULL when absent */
bool target_next(const struct target *t, size_t i, const char **key, const char **value);

#endif
