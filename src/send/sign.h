/* sign - the signature of a webhook, as the Standard Webhooks have it: whoever knows the secret can tell that it
 * comes from us and when.
 *
 * HMAC-SHA256 over "ID.TIME.BODY"; a secret is "whsec_" and the key in base64.
 */
#ifndef NS_SEND_SIGN_H
#define NS_SEND_SIGN_H

#include "base/err.h"
#include "base/str.h"

#define SIGN_TEXT 64 /* "v1,", 44 signs of base64, NUL */

struct signed_text {
    const char *id;
    int64_t time_s;
    struct str body;
};

int sign(const char *secret, const struct signed_text *what, char out[static SIGN_TEXT],
         struct err *e) MUST_USE;

#endif
