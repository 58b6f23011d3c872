#include "auth/auth.h"

#include <unistd.h>

#include "tests/lib/test.h"

static void a_token_is_known_by_its_hash_until_it_expires(void)
{
    AUTO(auth_free_p) struct auth *a = auth_new();
    char text[TOKEN_TEXT_BYTES], other[TOKEN_TEXT_BYTES];
    struct identity id = { 0 };
    struct err e;
    char name[] = "laptop", user[] = "ana";
    struct auth_token t = { .name = name, .user = user, .role = ROLE_MEMBER, .expires_ms = 1000 };
    auth_make_token(text);
    auth_make_token(other);
    CHECK(strncmp(text, "nst_", 4) == 0 && strlen(text) == 68 && strcmp(text, other) != 0);
    auth_hash_token(str_of(text), t.hash);
    CHECK(auth_put_token(a, &t, &e) == 0);
    CHECK(auth_put_token(a, &t, &e) < 0 && e.code == ERR_CONFLICT);
    CHECK(auth_token(a, str_of(text), 999, &id, &e) == 0);
    CHECK_STR(id.user, "ana");
    CHECK(id.role == ROLE_MEMBER && id.uid == UINT32_MAX);
    CHECK(auth_token(a, str_of(text), 1000, &id, &e) < 0 && e.code == ERR_DENIED);
    CHECK(auth_token(a, str_of(other), 1, &id, &e) < 0 && e.code == ERR_DENIED);
    CHECK(auth_token(a, STR(""), 1, &id, &e) < 0);
    CHECK(auth_find_token(a, STR("ana"), STR("laptop")) && !auth_token_at(a, 1));
    CHECK(auth_drop_token(a, t.hash) && !auth_drop_token(a, t.hash));
    CHECK(auth_token(a, str_of(text), 1, &id, &e) < 0);
}

static void tenants_are_the_listed_ones_or_the_default(void)
{
    AUTO(auth_free_p) struct auth *a = auth_new();
    AUTO(arena_free) struct arena arena = { 0 };
    size_t n;
    auth_set_default_tenant(a, STR("default"));
    auth_add_member(a, STR("vision"), STR("ana"));
    auth_add_member(a, STR("speech"), STR("ana"));
    const struct str *t = auth_tenants(a, STR("ana"), &arena, &n);
    CHECK(n == 2 && str_is(t[0], "vision") && str_is(t[1], "speech"));
    t = auth_tenants(a, STR("ben"), &arena, &n);
    CHECK(n == 1 && str_is(t[0], "default"));
    CHECK(auth_is_member(a, STR("ana"), STR("speech")));
    CHECK(!auth_is_member(a, STR("ana"), STR("default")));
    CHECK(auth_is_member(a, STR("ben"), STR("default")));
    CHECK(!auth_is_member(a, STR("ben"), STR("vision")));
}

static void the_kernel_says_who_calls_on_the_machine(void)
{
    AUTO(auth_free_p) struct auth *a = auth_new();
    struct identity id = { 0 };
    struct err e;
    CHECK(auth_local(a, 0, &id, &e) == 0 && id.role == ROLE_ADMIN);
    CHECK_STR(id.user, "root");
    CHECK(auth_local(a, 1, &id, &e) == 0 && id.role == ROLE_MEMBER);
    CHECK_STR(id.user, "daemon");
    CHECK(auth_local(a, 4000000, &id, &e) == 0);
    CHECK_STR(id.user, "uid-4000000");
    auth_add_admin(a, STR("daemon"));
    CHECK(auth_local(a, 1, &id, &e) == 0 && id.role == ROLE_ADMIN);
    auth_set_only_user(a, 1234);
    CHECK(auth_local(a, 1, &id, &e) < 0 && e.code == ERR_DENIED);
    CHECK(auth_local(a, 1234, &id, &e) == 0);
}

static const struct test tests[] = {
    { "a token is known by its hash until it expires",
      a_token_is_known_by_its_hash_until_it_expires },
    { "a user's tenants are the listed ones, or the default",
      tenants_are_the_listed_ones_or_the_default },
    { "on the machine itself the kernel says who calls", the_kernel_says_who_calls_on_the_machine },
};
TEST_MAIN(tests)
