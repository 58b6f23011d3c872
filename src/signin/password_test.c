/* How often a password is hashed, and at which cost: the calls of the library are counted on their way. */
#include <dlfcn.h>
#include <sodium.h>
#include <stdio.h>

#include "signin/verb.h"
#include "tests/lib/test.h"

static struct {
    int made, verified;
    unsigned long long passes, bytes;
} seen;

static void next_of(const char *name, void *fn, size_t size)
{
    void *found = dlsym(RTLD_NEXT, name);
    CHECK(found && size == sizeof found);
    memcpy(fn, &found, size);
}

/* Both stand before the library's own. */
int crypto_pwhash_str_alg(char out[static crypto_pwhash_STRBYTES], const char *const passwd,
                          unsigned long long n, unsigned long long passes, size_t bytes, int alg)
{
    int (*real)(char *, const char *, unsigned long long, unsigned long long, size_t, int);
    next_of("crypto_pwhash_str_alg", &real, sizeof real);
    seen.made++;
    seen.passes = passes;
    seen.bytes = bytes;
    return real(out, passwd, n, passes, bytes, alg);
}

int crypto_pwhash_str_verify(const char kept[static crypto_pwhash_STRBYTES],
                             const char *const passwd, unsigned long long n)
{
    int (*real)(const char *, const char *, unsigned long long);
    next_of("crypto_pwhash_str_verify", &real, sizeof real);
    seen.verified++;
    return real(kept, passwd, n);
}

static void ask(const char *request, struct buf *out)
{
    memset(&seen, 0, sizeof seen);
    buf_truncate(out, 0);
    verb_answer(str_of(request), false, out);
}

static void hash_of(const char *password, char *kept, size_t size)
{
    AUTO(buf_free) struct buf out = BUF(ANSWER_MAX + 4096);
    char request[200];
    struct err e;
    struct str s;
    snprintf(request, sizeof request, "{\"do\":\"hash\",\"password\":\"%s\"}", password);
    ask(request, &out);
    AUTO(json_free_p) struct json_doc *d = json_read(buf_str(&out), &e);
    CHECK(d && json_get_str(json_root(d), "hash", size - 1, &s, &e) == 0 && s.n > 0);
    snprintf(kept, size, "%.*s", STR_ARG(s));
}

static void nobodys_password_costs_what_somebodys_does(void)
{
    AUTO(buf_free) struct buf out = BUF(ANSWER_MAX + 4096);
    char kept[crypto_pwhash_STRBYTES], request[400], cost[64];
    CHECK(sodium_init() >= 0);
    hash_of("right", kept, sizeof kept);
    snprintf(request, sizeof request,
             "{\"do\":\"password\",\"hash\":\"%s\",\"password\":\"wrong\"}", kept);
    ask(request, &out);
    CHECK(strstr(out.p, "wrong_password"));
    CHECK_INT(seen.verified, 1);
    CHECK_INT(seen.made, 0);
    ask("{\"do\":\"password\",\"hash\":null,\"password\":\"wrong\"}", &out);
    CHECK(strstr(out.p, "wrong_password"));
    CHECK_INT(seen.verified, 0);
    CHECK_INT(seen.made, 1);
    /* One run each, and the kept hash says that it is of the same cost. */
    snprintf(cost, sizeof cost, "$m=%llu,t=%llu,p=1$", seen.bytes / 1024, seen.passes);
    CHECK(strstr(kept, cost));
}

static const struct test tests[] = {
    { "a name that nobody has costs one hash, as somebody's wrong password does",
      nobodys_password_costs_what_somebodys_does },
};
TEST_CASES(tests)
