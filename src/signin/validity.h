/* validity - what a directory's entry says about whether its account may still be used.
 *
 * Servers differ; the table in validity.c has the attributes that are in wide use.  An entry with
 * none of them is valid.
 */
#ifndef NS_SIGNIN_VALIDITY_H
#define NS_SIGNIN_VALIDITY_H

#include "signin/refusal.h"

#define VALIDITY_COUNT 5

void validity_attrs(const char *out[static VALIDITY_COUNT]);

/* values[i]: what the entry has for the i-th of those attributes, ended by NULL. */
int validity_check(const char *const *const *values, int64_t now_s, struct refusal *r);

#endif
