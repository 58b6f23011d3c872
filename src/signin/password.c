/* Passwords of our own: argon2id, with its cost in one place. */
#include <errno.h>
#include <sodium.h>

#include "signin/verb.h"

/* 65 ms on a machine of 2023; a check of a hash made with other figures says so ("rehash"). */
#define PASSES 2
#define MEMORY_BYTES (64u << 20)
#define PASSWORD_MAX 1024

struct asked {
    const char *hash, *password;
};

static const struct field hash_fields[] = {
    { "password", FIELD_PASSWORD, offsetof(struct asked, password), PASSWORD_MAX, true },
};
static const struct field password_fields[] = {
    { "hash", FIELD_TEXT_OR_NULL, offsetof(struct asked, hash), crypto_pwhash_STRBYTES - 1, true },
    { "password", FIELD_PASSWORD, offsetof(struct asked, password), PASSWORD_MAX, true },
};

static int make_hash(const char *password, char out[static crypto_pwhash_STRBYTES],
                     struct refusal *r)
{
    if (crypto_pwhash_str_alg(out, password, strlen(password), PASSES, MEMORY_BYTES,
                              crypto_pwhash_ALG_ARGON2ID13) == 0)
        return 0;
    return refuse(r, REASON_MEMORY, "there is no memory for the check (%u MiB)",
                  MEMORY_BYTES >> 20);
}

static int run_hash(const void *args, struct json_out *out, struct refusal *r)
{
    const struct asked *a = args;
    char hash[crypto_pwhash_STRBYTES];
    if (make_hash(a->password, hash, r) < 0)
        return -1;
    json_put_str(out, "hash", str_of(hash));
    return 0;
}

static int run_password(const void *args, struct json_out *out, struct refusal *r)
{
    const struct asked *a = args;
    static const char words[] = "the user name or the password is wrong";
    char spent[crypto_pwhash_STRBYTES];
    if (!a->hash) /* nobody of that name: the answer takes as long as for somebody */
        return make_hash(a->password, spent, r) < 0 ? -1
                                                    : refuse(r, REASON_WRONG_PASSWORD, "%s", words);
    if (strncmp(a->hash, crypto_pwhash_argon2id_STRPREFIX,
                strlen(crypto_pwhash_argon2id_STRPREFIX)) != 0)
        return refuse(r, REASON_BAD_HASH, "what is kept of the password is no argon2id hash");
    errno = 0;
    if (crypto_pwhash_str_verify(a->hash, a->password, strlen(a->password)) != 0)
        return errno == EINVAL ? refuse(r, REASON_WRONG_PASSWORD, "%s", words)
                               : refuse(r, REASON_BAD_HASH,
                                        "the hash cannot be checked: it is "
                                        "damaged, or there is no memory");
    if (crypto_pwhash_str_needs_rehash(a->hash, PASSES, MEMORY_BYTES) != 0)
        json_put_bool(out, "rehash", true);
    return 0;
}

const struct verb verb_hash = {
    .name = "hash",
    .help = "what to keep of a new password",
    .fields = hash_fields,
    .n = ARRAY_LEN(hash_fields),
    .size = sizeof(struct asked),
    .run = run_hash,
};
const struct verb verb_password = {
    .name = "password",
    .help = "is it the password of this hash? (hash null: nobody's, and as slow)",
    .fields = password_fields,
    .n = ARRAY_LEN(password_fields),
    .size = sizeof(struct asked),
    .run = run_password,
};
