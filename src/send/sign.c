#include "send/sign.h"

#include <sodium.h>
#include <stdio.h>

#define PREFIX "whsec_"
#define KEY_MAX 96

int sign(const char *secret, const struct signed_text *what, char out[static SIGN_TEXT],
         struct err *e)
{
    unsigned char key[KEY_MAX], mac[crypto_auth_hmacsha256_BYTES];
    char head[160], text[48];
    crypto_auth_hmacsha256_state st;
    size_t n = 0;
    if (strncmp(secret, PREFIX, strlen(PREFIX)) != 0 ||
        sodium_base642bin(key, sizeof key, secret + strlen(PREFIX), strlen(secret) - strlen(PREFIX),
                          NULL, &n, NULL, sodium_base64_VARIANT_ORIGINAL) != 0 ||
        n < 16)
        return err_set(e, ERR_INVALID, "the webhook's secret is not one of ours");
    int head_n = snprintf(head, sizeof head, "%.100s.%lld.", what->id, (long long)what->time_s);
    crypto_auth_hmacsha256_init(&st, key, n);
    crypto_auth_hmacsha256_update(&st, (const unsigned char *)head, (unsigned long long)head_n);
    crypto_auth_hmacsha256_update(&st, (const unsigned char *)what->body.p, what->body.n);
    crypto_auth_hmacsha256_final(&st, mac);
    sodium_bin2base64(text, sizeof text, mac, sizeof mac, sodium_base64_VARIANT_ORIGINAL);
    snprintf(out, SIGN_TEXT, "v1,%s", text);
    sodium_memzero(key, sizeof key);
    sodium_memzero(&st, sizeof st);
    return 0;
}
