#include "auth/auth.h"

#include <stdio.h>

#include "tests/lib/test.h"

static void a_token_is_known_by_its_hash_until_it_expires(void)
{
    AUTO(auth_free_p) struct auth *a = auth_new();
    char text[KEY_TEXT_BYTES], other[KEY_TEXT_BYTES];
    struct identity id = { 0 };
    struct err e;
    char name[] = "laptop", user[] = "ana", vision[] = "vision", *tenant[] = { vision };
    struct auth_key t = { .name = name,
                          .user = user,
                          .scopes = TOKEN_READ,
                          .tenant = tenant,
                          .tenants = 1,
                          .expires_ms = 1000 };
    auth_make_key(TOKEN_PREFIX, text);
    auth_make_key(TOKEN_PREFIX, other);
    CHECK(strncmp(text, "nst_", 4) == 0 && strlen(text) == 68 && strcmp(text, other) != 0);
    auth_hash_key(str_of(text), t.hash);
    CHECK(auth_put_key(a, KEY_TOKEN, &t, &e) == 0);
    CHECK(auth_put_key(a, KEY_TOKEN, &t, &e) < 0 && e.code == ERR_CONFLICT);
    CHECK(auth_token(a, str_of(text), 999, &id, &e) == 0);
    CHECK_STR(id.user, "ana");
    CHECK_STR(id.key, "laptop");
    CHECK(id.via == VIA_TOKEN && id.scopes == TOKEN_READ && id.uid == UINT32_MAX && !id.root);
    CHECK(id.tenants == 1 && strcmp(id.tenant[0], "vision") == 0);
    CHECK(auth_token(a, str_of(text), 1000, &id, &e) < 0 && e.code == ERR_DENIED);
    CHECK(auth_token(a, str_of(other), 1, &id, &e) < 0 && e.code == ERR_DENIED);
    CHECK(auth_session(a, str_of(text), 1, &id, &e) < 0 && e.code == ERR_DENIED);
    CHECK(auth_token(a, STR(""), 1, &id, &e) < 0);
    CHECK(auth_find_key(a, KEY_TOKEN, STR("ana"), STR("laptop")) && !auth_key_at(a, KEY_TOKEN, 1));
    CHECK(auth_drop_key(a, KEY_TOKEN, t.hash) && !auth_drop_key(a, KEY_TOKEN, t.hash));
    CHECK(auth_token(a, str_of(text), 1, &id, &e) < 0);
}

static void keys_are_found_whatever_came_and_went(void)
{
    AUTO(auth_free_p) struct auth *a = auth_new();
    char name[16], user[] = "ana";
    struct auth_key k = { .name = name, .user = user, .scopes = TOKEN_EVERYTHING };
    struct err e;
    for (uint8_t i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "k%u", i);
        memset(k.hash, 0, sizeof k.hash);
        k.hash[0] = i;
        CHECK(auth_put_key(a, KEY_TOKEN, &k, &e) == 0);
    }
    for (uint8_t i = 0; i < 100; i += 3) {
        k.hash[0] = i;
        CHECK(auth_drop_key(a, KEY_TOKEN, k.hash));
    }
    for (uint8_t i = 0; i < 100; i++) {
        k.hash[0] = i;
        const struct auth_key *found = auth_key_of(a, KEY_TOKEN, k.hash);
        snprintf(name, sizeof name, "k%u", i);
        CHECK((found != NULL) == (i % 3 != 0));
        CHECK(!found || strcmp(found->name, name) == 0);
    }
    k.hash[0] = 1;
    k.hash[31] = 1; /* the beginning of a hash is not the hash */
    CHECK(!auth_key_of(a, KEY_TOKEN, k.hash));
}

static void a_key_is_written_and_read_again(void)
{
    AUTO(auth_free_p) struct auth *a = auth_new();
    AUTO(buf_free) struct buf body = BUF(4096);
    char name[] = "ci \"1\"", user[] = "ana", t1[] = "a", t2[] = "b", *tenant[] = { t1, t2 };
    struct auth_key k = { .name = name,
                          .user = user,
                          .scopes = TOKEN_READ | TOKEN_JOBS,
                          .tenant = tenant,
                          .tenants = 2,
                          .created_ms = 5,
                          .expires_ms = 7,
                          .used_ms = 6,
                          .hash = { 1, 2, 3 } };
    char hex[65];
    struct err e;
    auth_key_write(&k, &body);
    auth_key_name(k.hash, hex);
    CHECK(auth_read_key(a, KEY_SESSION, str_of(hex), buf_str(&body), &e) == 0);
    const struct auth_key *back = auth_key_of(a, KEY_SESSION, k.hash);
    CHECK(back && strcmp(back->name, name) == 0 && strcmp(back->user, user) == 0);
    CHECK(back->scopes == k.scopes && back->tenants == 2 && strcmp(back->tenant[1], "b") == 0);
    CHECK(back->created_ms == 5 && back->expires_ms == 7 && back->used_ms == 6);
    CHECK(auth_read_key(a, KEY_SESSION, STR("zz"), buf_str(&body), &e) < 0);
    CHECK(auth_read_key(a, KEY_TOKEN, str_of(hex), STR("{\"name\":\"x\"}"), &e) < 0);
}

static int local(const struct auth *a, uint32_t uid, struct identity *out, struct err *e)
{
    const char *name = uid == 1 ? "daemon" : NULL;
    return auth_local(a, &(struct auth_local){ .uid = uid, .name = name }, out, e);
}

static void the_kernel_says_who_calls_on_the_machine(void)
{
    AUTO(auth_free_p) struct auth *a = auth_new();
    struct identity id = { 0 };
    struct err e;
    CHECK(local(a, 0, &id, &e) == 0 && id.root && id.via == VIA_SOCKET);
    CHECK_STR(id.user, "root");
    CHECK(local(a, 1, &id, &e) == 0 && !id.root && id.scopes == TOKEN_EVERYTHING);
    CHECK_STR(id.user, "daemon");
    CHECK(local(a, 4000000, &id, &e) == 0);
    CHECK_STR(id.user, "uid-4000000");
    people_make(auth_people(a), STR("daemon"))->disabled = true;
    CHECK(local(a, 1, &id, &e) < 0 && e.code == ERR_DENIED);
    auth_set_only_user(a, 1234);
    CHECK(local(a, 2, &id, &e) < 0 && e.code == ERR_DENIED);
    CHECK(local(a, 1234, &id, &e) == 0);
}

static void a_job_that_reaches_the_socket_is_its_user_or_nobody(void)
{
    AUTO(auth_free_p) struct auth *a = auth_new();
    struct identity id = { 0 };
    struct err e = { 0 };
    struct auth_local job = { .uid = 4000000, .of_jobs = true, .owner = STR("ana") };
    CHECK(auth_local(a, &job, &id, &e) == 0);
    CHECK_STR(id.user, "ana");
    people_make(auth_people(a), STR("ana"))->disabled = true;
    CHECK(auth_local(a, &job, &id, &e) < 0 && e.code == ERR_DENIED);
    job.owner = STR("");
    CHECK(auth_local(a, &job, &id, &e) < 0 && e.code == ERR_DENIED && strstr(e.msg, "nobody's"));
    /* Where the range is also the machine's, its people are themselves, and a uid of both is neither's. */
    job.uid = 1;
    job.name = "daemon";
    CHECK(auth_local(a, &job, &id, &e) == 0);
    CHECK_STR(id.user, "daemon");
    job.owner = STR("ben");
    CHECK(auth_local(a, &job, &id, &e) < 0 && e.code == ERR_DENIED && strstr(e.hint, "uid_base"));
}

static void a_session_ends_when_its_user_signs_out_everywhere_or_is_disabled(void)
{
    AUTO(auth_free_p) struct auth *a = auth_new();
    char name[] = "browser", user[] = "ana", text[KEY_TEXT_BYTES];
    struct auth_key k = {
        .name = name, .user = user, .scopes = TOKEN_EVERYTHING, .created_ms = 10
    };
    struct person *ana = people_make(auth_people(a), STR("ana"));
    struct identity id;
    struct err e;
    auth_make_key(SESSION_PREFIX, text);
    auth_hash_key(str_of(text), k.hash);
    CHECK(auth_put_key(a, KEY_SESSION, &k, &e) == 0);
    CHECK(auth_session(a, str_of(text), 20, &id, &e) == 0 && id.via == VIA_SESSION);
    ana->disabled = true;
    CHECK(auth_session(a, str_of(text), 20, &id, &e) < 0);
    ana->disabled = false;
    ana->void_ms = 11;
    CHECK(auth_session(a, str_of(text), 20, &id, &e) < 0 && e.code == ERR_DENIED);
}

static void keys_are_counted_by_user_and_the_oldest_is_known(void)
{
    struct auth *a = auth_new();
    char name[16], ana[] = "ana", ben[] = "ben";
    struct err e;
    for (int i = 0; i < 5; i++) {
        struct auth_key k = { .name = name, .user = i == 1 ? ben : ana, .created_ms = 100 - i % 4 };
        snprintf(name, sizeof name, "k%d", i);
        auth_hash_key(str_of(name), k.hash);
        CHECK(auth_put_key(a, KEY_SESSION, &k, &e) == 0);
    }
    CHECK_INT(auth_count_keys(a, KEY_SESSION, STR("ana")), 4);
    CHECK_INT(auth_count_keys(a, KEY_SESSION, STR("ben")), 1);
    CHECK_INT(auth_count_keys(a, KEY_TOKEN, STR("ana")), 0);
    CHECK_STR(auth_oldest_key(a, KEY_SESSION, STR("ana"))->name, "k3");
    CHECK(!auth_oldest_key(a, KEY_SESSION, STR("cy")));
    auth_free(a);
}

static void a_session_goes_on_under_a_new_key(void)
{
    AUTO(auth_free_p) struct auth *a = auth_new();
    AUTO(buf_free) struct buf body = BUF(4096);
    char name[] = "browser", user[] = "ana", hex[65];
    struct auth_key k = { .name = name, .user = user, .created_ms = 10, .expires_ms = 1000 };
    uint8_t fresh[KEY_HASH_BYTES], third[KEY_HASH_BYTES];
    struct identity id;
    struct err e;
    auth_hash_key(STR("old"), k.hash);
    auth_hash_key(STR("fresh"), fresh);
    auth_hash_key(STR("third"), third);
    CHECK(auth_put_key(a, KEY_SESSION, &k, &e) == 0);
    const struct auth_key *next = auth_renew_session(a, k.hash, fresh, 100, 160);
    CHECK(next && next->expires_ms == 1000 && next->created_ms == 10 && next->renewed_ms == 100);
    CHECK(auth_session(a, STR("old"), 159, &id, &e) == 0);
    CHECK(auth_session(a, STR("old"), 160, &id, &e) < 0);
    CHECK(auth_session(a, STR("fresh"), 999, &id, &e) == 0);
    CHECK(auth_session(a, STR("fresh"), 1000, &id, &e) < 0);
    CHECK(!auth_renew_session(a, k.hash, third, 110, 170)); /* it has been */
    CHECK_INT(auth_count_keys(a, KEY_SESSION, STR("ana")), 1);
    const struct auth_key *old = auth_key_of(a, KEY_SESSION, k.hash);
    CHECK(auth_is_same_session(old, next) && old->replaced && !next->replaced);
    auth_key_write(old, &body); /* both sides of a restart */
    auth_key_name(k.hash, hex);
    auth_drop_key(a, KEY_SESSION, k.hash);
    CHECK(auth_read_key(a, KEY_SESSION, str_of(hex), buf_str(&body), &e) == 0);
    old = auth_key_of(a, KEY_SESSION, k.hash);
    CHECK(old->replaced && auth_is_same_session(old, auth_key_of(a, KEY_SESSION, fresh)));
}

static void tokens_of_people_of_a_provider_want_them_to_come_by(void)
{
    AUTO(auth_free_p) struct auth *a = auth_new();
    char name[] = "t", user[] = "ana";
    struct auth_key k = { .name = name, .user = user, .created_ms = 10 };
    struct person *ana = people_make(auth_people(a), STR("ana"));
    struct identity id;
    struct err e;
    auth_hash_key(STR("nst_x"), k.hash);
    CHECK(auth_put_key(a, KEY_TOKEN, &k, &e) == 0);
    ana->kind = PERSON_OIDC;
    ana->seen_ms = 1000;
    CHECK(auth_token(a, STR("nst_x"), 1000000, &id, &e) == 0);
    auth_set_provider_ms(a, 500);
    CHECK(auth_token(a, STR("nst_x"), 1499, &id, &e) == 0);
    CHECK(auth_token(a, STR("nst_x"), 1500, &id, &e) < 0 && e.code == ERR_DENIED);
    ana->kind = PERSON_LDAP;
    CHECK(auth_token(a, STR("nst_x"), 1500, &id, &e) == 0);
}

static const struct test tests[] = {
    { "a token is known by its hash until it expires",
      a_token_is_known_by_its_hash_until_it_expires },
    { "keys are found whatever came and went", keys_are_found_whatever_came_and_went },
    { "a key is written and read again", a_key_is_written_and_read_again },
    { "on the machine itself the kernel says who calls", the_kernel_says_who_calls_on_the_machine },
    { "a job that reaches the socket is its user or nobody",
      a_job_that_reaches_the_socket_is_its_user_or_nobody },
    { "a session ends when its user signs out everywhere or is disabled",
      a_session_ends_when_its_user_signs_out_everywhere_or_is_disabled },
    { "keys are counted by user, and the oldest is known",
      keys_are_counted_by_user_and_the_oldest_is_known },
    { "a session goes on under a new key", a_session_goes_on_under_a_new_key },
    { "tokens of people of a provider want them to come by",
      tokens_of_people_of_a_provider_want_them_to_come_by },
};
TEST_CASES(tests)
