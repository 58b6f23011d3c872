/* Any text as a token, from a header or a cookie: none but the one that was made is let in. */
#include "auth/auth.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(data, size)
{
    static const char text[] =
        "nst_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    struct str s = { (const char *)data, size };
    char name[] = "t", user[] = "ana";
    struct auth_key t = { .name = name, .user = user, .scopes = TOKEN_READ, .created_ms = 1 };
    struct identity who = { 0 };
    struct err e = { 0 };
    struct auth *a = auth_new();
    auth_hash_key(str_of(text), t.hash);
    if (auth_put_key(a, KEY_TOKEN, &t, &e) < 0)
        abort();
    bool in = auth_token(a, s, 2, &who, &e) == 0;
    if (in != str_is(s, text) || (!in && (e.code != ERR_DENIED || !e.msg[0])))
        abort();
    auth_free(a);
    return 0;
}
