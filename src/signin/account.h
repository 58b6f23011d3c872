/* account - what the machine's own list of accounts (passwd, group; NSS) says of a user. */
#ifndef NS_SIGNIN_ACCOUNT_H
#define NS_SIGNIN_ACCOUNT_H

#include "signin/refusal.h"

/* Writes user, uid, name (if it has one) and groups.  REASON_UNKNOWN_USER when there is none. */
int account_write(const char *user, struct json_out *out, struct refusal *r);

#endif
